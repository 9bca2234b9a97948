#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DynamicShared.h"
#include "kernels/words/Method.h"
#include "kernels/words/gpu/WordParams.h"

/// Launches of the searches of words.
namespace faiss_bits::words {

/// Shared memory for the letters of queries: every GPU has as much and more.
constexpr size_t kTableBytes = 64 * 1024;
/// Warps that share 32 queries, each with a part of the nodes.
constexpr int kWalkWarps = 8;

/// The queries first .. end - 1 of the order; isLong: some have 32 letters or
/// more. params.parts is a multiple of kWalkWarps.
void launchTrieWalk(const TrieParams& params, bool isLong, cudaStream_t stream);

/// Brute force, List of Clusters or SSS for `count` queries; isLong: some have
/// more than 32 letters.
void launchQueryScan(
        const ScanParams& params,
        Method method,
        bool isLong,
        idx_t count,
        cudaStream_t stream);

} // namespace faiss_bits::words

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

/// The queries first .. end - 1 of the order; isWide: some have 32 letters or
/// more. params.parts is a multiple of kWalkWarps.
void launchTrieWalk(const TrieParams& params, bool isWide, cudaStream_t stream);

/// Brute force, List of Clusters or SSS for `count` queries, each by `parts`
/// blocks (List of Clusters: one); isWide: some have more than 32 letters.
/// Leaves out those of kLongQuery letters and more.
void launchQueryScan(
        const ScanParams& params,
        Method method,
        bool isWide,
        idx_t count,
        uint32_t parts,
        cudaStream_t stream);

/// Queries of so many letters and more are in blocks of 64 letters.
constexpr uint32_t kLongQuery = 64;
/// Shared memory for the table of a long query; larger ones lie in
/// params.tables.
constexpr size_t kLongTableBytes = 32 * 1024;

/// The most blocks of the kind of kernel that takes so many.
uint32_t longKindOf(uint32_t blocks);

/// The same for the `count` long queries of params.queries, which are of one
/// kind.
void launchLongScan(
        const LongScanParams& params,
        Method method,
        uint32_t kind,
        idx_t count,
        uint32_t parts,
        cudaStream_t stream);

} // namespace faiss_bits::words

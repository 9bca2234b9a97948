#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/all_pairs/AllPairsLaunch.h"

namespace faiss_bits {

/// Rows of the matrix that a warp makes results of: their vectors, and k.
constexpr int64_t kMostWarpVectors = 1024;
constexpr int kMostWarpResults = 32;

/// Enqueues what makes results of the matrix, for n <= kMostWarpVectors and
/// k <= kMostWarpResults: the k best of each row in order, empty places behind
/// them. NaN is no result.
void launchAllPairsResults(
        Metric metric,
        const AllPairsParams& params,
        int multiprocessors,
        cudaStream_t stream);

} // namespace faiss_bits

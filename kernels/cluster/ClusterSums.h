#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"
#include "kernels/common/Workspace.h"

/// The update step of k-means: from vectors and the clusters that they were
/// assigned to, to what the new centroids are made of.
namespace faiss_bits {

/// Most rows of one call: what is beyond is the next call's (`accumulate`).
constexpr idx_t kMaxClusterRows = idx_t(1) << 22;

/// Rows that callers give at once, and the last call the rest. The bits of the
/// sums depend on where the rows are cut, so this is a matter of d alone and
/// not of the memory there is: 512 MiB of vectors, at most kMaxClusterRows.
constexpr idx_t clusterBlockRows(int d) {
    const idx_t rows = (idx_t(1) << 27) / d;
    return rows < 1 ? 1 : rows < kMaxClusterRows ? rows : kMaxClusterRows;
}

struct ClusterSumsProblem {
    idx_t n = 0; ///< rows, at most kMaxClusterRows
    int d = 0;
    idx_t k = 0; ///< clusters, below 2^31

    const float* vectors = nullptr; ///< [n, d], row-major
    const void* labels = nullptr;   ///< [n] of labelType
    IdType labelType = IdType::Int64;
    const float* weights = nullptr;   ///< [n], or nullptr: each is 1
    const float* distances = nullptr; ///< [n], or nullptr: no objective

    /// Add to what the outputs hold. false: they may hold anything.
    bool accumulate = false;

    double* outSums = nullptr;      ///< [k, d] of weight * vector
    double* outWeights = nullptr;   ///< [k] sums of the weights
    uint64_t* outCounts = nullptr;  ///< [k] rows, whatever their weights
    double* outObjective = nullptr; ///< [1] sum of distances
};

/// Scratch bytes of runClusterSums. Host only, no CUDA call.
size_t clusterSumsWorkspaceBytes(const ClusterSumsProblem& problem);

/// Adds up the vectors of every cluster, and the distances of all.
///
/// Result   sums of float64 in an order that labels and shape decide: the same
///          bits every run, on every device. A row whose label is outside
///          0..k-1 (-1 of a search: no neighbour) takes no part in any of them
/// Limits   0 <= n <= kMaxClusterRows, d >= 1, 1 <= k < 2^31
/// Stream   enqueues on `stream` and never waits
/// Memory   16 n bytes, and 16 (d + 1) for every 32 or 128 rows
/// Errors   throws Error on a bad argument (named) or a failed launch
/// Cost     the labels are sorted (16 n bytes read and written for every 8 bits
///          of k) and the vectors read once: 2^20 x 128 take at least 0.12 ms
///          on an H200 (4.53e12 B/s), and 6% more for pieces of sums
void runClusterSums(
        const ClusterSumsProblem& problem,
        Workspace workspace,
        cudaStream_t stream);

/// Adds 1 to *outCount if any of `count` values is NaN or infinite. Reads them
/// once; enqueues. The caller has set *outCount.
void runFindNotFinite(
        const float* values,
        size_t count,
        unsigned* outCount,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"

/// From the sums of clusters to centroids. Everything lies on the device; every
/// call enqueues, never waits, and throws Error for a bad argument or a failed
/// launch.
namespace faiss_bits {

/// centroids[c] = sums[c] / weights[c], rounded once to float32, for c from
/// `first` on; zeros where the weight, as float32, is 0.
///
/// Shapes   sums [k, d], weights [k], centroids [k, d]
void runClusterMeans(
        const double* sums,
        const double* weights,
        idx_t first,
        idx_t k,
        int d,
        float* centroids,
        cudaStream_t stream);

/// One cluster takes half of another.
struct ClusterSplit {
    int32_t to = 0; ///< was empty
    int32_t from = 0;
};

/// One after the other: centroid `to` becomes `from`, then their components
/// move apart: c (1 + 2^-10) and c (1 - 2^-10), in turn. As FAISS.
///
/// Shapes   splits [numSplits], centroids [k, d]
/// Cost     numSplits steps, d components at a time
void runClusterSplits(
        const ClusterSplit* splits,
        idx_t numSplits,
        int d,
        float* centroids,
        cudaStream_t stream);

/// Scales every centroid to length 1 if `normalize` (zeros stay), then rounds
/// every component to the nearest whole number (halves away from zero) if
/// `round`. Norms are sums of float64.
///
/// Shapes   centroids [k, d]
void runFinishCentroids(
        idx_t k,
        int d,
        bool normalize,
        bool round,
        float* centroids,
        cudaStream_t stream);

} // namespace faiss_bits

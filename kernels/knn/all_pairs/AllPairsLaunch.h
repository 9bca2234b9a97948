#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/certified/CertifiedParams.h"

namespace faiss_bits {

// Of a ProductTile, in queries and in vectors: there are wide and narrow ones.
constexpr int kProductQueries = 64;
constexpr int kWideTile = 256;
constexpr int kNarrowTile = 64;

/// Tiles of so many queries and vectors.
constexpr int64_t allPairsTiles(
        int64_t rows,
        int64_t n,
        int queries,
        int vectors) {
    return (rows + queries - 1) / queries * ((n + vectors - 1) / vectors);
}

/// A step of a wide tile takes 3.5 times as long as one of a narrow tile where
/// there are few, and 2.5 where many follow one another (H200); the steps of
/// tiles that multiprocessors have one after another count.
constexpr bool takesWideTiles(int64_t rows, int64_t n, int multiprocessors) {
    const auto turns = [&](int width) {
        const int64_t tiles = allPairsTiles(rows, n, kProductQueries, width);
        return (tiles + multiprocessors - 1) / multiprocessors;
    };
    return 5 * turns(kWideTile) <= 2 * turns(kNarrowTile);
}

/// Of a launch: queries, vectors, and where their distances go.
struct AllPairsParams {
    CertifiedParams search;
    float* distances = nullptr; // [rows, stride]
    int64_t stride = 0;
    /// Some of the narrow tiles, which are numbered queries first, and on the
    /// device how many; metrics that isOfProducts(). nullptr: all. By L2 only
    /// the distances that are NaN are to be computed in these.
    const uint32_t* tiles = nullptr;
    const uint32_t* numTiles = nullptr;
};

/// Enqueues one kernel. kernels/CMakeLists.txt lists the instances.
template <Metric kMetric>
void launchAllPairs(
        const AllPairsParams& params,
        int multiprocessors,
        cudaStream_t stream);

/// The same for metrics whose terms are long, or have several sums; of all
/// tiles alone.
template <Metric kMetric>
void launchPairsByLanes(
        const AllPairsParams& params,
        int multiprocessors,
        cudaStream_t stream);

} // namespace faiss_bits

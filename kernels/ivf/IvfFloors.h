#pragma once

#include "kernels/ivf/IvfDirectParams.h"

/// Direct searches of a few queries by themselves whose scan writes estimates
/// of keys in float32, the least of each four vectors (IvfCodeFloors.cuh); the
/// finish makes keys of those that may be among the nearest.
namespace faiss_bits {

/// Vectors of an estimate.
constexpr int kIvfFloorVectors = 4;
constexpr int kMostFloorDims = 128;
/// More queries take the ways that they took before these estimates.
constexpr idx_t kMostFloorQueries = 63;
/// Neighbours: of more the finish makes more keys than that saves.
constexpr int kMostFloorK = 32;

/// Whether queries by themselves go so: of interleaved codes of 8 bits. A scan
/// that looks ids up has them for some groups at a time. Few queries and more
/// than some neighbours gain nothing.
inline bool hasIvfCodeFloors(const IvfLists& lists, idx_t numQueries, int k) {
    constexpr int kFew = 16;
    constexpr idx_t kSome = 4;
    return lists.coding == ListCoding::Scalar8 &&
            lists.layout == ListLayout::Interleaved &&
            lists.d <= kMostFloorDims && lists.d % 4 == 0 &&
            !lists.idTest.isThere() && numQueries > 0 &&
            numQueries <= kMostFloorQueries &&
            k <= (numQueries < kSome ? kFew : kMostFloorK);
}

/// Estimates of keys to search.distances, the least of each four vectors, NaN
/// where there is none, and to least of each 32; bounds, which were zeros;
/// columns, starts and steps.
template <Metric kMetric>
void launchIvfCodeFloors(
        const IvfDirectParams& params,
        int multiprocessors,
        cudaStream_t stream);

/// The k nearest of each query, of such estimates (IvfFloorBound.h).
template <Metric kMetric, ListCoding kCoding>
void launchIvfFloorsFinish(const IvfDirectParams& params, cudaStream_t stream);

} // namespace faiss_bits

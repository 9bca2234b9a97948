#pragma once

#include "kernels/ivf/IvfDirectParams.h"
#include "kernels/ivf/IvfFewEstimates.h"

/// Direct searches of a few queries that share lists, whose scan writes lower
/// bounds of keys by tensor cores (IvfFewEstimates.h), the least of four
/// vectors; the finish makes keys of those that may be among the nearest.
namespace faiss_bits {

/// Vectors of a bound.
constexpr int kIvfFloorVectors = 4;
constexpr int kMostFloorDims = 128;
/// More queries take the ways that they took before these bounds.
constexpr idx_t kMostFloorQueries = 63;

/// Whether searches of such lists that share them go so. Product codes have
/// estimates of their own, and vectors of few dimensions a lane each.
inline bool hasIvfFloors(const IvfLists& lists, idx_t numQueries, int k) {
    return (lists.coding == ListCoding::Float32 ||
            lists.coding == ListCoding::Scalar8) &&
            lists.d <= kMostFloorDims && !areSharedAlone(lists) &&
            numQueries > 0 && numQueries <= kMostFloorQueries && k <= kMostFinishedK;
}

/// Whether queries by themselves go so: by estimates in float32
/// (IvfCodeFloors.cuh) in place of lower bounds.
inline bool hasIvfCodeFloors(const IvfLists& lists, idx_t numQueries, int k) {
    return lists.coding == ListCoding::Scalar8 &&
            lists.layout == ListLayout::Interleaved &&
            lists.d <= kMostFloorDims && lists.d % 4 == 0 &&
            numQueries > 0 && numQueries <= kMostFloorQueries && k <= kMostFinishedK;
}

/// Estimates of keys to search.distances, the least of each four vectors, and
/// search.bounds, which were zeros; columns, starts and steps.
template <Metric kMetric>
void launchIvfCodeFloors(
        const IvfDirectParams& params,
        int multiprocessors,
        cudaStream_t stream);

/// The k nearest of each query, of lower bounds in search.distances, where
/// columns that no vector has are NaN, and search.widths; or of estimates and
/// bounds of these (IvfCodeBound.h).
template <Metric kMetric, ListCoding kCoding>
void launchIvfFloorsFinish(const IvfDirectParams& params, cudaStream_t stream);

} // namespace faiss_bits

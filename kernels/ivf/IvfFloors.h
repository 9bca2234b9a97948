#pragma once

#include "kernels/ivf/IvfDirectParams.h"

/// Direct searches of a few queries by themselves whose scan writes estimates
/// of keys in float32 (IvfCodeFloors.cuh, IvfBookTables.cuh); the finish makes
/// keys of those that may be among the nearest.
namespace faiss_bits {

constexpr int kMostFloorDims = 128;
/// More queries take the ways that they took before these estimates.
constexpr idx_t kMostFloorQueries = 128;
/// Neighbours that the finish finds.
constexpr int kMostFloorK = kMostFinishedK;
/// Of more neighbours than a few the finish takes longer than that of canonical
/// keys, which so many components of all pairs make up for.
constexpr double kLeastFloorComponents = 8e6;

/// Whether queries by themselves go so: of interleaved codes of 8 bits. A scan
/// that looks ids up has them for some groups at a time. mostVectors: of a
/// query's lists.
inline bool hasIvfCodeFloors(
        const IvfLists& lists,
        idx_t numQueries,
        idx_t mostVectors,
        int k) {
    constexpr int kFew = 16;
    constexpr int kMostOfSome = 32;
    constexpr idx_t kSome = 4;
    const double components =
            double(numQueries) * double(mostVectors) * lists.d;
    return lists.coding == ListCoding::Scalar8 &&
            lists.layout == ListLayout::Interleaved &&
            lists.d <= kMostFloorDims && lists.d % 4 == 0 &&
            !lists.idTest.isThere() && numQueries > 0 &&
            numQueries <= kMostFloorQueries && k <= kMostFloorK &&
            (k <= (numQueries < kSome ? kFew : kMostOfSome) ||
             components >= kLeastFloorComponents);
}

/// Estimates to keys, and to least of each 32; bounds, which were zeros;
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

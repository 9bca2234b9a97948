/// Estimates of lists that few queries of a search probe.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/ivf/IvfParams.h"

namespace faiss_bits {

// Of a tile of launchIvfPairs, which one warp takes.
constexpr int kIvfFewQueries = 16;
constexpr int kIvfMoreQueries = 32; // not of product codes
constexpr int kIvfFewVectors = 128;

/// Lists whose estimates were measured so; others go by launchIvfEstimates.
constexpr bool hasIvfFewEstimates(ListCoding coding) {
    return coding == ListCoding::Float32 || coding == ListCoding::Scalar8 ||
            coding == ListCoding::Product;
}

/// Whether products are of codes as they are, and not of what they decode to
/// (IvfCodeBound.h).
template <Metric kMetric, ListCoding kCoding>
constexpr bool multipliesCodes(ListLayout layout) {
    return kMetric == Metric::L2 && kCoding == ListCoding::Scalar8 &&
            layout == ListLayout::Interleaved;
}

/// Queries of a tile where bounds of these lists take less time with a warp for
/// each few queries of a list: those that are written, not appended. 0: they do
/// not. pairs: of a query and a list.
int ivfFewEstimatesQueries(const IvfLists& lists, int64_t pairs);

/// As launchIvfEstimates without appending, bit by bit but where
/// multipliesCodes(); tiles are of tileQueries, kIvfFewQueries or
/// kIvfMoreQueries, and kIvfFewVectors. counts[numLists] is 0
/// (clearIvfCounts), and deals tiles out.
template <Metric kMetric, ListCoding kCoding>
void launchIvfFewEstimates(
        const IvfParams& params,
        int tileQueries,
        int multiprocessors,
        cudaStream_t stream);

} // namespace faiss_bits

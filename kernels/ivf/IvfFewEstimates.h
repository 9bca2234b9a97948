/// Estimates of lists that few queries of a search probe.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/ivf/IvfParams.h"

namespace faiss_bits {

// Of a tile of launchIvfPairs, which one warp takes.
constexpr int kIvfFewQueries = 16;
constexpr int kIvfFewVectors = 128;

/// Lists whose estimates were measured so; others go by launchIvfEstimates.
constexpr bool hasIvfFewEstimates(ListCoding coding) {
    return coding == ListCoding::Float32 || coding == ListCoding::Scalar8 ||
            coding == ListCoding::Product;
}

/// Whether bounds of this search's lists take less time with a warp for each
/// few queries of a list: those that are written, not appended.
bool takesIvfFewEstimates(const IvfParams& params);

/// As launchIvfEstimates without appending, bit by bit; tiles are of
/// kIvfFewQueries and kIvfFewVectors.
template <Metric kMetric, ListCoding kCoding>
void launchIvfFewEstimates(
        const IvfParams& params,
        int multiprocessors,
        cudaStream_t stream);

} // namespace faiss_bits

/// The launches of a metric; included by the generated sources only.
#pragma once

#include <algorithm>

#include "kernels/range/RangeLimits.cuh"
#include "kernels/range/RangeScores.cuh"

namespace faiss_bits {

template <Metric kMetric>
void launchRangeLimits(const RangeLimitParams& params, cudaStream_t stream) {
    launchAfterPrevious(
            rangeLimitsKernel<kMetric>,
            params.search.rows,
            kRangeLimitThreads,
            0,
            stream,
            params);
}

template <Metric kMetric>
void launchRangeScores(
        const RangeScoreParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    // More than fit together, as items differ.
    constexpr int64_t kBlocks = 16;
    const int64_t wanted =
            (params.numItems + RangeScores<kMetric>::kWarps - 1) /
            RangeScores<kMetric>::kWarps;
    launchAfterPrevious(
            rangeScoresKernel<kMetric>,
            unsigned(std::min<int64_t>(wanted, kBlocks * multiprocessors)),
            kRangeScoreThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits

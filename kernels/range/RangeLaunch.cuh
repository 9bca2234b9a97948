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
    // As many as a multiprocessor holds, or more, which then have nothing to
    // do.
    constexpr int64_t kBlocks = 2048 / kRangeScoreThreads;
    launchAfterPrevious(
            rangeScoresKernel<kMetric>,
            unsigned(std::clamp<int64_t>(
                    (params.most + kRangeScoreThreads - 1) / kRangeScoreThreads,
                    1,
                    kBlocks * multiprocessors)),
            kRangeScoreThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits

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
void launchRangeScores(const RangeScoreParams& params, cudaStream_t stream) {
    // Some times as many as are at work at a time, so that they end together,
    // and no more: mostly there are far fewer candidates than room.
    constexpr int64_t kOfBlock = 4 * kRangeScoreThreads;
    constexpr int64_t kMostBlocks = 4096;
    launchAfterPrevious(
            rangeScoresKernel<kMetric>,
            unsigned(std::clamp<int64_t>(
                    (params.most + kOfBlock - 1) / kOfBlock, 1, kMostBlocks)),
            kRangeScoreThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits

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
        int64_t most,
        cudaStream_t stream) {
    // Many more blocks than are at work at a time, so that they end together.
    constexpr int64_t kOfBlock = 4 * kRangeScoreThreads;
    constexpr int64_t kMostBlocks = int64_t(1) << 20;
    launchAfterPrevious(
            rangeScoresKernel<kMetric>,
            unsigned(std::clamp<int64_t>(
                    (most + kOfBlock - 1) / kOfBlock, 1, kMostBlocks)),
            kRangeScoreThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits

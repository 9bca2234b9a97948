/// The launches that FusedLaunch.h declares.
#pragma once

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/fused/CloserLimit.cuh"
#include "kernels/knn/fused/FusedLaunch.h"
#include "kernels/knn/fused/GivenLimits.cuh"
#include "kernels/knn/fused/SampleFew.cuh"
#include "kernels/knn/fused/SampleLimit.cuh"
#include "kernels/knn/fused/ScorePassed.cuh"

namespace faiss_bits {

template <Metric kMetric>
void launchSampleLimits(const SampleLimitParams& params, cudaStream_t stream) {
    const auto kernel = params.samples <= 8 * kSampleLimitThreads
            ? sampleLimitKernel<kMetric, 8>
            : sampleLimitKernel<kMetric, 32>;
    static_assert(kMostSamples == 32 * kSampleLimitThreads);
    launchAfterPrevious(
            kernel, params.search.rows, kSampleLimitThreads, 0, stream, params);
}

template <Metric kMetric>
void launchSampleFew(const SampleLimitParams& params, cudaStream_t stream) {
    constexpr unsigned kGroups = kSampleFewGroups;
    if constexpr (kCanSampleSome<kMetric>) {
        constexpr unsigned kVectors = kSomeVectors * kGroups;
        if (params.search.rows > 1) {
            return launchAfterPrevious(
                    sampleSomeKernel<kMetric>,
                    dim3((params.samples + kVectors - 1) / kVectors,
                         (params.search.rows + kSomeQueries - 1) /
                                 kSomeQueries),
                    kSampleFewThreads,
                    0,
                    stream,
                    params);
        }
    }
    launchAfterPrevious(
            sampleFewKernel<kMetric>,
            dim3((params.samples + kGroups - 1) / kGroups, params.search.rows),
            kSampleFewThreads,
            0,
            stream,
            params);
}

template <Metric kMetric>
void launchGivenLimits(const GivenLimitParams& params, cudaStream_t stream) {
    const unsigned rows = params.search.rows;
    if (params.search.imageFacts) {
        launchAfterPrevious(
                givenLimitsKernel<kMetric, true>,
                (rows + kGivenLimitThreads - 1) / kGivenLimitThreads,
                kGivenLimitThreads,
                0,
                stream,
                params);
    } else {
        launchAfterPrevious(
                givenLimitsKernel<kMetric, false>,
                rows,
                kGivenLimitThreads,
                0,
                stream,
                params);
    }
}

template <Metric kMetric>
void launchCloserLimits(const CloserLimitParams& params, cudaStream_t stream) {
    constexpr unsigned kRows = kCloserLimitThreads / kWarpSize;
    launchAfterPrevious(
            closerLimitKernel<kMetric>,
            (params.search.rows + kRows - 1) / kRows,
            kCloserLimitThreads,
            0,
            stream,
            params);
}

template <Metric kMetric>
void launchScorePassed(
        const PassedParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    constexpr int kPerBlock = kRescoreThreads / kPairLanes;
    const unsigned rows = std::min(params.search.rows, 65535u);
    // Lists are mostly shorter than their room: blocks for a quarter of it,
    // but no more than some rounds of the GPU.
    const unsigned wanted =
            (unsigned(params.search.numCandidates) / 4 + kPerBlock - 1) /
            kPerBlock;
    const unsigned most =
            std::max(1u, (32u * unsigned(multiprocessors) + rows - 1) / rows);
    // Blocks that move in beside the scan's find what that leaves of L1, for as
    // long as the kernel runs: a long one had better wait.
    constexpr double kLong = 0x1p28;
    const bool isLong =
            double(params.search.rows) * params.search.k * params.search.d >=
            kLong;
    launchAfterPrevious(
            scorePassedKernel<kMetric>,
            dim3(std::clamp(wanted, 1u, most), rows),
            kRescoreThreads,
            0,
            stream,
            params,
            !isLong);
}

} // namespace faiss_bits

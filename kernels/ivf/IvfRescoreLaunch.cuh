/// The kernels that score candidates, and their launches; included by the
/// generated sources only.
#pragma once

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/IvfFewCandidates.cuh"
#include "kernels/ivf/IvfRescore.cuh"

namespace faiss_bits {

template <Metric kMetric, ListCoding kCoding>
__global__ __launch_bounds__(
        IvfFewCandidates<kMetric, kCoding>::kThreads,
        IvfFewCandidates<kMetric, kCoding>::
                kBlocks) void ivfFewCandidatesKernel(const __grid_constant__
                                                             IvfRescoreParams
                                                                     params) {
    allowNext();
    waitForPrevious();
    IvfFewCandidates<kMetric, kCoding>{params}.run();
}

template <Metric kMetric, ListCoding kCoding>
void launchIvfFewCandidates(
        const IvfRescoreParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    using Few = IvfFewCandidates<kMetric, kCoding>;
    launchAfterPrevious(
            ivfFewCandidatesKernel<kMetric, kCoding>,
            dim3(unsigned(Few::kBlocks * multiprocessors)),
            Few::kThreads,
            0,
            stream,
            params);
}

template <Metric kMetric, ListCoding kCoding>
__global__ __launch_bounds__(
        kIvfRescoreThreads,
        IvfRescore<kMetric, kCoding>::
                kMostBlocks) void ivfRescoreKernel(const __grid_constant__
                                                           IvfRescoreParams
                                                                   params) {
    extern __shared__ float ivfRescoreVectors[];
    allowNext();
    waitForPrevious();
    IvfRescore<kMetric, kCoding>{params, ivfRescoreVectors}.run();
}

template <Metric kMetric, ListCoding kCoding>
void launchIvfRescore(
        IvfRescoreParams params,
        size_t sharedBytes,
        int multiprocessors,
        cudaStream_t stream) {
    launchIvfFewCandidates<kMetric, kCoding>(params, multiprocessors, stream);
    const size_t wanted = sizeof(float) * IvfRescore<kMetric, kCoding>::kPitch *
            params.search.d;
    // Of a multiprocessor: each block has some more of its own.
    constexpr size_t kOfBlock = 1024;
    const size_t room = sharedBytes + kOfBlock;
    const bool isCopied = kCoding == ListCoding::Float32 &&
            params.search.lists.layout == ListLayout::Interleaved;
    params.stages = isCopied && 2 * (2 * wanted + kOfBlock) <= room ? 2
            : wanted <= sharedBytes                                 ? 1
                                                                    : 0;
    const size_t bytes = wanted * params.stages;
    const size_t blocks = std::clamp<size_t>(
            room / (bytes + kOfBlock),
            1,
            IvfRescore<kMetric, kCoding>::kMostBlocks);
    launchAfterPrevious(
            ivfRescoreKernel<kMetric, kCoding>,
            dim3(unsigned(blocks * multiprocessors)),
            kIvfRescoreThreads,
            allowSharedBytes(ivfRescoreKernel<kMetric, kCoding>, bytes),
            stream,
            params);
}

} // namespace faiss_bits

/// The kernel that scores candidates list by list, and its launch.
#pragma once

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/IvfListCandidates.cuh"

namespace faiss_bits {

template <Metric kMetric, ListCoding kCoding>
__global__ __launch_bounds__(
        IvfListCandidates<kMetric, kCoding>::kThreads,
        IvfListCandidates<kMetric, kCoding>::
                kBlocks) void ivfListCandidatesKernel(const __grid_constant__
                                                              IvfListCandidatesParams
                                                                      params) {
    extern __shared__ __align__(16) uint8_t ivfListMemory[];
    using Candidates = IvfListCandidates<kMetric, kCoding>;
    allowNext();
    waitForPrevious();
    Candidates{
            *reinterpret_cast<typename Candidates::SharedStorage*>(
                    ivfListMemory),
            params}
            .run();
}

template <Metric kMetric, ListCoding kCoding>
void launchIvfListCandidates(
        const IvfListCandidatesParams& params,
        size_t sharedBytes,
        int multiprocessors,
        cudaStream_t stream) {
    using Candidates = IvfListCandidates<kMetric, kCoding>;
    const auto kernel = ivfListCandidatesKernel<kMetric, kCoding>;
    const size_t bytes = Candidates::bytesFor(params.mostQueries);
    // Of a multiprocessor: each block has some more of its own. A block more
    // than fit would have its groups when the others are done.
    constexpr size_t kOfBlock = 1024;
    // Some lists have far more candidates than others: of codes blocks one
    // after another in the place of one. Of float32 this took longer.
    constexpr unsigned kTurns = kCoding == ListCoding::Float32 ? 1 : 4;
    const size_t blocks = std::clamp<size_t>(
            (sharedBytes + kOfBlock) / (bytes + kOfBlock),
            1,
            Candidates::kBlocks);
    launchAfterPrevious(
            kernel,
            dim3(kTurns * unsigned(blocks) * unsigned(multiprocessors)),
            Candidates::kThreads,
            allowSharedBytes(kernel, bytes),
            stream,
            params);
}

} // namespace faiss_bits

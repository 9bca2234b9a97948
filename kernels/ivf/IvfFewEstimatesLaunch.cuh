/// The kernel of estimates of few queries a list, and its launch.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/IvfFewEstimates.cuh"

namespace faiss_bits {

/// Of a multiprocessor.
template <Metric kMetric, class Vectors>
constexpr int kIvfFewBlocks =
        multipliesCodes<kMetric, Vectors::kCoding>(Vectors::kLayout)
        ? 3
        : IvfFewShape<Vectors::kCoding>::kBlocks;

template <Metric kMetric, class Vectors>
__global__ void __launch_bounds__(
        IvfFewShape<Vectors::kCoding>::kThreads,
        kIvfFewBlocks<kMetric, Vectors>)
        ivfFewEstimatesKernel(const __grid_constant__ IvfParams params) {
    extern __shared__ __align__(128) uint8_t memory[];
    using Estimates = IvfFewEstimates<kMetric, Vectors>;
    allowNext();
    waitForPrevious();
    Estimates(
            *reinterpret_cast<typename Estimates::SharedStorage*>(memory),
            params)
            .run();
}

template <Metric kMetric, ListCoding kCoding>
void launchIvfFewEstimates(
        const IvfParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    using Shape = IvfFewShape<kCoding>;
    const auto ofLayout = [&]<ListLayout kLayout>() {
        using Vectors =
                typename VectorsOfLists<kCoding>::template ListOf<kLayout>;
        const auto kernel = ivfFewEstimatesKernel<kMetric, Vectors>;
        IvfParams some = params;
        if (multipliesCodes<kMetric, kCoding>(kLayout)) {
            some.bound = ivf_estimate::factorsOfCodes(params.bound);
        }
        launchAfterPrevious(
                kernel,
                dim3(unsigned(
                        kIvfFewBlocks<kMetric, Vectors> * multiprocessors)),
                Shape::kThreads,
                allowSharedBytes(
                        kernel,
                        sizeof(typename IvfFewEstimates<kMetric, Vectors>::
                                       SharedStorage)),
                stream,
                some);
    };
    params.lists.layout == ListLayout::Rows
            ? ofLayout.template operator()<ListLayout::Rows>()
            : ofLayout.template operator()<ListLayout::Interleaved>();
}

} // namespace faiss_bits

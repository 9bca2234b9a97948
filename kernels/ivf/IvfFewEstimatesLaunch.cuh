/// The kernel of estimates of few queries a list, and its launch.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/IvfFewEstimates.cuh"

namespace faiss_bits {

template <Metric kMetric, class Vectors>
__global__ void __launch_bounds__(
        IvfFewShape<Vectors::kCoding>::kThreads,
        IvfFewShape<Vectors::kCoding>::kBlocks)
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
        launchAfterPrevious(
                kernel,
                dim3(unsigned(Shape::kBlocks * multiprocessors)),
                Shape::kThreads,
                allowSharedBytes(
                        kernel,
                        sizeof(typename IvfFewEstimates<kMetric, Vectors>::
                                       SharedStorage)),
                stream,
                params);
    };
    params.lists.layout == ListLayout::Rows
            ? ofLayout.template operator()<ListLayout::Rows>()
            : ofLayout.template operator()<ListLayout::Interleaved>();
}

} // namespace faiss_bits

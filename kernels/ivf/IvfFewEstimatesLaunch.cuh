/// The kernel of estimates of few queries a list, and its launch.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/IvfFewEstimates.cuh"

namespace faiss_bits {

/// Of a multiprocessor.
template <Metric kMetric, class Vectors, int kQueries>
constexpr int kIvfFewBlocks = kQueries ==
                kIvfFewQueries&& multipliesCodes<kMetric, Vectors::kCoding>(
                                      Vectors::kLayout)
        ? 3
        : IvfFewShape<Vectors::kCoding, kQueries>::kBlocks;

template <Metric kMetric, class Vectors, int kQueries>
__global__ void __launch_bounds__(
        IvfFewShape<Vectors::kCoding, kQueries>::kThreads,
        kIvfFewBlocks<kMetric, Vectors, kQueries>)
        ivfFewEstimatesKernel(const __grid_constant__ IvfParams params) {
    extern __shared__ __align__(128) uint8_t memory[];
    using Estimates = IvfFewEstimates<kMetric, Vectors, kQueries>;
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
        int tileQueries,
        int multiprocessors,
        cudaStream_t stream) {
    const auto launch = [&]<ListLayout kLayout, int kQueries>() {
        using Shape = IvfFewShape<kCoding, kQueries>;
        using Vectors =
                typename VectorsOfLists<kCoding>::template ListOf<kLayout>;
        using Estimates = IvfFewEstimates<kMetric, Vectors, kQueries>;
        const auto kernel = ivfFewEstimatesKernel<kMetric, Vectors, kQueries>;
        IvfParams some = params;
        if (multipliesCodes<kMetric, kCoding>(kLayout)) {
            some.bound = ivf_estimate::factorsOfCodes(params.bound);
        }
        launchAfterPrevious(
                kernel,
                dim3(unsigned(
                        kIvfFewBlocks<kMetric, Vectors, kQueries> *
                        multiprocessors)),
                Shape::kThreads,
                allowSharedBytes(
                        kernel, sizeof(typename Estimates::SharedStorage)),
                stream,
                some);
    };
    const auto ofLayout = [&]<ListLayout kLayout>() {
        // Beside a codebook there is no room for more.
        if constexpr (
                kCoding != ListCoding::Product &&
                kLayout == ListLayout::Interleaved) {
            if (tileQueries == kIvfMoreQueries) {
                return launch.template operator()<kLayout, kIvfMoreQueries>();
            }
        }
        launch.template operator()<kLayout, kIvfFewQueries>();
    };
    params.lists.layout == ListLayout::Rows
            ? ofLayout.template operator()<ListLayout::Rows>()
            : ofLayout.template operator()<ListLayout::Interleaved>();
}

} // namespace faiss_bits

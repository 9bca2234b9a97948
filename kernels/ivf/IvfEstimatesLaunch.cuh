/// The kernel of estimates, and its launch for a coding of the lists.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/IvfEstimates.cuh"

namespace faiss_bits {

template <Metric kMetric, class Vectors, class Shape, bool kAppend>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
        ivfEstimatesKernel(const __grid_constant__ IvfParams params) {
    extern __shared__ __align__(128) uint8_t memory[];
    using Estimates = IvfEstimates<kMetric, Vectors, Shape, kAppend>;
    allowNext();
    waitForPrevious();
    Estimates{
            *reinterpret_cast<typename Estimates::SharedStorage*>(memory),
            params}
            .run();
}

/// Vectors: those of a layout.
template <Metric kMetric, class Vectors>
void launchIvfEstimatesOf(
        const IvfParams& params,
        bool append,
        int multiprocessors,
        cudaStream_t stream) {
    const auto launch = [&]<class Shape, bool kAppend>() {
        const auto kernel =
                ivfEstimatesKernel<kMetric, Vectors, Shape, kAppend>;
        launchAfterPrevious(
                kernel,
                dim3(unsigned(Shape::kBlocks * multiprocessors)),
                Shape::kThreads,
                allowSharedBytes(
                        kernel,
                        sizeof(typename IvfEstimates<
                                kMetric,
                                Vectors,
                                Shape,
                                kAppend>::SharedStorage)),
                stream,
                params);
    };
    const auto ofShape = [&]<bool kWhole>() {
        using Shape = IvfEstimateShape<kWhole>;
        append ? launch.template operator()<Shape, true>()
               : launch.template operator()<Shape, false>();
    };
    params.d <= IvfEstimateShape<true>::kDepth
            ? ofShape.template operator()<true>()
            : ofShape.template operator()<false>();
}

template <Metric kMetric, ListCoding kCoding>
void launchIvfEstimates(
        const IvfParams& params,
        bool append,
        int multiprocessors,
        cudaStream_t stream) {
    using Lists = VectorsOfLists<kCoding>;
    const auto ofLayout = [&]<ListLayout kLayout>() {
        launchIvfEstimatesOf<kMetric, typename Lists::template ListOf<kLayout>>(
                params, append, multiprocessors, stream);
    };
    if constexpr (kCoding != ListCoding::Scalar6) {
        if (params.lists.layout == ListLayout::Rows) {
            return ofLayout.template operator()<ListLayout::Rows>();
        }
    }
    ofLayout.template operator()<ListLayout::Interleaved>();
}

} // namespace faiss_bits

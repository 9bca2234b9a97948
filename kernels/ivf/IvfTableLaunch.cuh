/// The scans of direct searches by tables; included by the generated sources
/// only.
#pragma once

#include <algorithm>

#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/IvfTableScan.cuh"

namespace faiss_bits {

template <Metric kMetric>
void launchIvfTableScan(
        const IvfDirectParams& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    const IvfLists& lists = params.search.lists;
    const size_t bytes = ivfTableSharedBytes(lists);
    const auto blocks = std::clamp<size_t>(
            device.sharedBytes / (bytes + kIvfBoundedReserved),
            1,
            kIvfTableBlocks);
    const auto launch = [&]<ListLayout kLayout, int kBytes>() {
        const auto kernel = ivfTableScanKernel<kMetric, kLayout, kBytes>;
        launchAfterPrevious(
                kernel,
                dim3(unsigned(blocks) * unsigned(device.multiprocessors)),
                kIvfTableThreads,
                allowSharedBytes(kernel, bytes),
                stream,
                params);
    };
    const int parts = lists.decoding.numParts;
    constexpr ListLayout kRows = ListLayout::Rows;
    if (lists.layout == ListLayout::Interleaved) {
        launch.template operator()<ListLayout::Interleaved, 1>();
    } else if (parts % 16 == 0) {
        launch.template operator()<kRows, 16>();
    } else if (parts % 8 == 0) {
        launch.template operator()<kRows, 8>();
    } else if (parts % 4 == 0) {
        launch.template operator()<kRows, 4>();
    } else {
        launch.template operator()<kRows, 1>();
    }
}

} // namespace faiss_bits

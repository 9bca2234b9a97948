/// The launch of lists of lanes; included by the generated sources only.
#pragma once

#include "kernels/common/CudaCheck.h"
#include "kernels/common/Error.h"
#include "kernels/select/short_rows/LaneLists.cuh"

namespace faiss_bits {

template <class T, int kLanes, int kItems, int kBest>
void launchLists(const ShortRowsParams& params, cudaStream_t stream) {
    constexpr unsigned kRows = kShortRowsThreads / kLanes;
    laneListsKernel<T, kLanes, kItems, kBest>
            <<<(params.rows + kRows - 1) / kRows,
               kShortRowsThreads,
               0,
               stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class T, int kLanes, int kItems>
void launchLists(const ShortRowsParams& params, cudaStream_t stream) {
    if (params.select.k <= 2) {
        launchLists<T, kLanes, kItems, 2>(params, stream);
    } else if (params.select.k <= 4) {
        launchLists<T, kLanes, kItems, 4>(params, stream);
    } else {
        launchLists<T, kLanes, kItems, kMostLaneListsK>(params, stream);
    }
}

/// Of the kernels for so many lanes that of so many items.
template <class T, int kLanes, int... kItems>
void launchListsOf(
        const ShortRowsParams& params,
        int items,
        cudaStream_t stream) {
    const bool isThere =
            ((items == kItems &&
              (launchLists<T, kLanes, kItems>(params, stream), true)) ||
             ...);
    if (!isThere) {
        throw Error(formatMessage(
                "%d lanes with %d keys each have no kernel", kLanes, items));
    }
}

template <class T>
void launchLaneLists(
        const ShortRowsParams& params,
        bool isFew,
        cudaStream_t stream) {
    const LaneListsShape shape = laneListsShape(params.select.cols, isFew);
    switch (shape.lanes) {
        case 32:
            return launchListsOf<T, 32, 4, 8, 12, 16>(
                    params, shape.items, stream);
        case 16:
            return launchListsOf<T, 16, 12, 16>(params, shape.items, stream);
        default:
            return launchListsOf<T, 8, 4, 8, 12, 16>(
                    params, shape.items, stream);
    }
}

} // namespace faiss_bits

/// The launch of lists of lanes; included by the generated sources only.
#pragma once

#include <iterator>
#include <utility>

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

/// Those that have kernels.
constexpr LaneListsShape kLaneListsShapes[] = {
        {8, 4},
        {8, 8},
        {8, 12},
        {8, 16},
        {16, 12},
        {16, 16},
        {32, 4},
        {32, 8},
        {32, 12},
        {32, 16}};

constexpr bool areSame(LaneListsShape a, LaneListsShape b) {
    return a.lanes == b.lanes && a.items == b.items;
}

constexpr bool haveAllShapesKernels() {
    for (uint32_t cols = 2; cols <= kMostLaneListsCols; ++cols) {
        for (const bool isFew : {false, true}) {
            bool isThere = false;
            for (const LaneListsShape& shape : kLaneListsShapes) {
                isThere =
                        isThere || areSame(shape, laneListsShape(cols, isFew));
            }
            if (!isThere) {
                return false;
            }
        }
    }
    return true;
}
static_assert(haveAllShapesKernels());

/// Throws Error for a shape that is none of kLaneListsShapes.
template <class T, size_t... kPlaces>
void launchShape(
        const ShortRowsParams& params,
        LaneListsShape shape,
        cudaStream_t stream,
        std::index_sequence<kPlaces...>) {
    const bool isLaunched =
            ((areSame(shape, kLaneListsShapes[kPlaces]) &&
              (launchLists<
                       T,
                       kLaneListsShapes[kPlaces].lanes,
                       kLaneListsShapes[kPlaces].items>(params, stream),
               true)) ||
             ...);
    BITS_THROW_IF_NOT_FMT(
            isLaunched,
            "no kernel for lists of %d lanes with %d keys each",
            shape.lanes,
            shape.items);
}

template <class T>
void launchLaneLists(
        const ShortRowsParams& params,
        bool isFew,
        cudaStream_t stream) {
    launchShape<T>(
            params,
            laneListsShape(params.select.cols, isFew),
            stream,
            std::make_index_sequence<std::size(kLaneListsShapes)>());
}

} // namespace faiss_bits

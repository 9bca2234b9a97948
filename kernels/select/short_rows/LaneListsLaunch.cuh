/// The launch of lists of lanes; included by the generated sources only.
#pragma once

#include <span>
#include <utility>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/Error.h"
#include "kernels/select/short_rows/LaneLists.cuh"
#include "kernels/select/short_rows/NarrowLists.cuh"

namespace faiss_bits {

template <class T, int kLanes, int kItems, int kBest>
void launchLists(const ShortRowsParams& params, cudaStream_t stream) {
    constexpr unsigned kRows = kShortRowsThreads / kLanes;
    const unsigned blocks = (params.rows + kRows - 1) / kRows;
    if constexpr (sizeof(T) == 2) {
        narrowListsKernel<T, kLanes, kItems, kBest>
                <<<blocks, kShortRowsThreads, 0, stream>>>(params);
    } else {
        laneListsKernel<T, kLanes, kItems, kBest>
                <<<blocks, kShortRowsThreads, 0, stream>>>(params);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class T, int kLanes, int kItems>
void launchLists(const ShortRowsParams& params, cudaStream_t stream) {
    constexpr int kMostK =
            sizeof(T) == 2 && kLanes > 4 ? kMostNarrowListsK : kMostLaneListsK;
    const int k = params.select.k;
    BITS_THROW_IF_NOT_FMT(
            k <= kMostK, "no kernel for lists of %d lanes, k = %d", kLanes, k);
    if (k <= 2) {
        launchLists<T, kLanes, kItems, 2>(params, stream);
    } else if (k <= 4) {
        launchLists<T, kLanes, kItems, 4>(params, stream);
    } else if (k <= kMostLaneListsK) {
        launchLists<T, kLanes, kItems, kMostLaneListsK>(params, stream);
    } else if constexpr (kMostK == kMostNarrowListsK) {
        launchLists<T, kLanes, kItems, kMostNarrowListsK>(params, stream);
    }
}

/// Those that have kernels.
constexpr LaneListsShape kLaneListsShapes[] = {
        {4, 4},
        {4, 8},
        {4, 12},
        {4, 16},
        {8, 4},
        {8, 8},
        {8, 12},
        {32, 4},
        {32, 8},
        {32, 12},
        {32, 16}};

/// The same of keys of 16 bits.
constexpr LaneListsShape kNarrowListsShapes[] = {
        {4, 4},   {4, 8},   {4, 12},  {4, 16},  {8, 4},  {8, 8},
        {8, 12},  {8, 16},  {8, 24},  {8, 32},  {16, 4}, {16, 8},
        {16, 12}, {16, 16}, {16, 24}, {16, 32}, {32, 4}, {32, 8},
        {32, 12}, {32, 16}, {32, 24}, {32, 32}};

template <class T>
constexpr std::span<const LaneListsShape> listsShapes() {
    if constexpr (sizeof(T) == 2) {
        return kNarrowListsShapes;
    } else {
        return kLaneListsShapes;
    }
}

constexpr bool areSame(LaneListsShape a, LaneListsShape b) {
    return a.lanes == b.lanes && a.items == b.items;
}

template <class T, class ShapeOf>
constexpr bool haveShapesKernels(uint32_t mostCols, const ShapeOf& shapeOf) {
    for (uint32_t cols = 2; cols <= mostCols; ++cols) {
        bool isThere = false;
        for (const LaneListsShape& shape : listsShapes<T>()) {
            isThere = isThere || areSame(shape, shapeOf(cols));
        }
        if (!isThere) {
            return false;
        }
    }
    return true;
}

template <uint64_t kRowsOfSm>
constexpr bool haveShapesKernels() {
    return haveShapesKernels<float>(
            kRowsOfSm <= kFewShortRows ? kMostLaneListsCols
                                       : kMostManyLaneListsCols,
            [](uint32_t cols) { return laneListsShape(cols, kRowsOfSm); });
}

template <uint64_t kRowsOfSm>
constexpr bool haveNarrowShapesKernels() {
    // All longer rows have one shape.
    return haveShapesKernels<__half>(kLongNarrowCols + 1, [](uint32_t cols) {
        return narrowListsShape(cols, kRowsOfSm);
    });
}
static_assert(haveShapesKernels<1>());
static_assert(haveShapesKernels<64>());
static_assert(haveShapesKernels<256>());
static_assert(haveNarrowShapesKernels<1>());
static_assert(haveNarrowShapesKernels<64>());
static_assert(haveNarrowShapesKernels<128>());
static_assert(haveNarrowShapesKernels<256>());

/// Throws Error for a shape that has no kernel.
template <class T, size_t... kPlaces>
void launchShape(
        const ShortRowsParams& params,
        LaneListsShape shape,
        cudaStream_t stream,
        std::index_sequence<kPlaces...>) {
    constexpr auto kShapes = listsShapes<T>();
    const bool isLaunched =
            ((areSame(shape, kShapes[kPlaces]) &&
              (launchLists<T, kShapes[kPlaces].lanes, kShapes[kPlaces].items>(
                       params, stream),
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
        LaneListsShape shape,
        cudaStream_t stream) {
    launchShape<T>(
            params,
            shape,
            stream,
            std::make_index_sequence<listsShapes<T>().size()>());
}

} // namespace faiss_bits

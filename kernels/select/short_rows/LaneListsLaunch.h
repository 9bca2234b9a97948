#pragma once

#include "kernels/select/short_rows/ShortRowsLaunch.h"

namespace faiss_bits {

/// What LaneLists.cuh takes: 1 < k <= cols, keys without a bias. Rows of up to
/// 16 columns are sorted as a whole in as little time, but for k = 2 (measured,
/// H100).
constexpr int kMostLaneListsK = 8;
constexpr uint32_t kMostLaneListsCols = 512;
/// Of many rows; longer ones are FewOfPacks.cuh's.
constexpr uint32_t kMostManyLaneListsCols = 96;
constexpr uint32_t kMostWholeCols = 16;

/// The same of keys of 16 bits (NarrowLists.cuh); see hasNarrowLists.
constexpr int kMostNarrowListsK = 16;
constexpr uint32_t kMostNarrowListsCols = 16384;
/// Keys that a warp looks at together of longer rows.
constexpr uint32_t kLongNarrowCols = 1024;

/// Lanes that have a row, and keys of each.
struct LaneListsShape {
    int lanes;
    int items;
};

/// Rows are few up to so many for each multiprocessor: a warp for each can run
/// at the same time.
constexpr int64_t kFewShortRows = 16;

/// Of so many columns four lanes have a row, if a multiprocessor has 32 warps
/// so: most of what a warp does is the same for any number of rows.
constexpr uint32_t kMostColsOfFourLanes = 64;
constexpr uint64_t kLeastRowsOfFourLanes = 256;

/// For 1 < cols <= kMostLaneListsCols, or kMostManyLaneListsCols. Kernels have
/// every fourth number of items.
constexpr LaneListsShape laneListsShape(uint32_t cols, uint64_t rowsOfSm) {
    constexpr int kStep = 4;
    const bool isFew = rowsOfSm <= uint64_t(kFewShortRows);
    const bool isFour =
            rowsOfSm >= kLeastRowsOfFourLanes && cols <= kMostColsOfFourLanes;
    const int lanes = isFew && cols > 32 ? 32 : isFour ? 4 : 8;
    return {lanes, (int(cols) + kStep * lanes - 1) / (kStep * lanes) * kStep};
}

/// The same for keys of 16 bits, up to kMostNarrowListsCols. A lane has more of
/// them, so that fewer lists are merged, unless the rows of a multiprocessor
/// are so few that it would have less than 32 warps.
constexpr LaneListsShape narrowListsShape(uint32_t cols, uint64_t rowsOfSm) {
    uint32_t lanes = cols > 512           ? 32
            : cols > 256                  ? 16
            : cols > kMostColsOfFourLanes ? 8
                                          : 4;
    while (lanes < 32 && cols > 4 * lanes && rowsOfSm * lanes < 32 * 32) {
        lanes *= 2;
    }
    const uint32_t step = lanes * (cols <= 16 * lanes ? 4 : 8);
    const uint32_t all = cols < kLongNarrowCols
            ? (cols + step - 1) / step * step
            : kLongNarrowCols;
    return {int(lanes), int(all / lanes)};
}

/// Enqueues one launch. shape: laneListsShape or, for keys of 16 bits,
/// narrowListsShape.
template <class T>
void launchLaneLists(
        const ShortRowsParams& params,
        LaneListsShape shape,
        cudaStream_t stream);

} // namespace faiss_bits

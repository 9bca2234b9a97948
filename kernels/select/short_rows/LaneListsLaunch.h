#pragma once

#include "kernels/select/short_rows/ShortRowsLaunch.h"

namespace faiss_bits {

/// What LaneLists.cuh takes: 1 < k <= cols, keys without a bias. Rows of up to
/// 16 columns are sorted as a whole in as little time, but for k = 2 (measured,
/// H100).
constexpr int kMostLaneListsK = 8;
constexpr uint32_t kMostLaneListsCols = 512;
constexpr uint32_t kMostWholeCols = 16;

/// The same of keys of 16 bits (NarrowLists.cuh); with k beyond kMostLaneListsK
/// rows of more than so many columns.
constexpr int kMostNarrowListsK = 16;
constexpr uint32_t kMostNarrowListsCols = 16384;
constexpr uint32_t kMostFewNarrowCols = 64;
/// Keys that a warp looks at together of longer rows.
constexpr uint32_t kLongNarrowCols = 1024;

/// Lanes that have a row, and keys of each.
struct LaneListsShape {
    int lanes;
    int items;
};

/// For 1 < cols <= kMostLaneListsCols; isFew: rows are so few that each may
/// have a warp. Kernels have every fourth number of items, up to 16.
constexpr LaneListsShape laneListsShape(uint32_t cols, bool isFew) {
    constexpr int kStep = 4;
    const int lanes = cols > 256 || (isFew && cols > 32) ? 32
            : cols > 128                                 ? 16
                                                         : 8;
    return {lanes, (int(cols) + kStep * lanes - 1) / (kStep * lanes) * kStep};
}

/// The same for keys of 16 bits, up to kMostNarrowListsCols. A lane has more of
/// them, so that fewer lists are merged.
constexpr LaneListsShape narrowListsShape(uint32_t cols, bool isFew) {
    const int lanes = cols > 512 || (isFew && cols > 32) ? 32
            : cols > 256                                 ? 16
                                                         : 8;
    const int step = int(cols) <= 16 * lanes ? 4 : 8;
    const int most = int(kLongNarrowCols) / lanes;
    const int items = (int(cols) + step * lanes - 1) / (step * lanes) * step;
    return {lanes, items < most ? items : most};
}

/// Enqueues one launch. isFew: as laneListsShape, or
/// narrowListsShape.
template <class T>
void launchLaneLists(
        const ShortRowsParams& params,
        bool isFew,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include "kernels/select/short_rows/ShortRowsLaunch.h"

namespace faiss_bits {

/// What LaneLists.cuh takes: 1 < k <= cols, keys without a bias. Rows of up to
/// 16 columns are sorted as a whole in as little time, but for k = 2 (measured,
/// H100).
constexpr int kMostLaneListsK = 8;
constexpr uint32_t kMostLaneListsCols = 512;
constexpr uint32_t kMostWholeCols = 16;

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

/// Enqueues one launch. isFew: as laneListsShape.
template <class T>
void launchLaneLists(
        const ShortRowsParams& params,
        bool isFew,
        cudaStream_t stream);

} // namespace faiss_bits

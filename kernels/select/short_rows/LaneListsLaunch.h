#pragma once

#include "kernels/select/short_rows/ShortRowsLaunch.h"

namespace faiss_bits {

/// What LaneLists.cuh takes: 1 < k <= cols, keys without a bias. Rows of up to
/// 16 columns are sorted as a whole in as little time, but for k = 2 (measured,
/// H100).
constexpr int kMostLaneListsK = 8;
constexpr uint32_t kMostLaneListsCols = 512;
constexpr uint32_t kMostWholeCols = 16;

/// Enqueues one launch. isFew: rows are so few that each may have a warp.
template <class T>
void launchLaneLists(
        const ShortRowsParams& params,
        bool isFew,
        cudaStream_t stream);

} // namespace faiss_bits

#include "kernels/select/short_rows/FewOfRowsPlan.h"

#include <algorithm>

#include "kernels/select/short_rows/FewOfRowsLaunch.h"
#include "kernels/select/short_rows/ShortRowsPolicy.h"

namespace faiss_bits {

namespace {

constexpr idx_t kLeastCols = 33;
constexpr int kMostK = 32;

/// Lanes of a row, the columns of it up to which they are taken, and those that
/// are looked at at a time.
struct Lanes {
    int lanes;
    idx_t mostCols;
    idx_t mostTileCols;
};
/// A row costs its lanes a time that hardly depends on its columns: few lanes
/// for short rows, so that a warp has several.
constexpr Lanes kLanes[] = {
        {8, 256, 256},
        {16, 512, 512},
        {32, 16384, 1280}};

/// More in flight than two tiles of a warp, where those are small.
constexpr size_t kSmallStageBytes = 2560;
/// As FewOfTile has them: columns that a lane loads together, entries of a row.
constexpr idx_t kAhead = 4;
constexpr size_t kRoomOfLane = 4 * sizeof(uint64_t);
/// A block wants so much of its multiprocessor's shared memory beside its own.
constexpr size_t kReservedBytes = 1024;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

} // namespace

FewOfRowsPlan planFewOfRows(const SelectProblem& p) {
    FewOfRowsPlan plan;
    if (p.keyType != DataType::Float32 || p.hasColBias() || p.k < 2 ||
        p.k > kMostK || 4 * idx_t(p.k) > p.cols || p.cols < kLeastCols ||
        p.rows <= kFewShortRows * p.device.multiprocessors) {
        return plan;
    }
    const auto found =
            std::find_if(std::begin(kLanes), std::end(kLanes), [&](Lanes one) {
                return p.cols <= one.mostCols && p.k <= one.lanes;
            });
    if (found == std::end(kLanes)) {
        return plan;
    }
    // Up to half of the numbers: the limit then lets less than 1.4 k through in
    // random order.
    const int minima = 2 * p.k <= found->lanes ? 1 : 2;
    const idx_t lanes = found->lanes;
    const idx_t tiles = divUp(p.cols, found->mostTileCols);
    const idx_t step = kAhead * lanes;
    plan.tileCols = divUp(divUp(p.cols, tiles), step) * step;
    plan.tiles = divUp(p.cols, plan.tileCols);
    if (plan.tiles == 1) {
        plan.tileCols = p.cols;
    }
    // A row may begin up to three floats behind a multiple of 16 bytes; the
    // rows of a warp lie in different banks.
    plan.pitch = divUp(plan.tileCols, step) * step + (lanes < 32 ? lanes : 4);
    const size_t stage = size_t(32 / lanes) * plan.pitch * sizeof(float);
    plan.stages = stage <= kSmallStageBytes ? 3 : 2;
    constexpr size_t kWarps = kShortRowsThreads / 32;
    plan.sharedBytes =
            kWarps * plan.stages * stage + kShortRowsThreads * kRoomOfLane;
    const idx_t blocks = std::min<idx_t>(
            kFewOfRowsBlocks,
            p.device.sharedBytes / (plan.sharedBytes + kReservedBytes));
    if (blocks == 0 || plan.sharedBytes > p.device.blockSharedBytes) {
        return plan;
    }
    plan.minima = minima;
    plan.lanes = int(lanes);
    // All warps have as many rows, or one less.
    const idx_t sets = divUp(p.rows, 32 / lanes);
    const idx_t most = blocks * p.device.multiprocessors * idx_t(kWarps);
    plan.blocks = divUp(divUp(sets, divUp(sets, most)), idx_t(kWarps));
    return plan;
}

} // namespace faiss_bits

#include "kernels/select/short_rows/FewOfRowsPlan.h"

#include <algorithm>

#include "kernels/select/short_rows/FewOfRowsLaunch.h"
#include "kernels/select/short_rows/ShortRowsPolicy.h"

namespace faiss_bits {

namespace {

/// A kernel, what it takes, and the columns that it looks at at a time. Up to
/// half of its numbers are k: in random order the limit then lets less than
/// 1.4 k through.
struct Kernel {
    int lanes;
    int minima;
    bool isNarrow; // for keys of 16 bits alone
    int mostK;
    idx_t leastCols;
    idx_t mostCols;
    idx_t mostTileCols;
};
/// Where they were faster than the kernels that halve (measured, H200;
/// docs/design/selection_short_rows.md). The first that takes a row counts;
/// LaneLists.cuh has shorter ones, NarrowLists.cuh and NarrowRow.cuh have most
/// of 16-bit keys.
constexpr Kernel kKernels[] = {
        {32, 1, false, 10, 513, 1280, 1280},
        {32, 1, false, 8, 1281, 2560, 1280},
        {32, 2, true, 32, 1025, 1280, 1280}};

/// More in flight than two tiles of a warp, where those are small.
constexpr size_t kSmallStageBytes = 2560;
/// As FewOfTile has them: keys that a lane loads together, and room for
/// entries.
constexpr idx_t kAhead = 4;
constexpr size_t roomOfLane(int minima) {
    return (minima <= 2 ? 4 : 2 * minima) * sizeof(uint64_t);
}
/// What a block takes of its multiprocessor's shared memory beside its own.
constexpr size_t kReservedBytes = 1024;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

} // namespace

std::string FewOfRowsPlan::toString() const {
    return std::to_string(lanes) + " lanes a row, limits from " +
            std::to_string(lanes * minima) + " least keys, tiles of " +
            std::to_string(tileCols) + " columns, " + std::to_string(blocks) +
            " blocks";
}

FewOfRowsPlan planFewOfRows(const SelectProblem& p) {
    FewOfRowsPlan plan;
    if (p.hasColBias() || p.k < 2 || areFewShortRows(p) || hasLaneLists(p)) {
        return plan;
    }
    const auto found = std::find_if(
            std::begin(kKernels), std::end(kKernels), [&](const Kernel& one) {
                return p.cols >= one.leastCols && p.cols <= one.mostCols &&
                        p.k <= one.mostK &&
                        (!one.isNarrow || sizeOf(p.keyType) == 2);
            });
    if (found == std::end(kKernels)) {
        return plan;
    }
    const idx_t lanes = found->lanes;
    const idx_t step = kAhead * lanes;
    const idx_t size = sizeOf(p.keyType);
    const idx_t tiles = divUp(p.cols, found->mostTileCols);
    plan.tileCols =
            tiles == 1 ? p.cols : divUp(divUp(p.cols, tiles), step) * step;
    plan.tiles = divUp(p.cols, plan.tileCols);
    // A row begins up to 16 bytes behind a multiple of 16; the rows of a warp
    // lie in different banks.
    plan.pitch =
            divUp(plan.tileCols, step) * step + std::max(lanes % 32, 16 / size);
    const size_t stage = size_t(32 / lanes) * plan.pitch * size;
    plan.stages = stage <= kSmallStageBytes ? 3 : 2;
    constexpr idx_t kWarps = kShortRowsThreads / 32;
    plan.sharedBytes = kWarps * plan.stages * stage +
            kShortRowsThreads * roomOfLane(found->minima);
    const idx_t blocks = std::min<idx_t>(
            kFewOfRowsBlocks,
            p.device.sharedBytes / (plan.sharedBytes + kReservedBytes));
    if (blocks == 0 || plan.sharedBytes > p.device.blockSharedBytes) {
        return {};
    }
    // All warps have as many rows, or one less.
    const idx_t sets = divUp(p.rows, 32 / lanes);
    const idx_t most = blocks * p.device.multiprocessors * kWarps;
    plan.blocks = divUp(divUp(sets, divUp(sets, most)), kWarps);
    plan.minima = found->minima;
    plan.lanes = int(lanes);
    return plan;
}

} // namespace faiss_bits

#include "kernels/select/threshold/CombPlan.h"

#include <algorithm>
#include <cmath>

#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

namespace {

/// Rows by combs: so many rows for each multiprocessor, so many columns, and up
/// to so many results (measured, H200). Rows up to kMostShortCombCols take all
/// k, those up to kMostMiddleCombCols not those between few and so many that
/// short_rows has hardly room for them.
constexpr idx_t kLeastCombRows = 4;
constexpr idx_t kLeastCombCols = 2048;
constexpr idx_t kMostShortCombCols = 10240;
constexpr idx_t kMostMiddleCombCols = 16384;
constexpr idx_t kMostCombCols = 65536;
constexpr idx_t kMostNarrowCombCols = 36864; // of 16-bit keys
constexpr int kMostCombK = 256;
constexpr int kMostFloatCombK = 64;
constexpr int kMostNarrowCombK = 128; // of 16-bit keys
constexpr int kLeastCrowdedK = 193;
constexpr int kMostCombThreads = 256;
/// Floats of longer rows take larger k where they are many.
constexpr idx_t kManyLongCombRows = 16;
constexpr int kMostManyCombK = 128;

/// In place of short_rows, from so many columns on: few rows, long ones, and
/// large k; but not 16-bit keys where it has lists of lanes, nor, of few rows,
/// where these are numbers there (measured, H200).
constexpr idx_t kLeastColsForShort = 6144;
constexpr idx_t kMostRowsForShort = 8;
constexpr int kMostListsK = 7;
constexpr int kMostNumbersK = 16;

/// Rows of so many tiles and more lower their limit on the way.
constexpr double kLeastLoweredTiles = 6;

/// Bytes of rows that are read faster by many small blocks than by fewer.
constexpr idx_t kMostSmallBytes = 48 * 1024;

/// Small blocks for short rows, where some read while others search or sort,
/// and for rows that larger ones would take a second round for; for few rows as
/// many threads as there is room for.
int combThreads(const SelectProblem& p) {
    const double part = double(p.rows) / p.device.multiprocessors;
    if (p.k > 128 || part <= 4) {
        return 256;
    }
    if (p.k > 64 || part <= 8) {
        return 128;
    }
    const bool isSmall = p.cols * idx_t(sizeOf(p.keyType)) <= kMostSmallBytes;
    return isSmall || part <= 12 ? 64 : 128;
}

/// Survivors that a block has room for.
double combCapacity(const SelectProblem& p, const ThresholdPlan& plan) {
    const int threads = plan.policy.threads;
    const double tiles =
            std::max(32.0 * threads * kCombPacks, 16.0 * plan.policy.room);
    // A bin for each of a thread's four, or for each place of a sort, and what
    // the block's warps tell each other; what a block takes beside its own.
    const double storage =
            4.0 * std::max(4 * threads, plan.policy.room) + 768 + 1024;
    const double bytes =
            std::floor(double(p.device.sharedBytes) * threads / kCombThreads) -
            storage - tiles;
    return std::floor(bytes / 8);
}

bool areAtLeast(const SelectProblem& p, idx_t rows) {
    return p.rows >= rows * p.device.multiprocessors;
}

bool takesResults(const SelectProblem& p) {
    const bool isNarrow = sizeOf(p.keyType) == 2;
    if (p.k < 2 || p.k > kMostCombK) {
        return false;
    }
    if (p.cols <= kMostShortCombCols) {
        return true;
    }
    if (p.cols <= kMostMiddleCombCols) {
        return p.k <= (isNarrow ? kMostNarrowCombK : kMostFloatCombK) ||
                p.k >= kLeastCrowdedK;
    }
    return isNarrow || p.k <= kMostFloatCombK ||
            (p.k <= kMostManyCombK && areAtLeast(p, kManyLongCombRows));
}

/// With blocks of so many threads, if their survivors have room.
bool planThreads(const SelectProblem& p, int threads, ThresholdPlan& plan) {
    plan = {};
    plan.isComb = true;
    plan.policy = policyFor(kCombRowsPolicies, threads, p.k);
    const double tileKeys = 16.0 * kCombPacks * threads / sizeOf(p.keyType);
    const double tiles = std::ceil(double(p.cols) / tileKeys);
    // The limit of a part f of the row lets k / f through in all of it: lowered
    // after the root of the tiles, least pass in all.
    double survivors = p.k * tiles;
    if (tiles >= kLeastLoweredTiles) {
        plan.firstPart = uint32_t(std::sqrt(tiles) + 0.5);
        plan.partGrowth = 4;
        survivors = p.k * (plan.firstPart + tiles / plan.firstPart);
    }
    plan.capacity =
            uint32_t(std::clamp(combCapacity(p, plan), 0.0, double(p.cols)));
    plan.expected = uint32_t(survivors * 1.25);
    return plan.policy.room > 0 &&
            plan.capacity >=
            std::max(plan.expected, uint32_t(p.k) + kLeastFusedRoom);
}

} // namespace

bool planCombRows(const SelectProblem& p, ThresholdPlan& plan) {
    const idx_t mostCols =
            sizeOf(p.keyType) == 2 ? kMostNarrowCombCols : kMostCombCols;
    if (p.hasColBias() || p.cols < kLeastCombCols || p.cols > mostCols ||
        !areAtLeast(p, kLeastCombRows) || !takesResults(p)) {
        return false;
    }
    for (int threads = combThreads(p); threads <= kMostCombThreads;
         threads *= 2) {
        if (planThreads(p, threads, plan)) {
            return true;
        }
    }
    return false;
}

bool combsAreFaster(const SelectProblem& p) {
    const bool areFew = p.rows <= kMostRowsForShort * p.device.multiprocessors;
    const bool areLists = sizeOf(p.keyType) == 2 &&
            p.k <= (areFew ? kMostNumbersK : kMostListsK);
    ThresholdPlan plan;
    return p.cols >= kLeastColsForShort && !areLists &&
            (areFew || p.cols > kMostShortCombCols || p.k >= kLeastCrowdedK) &&
            planCombRows(p, plan);
}

} // namespace faiss_bits

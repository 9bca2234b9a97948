#include "kernels/select/threshold/CombPlan.h"

#include <algorithm>
#include <cmath>

#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

namespace {

/// Rows by combs: so many rows for each multiprocessor, and up to so many
/// columns and results, of longer rows fewer (measured, H200).
constexpr idx_t kLeastCombRows = 4;
constexpr idx_t kLeastCombCols = 2048;
constexpr idx_t kMostCombCols = 36864;
constexpr idx_t kMostShortCombCols = 10240;
constexpr int kMostCombK = 256;
constexpr int kMostLongCombK = 64;
constexpr int kMostLongNarrowCombK = 128;
constexpr int kMostCombThreads = 256;

/// In place of short_rows: from so many columns on, for k that its kernels have
/// hardly room for, for few rows, and for 16-bit keys of so large a k that
/// those are not numbers there (measured, H200).
constexpr idx_t kLeastColsOfFew = 6144;
constexpr idx_t kMostRowsOfFew = 8;
constexpr int kLeastCrowdedK = 193;
constexpr idx_t kLeastNarrowCols = 5120;
constexpr int kLeastNarrowK = 17;

/// Rows of so many tiles and more lower their limit on the way.
constexpr double kLeastLoweredTiles = 6;

/// Bytes of rows that are read faster by many small blocks than by fewer.
constexpr idx_t kMostSmallBytes = 48 * 1024;

/// The share of the places for blocks that have a row, in all rounds of them.
double filled(const SelectProblem& p, int threads) {
    const double slots =
            double(p.device.multiprocessors) * kCombThreads / threads;
    const double rounds = p.rows / slots;
    return rounds / std::ceil(rounds);
}

/// Small blocks for short rows, where some read while others search or sort,
/// but for few rows as many threads as there is room for.
int combThreads(const SelectProblem& p) {
    const double part = double(p.rows) / p.device.multiprocessors;
    if (p.k > 128 || part <= 4) {
        return 256;
    }
    if (p.k > 64 || part <= 8) {
        return 128;
    }
    const bool isSmall = p.cols * idx_t(sizeOf(p.keyType)) <= kMostSmallBytes;
    return isSmall || filled(p, 64) > filled(p, 128) + 0.1 ? 64 : 128;
}

/// Survivors that a block has room for.
double combCapacity(const SelectProblem& p, const ThresholdPlan& plan) {
    const int threads = plan.policy.threads;
    const double tiles = std::max(
            32.0 * threads * kCombPacks, 16.0 * plan.policy.room);
    // A bin for each of a thread's four, or for each place of a sort, and what
    // the block's warps tell each other; what a block takes beside its own.
    const double storage =
            4.0 * std::max(4 * threads, plan.policy.room) + 768 + 1024;
    const double bytes =
            std::floor(double(p.device.sharedBytes) * threads / kCombThreads) -
            storage - tiles;
    return std::floor(bytes / 8);
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
    plan.capacity = uint32_t(
            std::clamp(combCapacity(p, plan), 0.0, double(p.cols)));
    plan.expected = uint32_t(survivors * 1.25);
    return plan.policy.room > 0 &&
            plan.capacity >=
            std::max(plan.expected, uint32_t(p.k) + kLeastFusedRoom);
}

} // namespace

bool planCombRows(const SelectProblem& p, ThresholdPlan& plan) {
    const int mostOfLong = sizeOf(p.keyType) == 2 ? kMostLongNarrowCombK
                                                  : kMostLongCombK;
    if (p.hasColBias() || p.k < 2 || p.cols < kLeastCombCols ||
        p.cols > kMostCombCols ||
        p.k > (p.cols > kMostShortCombCols ? mostOfLong : kMostCombK) ||
        p.rows < kLeastCombRows * p.device.multiprocessors) {
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
    const bool isNarrow = sizeOf(p.keyType) == 2;
    const bool isCrowded = p.k >= kLeastCrowdedK && p.cols >= kLeastColsOfFew;
    const bool areFew = p.rows <= kMostRowsOfFew * p.device.multiprocessors &&
            p.cols >= kLeastColsOfFew;
    const bool isMiddling = isNarrow && p.k <= kMostLongNarrowCombK &&
            p.cols >= kLeastNarrowCols;
    const bool areNumbers = isNarrow && p.k < kLeastNarrowK;
    ThresholdPlan plan;
    return (isCrowded || areFew || isMiddling) && !areNumbers &&
            planCombRows(p, plan);
}

} // namespace faiss_bits

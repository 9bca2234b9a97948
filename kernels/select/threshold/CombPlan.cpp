#include "kernels/select/threshold/CombPlan.h"

#include <algorithm>
#include <cmath>

#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

namespace {

/// Rows by combs: up to so many results, and columns (measured, H200).
constexpr int kMostCombK = 256;
constexpr int kMostCombThreads = 256;
constexpr idx_t kLeastCombCols = 1025;
constexpr idx_t kMostCombCols = idx_t(1) << 16;

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
    if (p.hasColBias() || p.k < 2 || p.k > kMostCombK ||
        p.cols < kLeastCombCols || p.cols > kMostCombCols) {
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

bool takesCombRows(const SelectProblem& p) {
    ThresholdPlan plan;
    return planCombRows(p, plan);
}

} // namespace faiss_bits

#include "kernels/select/threshold/CombPlan.h"

#include <algorithm>
#include <cmath>

#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

namespace {

/// Rows by combs: up to so many results, and columns (measured, H200).
constexpr int kMostCombK = 256;
constexpr idx_t kLeastCombCols = 1025;
constexpr idx_t kMostCombCols = idx_t(1) << 16;

/// Small blocks for short rows: as many as there are, some read while others
/// search or sort.
int combThreads(const SelectProblem& p) {
    if (p.k > 128) {
        return 256;
    }
    return p.k > 32 || p.cols > 8192 ? 128 : 64;
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

} // namespace

bool planCombRows(const SelectProblem& p, ThresholdPlan& plan) {
    if (p.hasColBias() || p.k < 2 || p.k > kMostCombK ||
        p.cols < kLeastCombCols || p.cols > kMostCombCols) {
        return false;
    }
    plan = {};
    plan.isComb = true;
    plan.policy = policyFor(kCombRowsPolicies, combThreads(p), p.k);
    const double tileKeys =
            16.0 * kCombPacks * plan.policy.threads / sizeOf(p.keyType);
    const double capacity = combCapacity(p, plan);
    if (plan.policy.room == 0 || capacity < p.k + double(kLeastFusedRoom)) {
        return false;
    }
    plan.capacity = uint32_t(std::min(capacity, double(p.cols)));
    const double tiles =
            std::ceil(double(p.cols) / tileKeys);
    // The first tile lets about k through in each tile; lowered after the root
    // of the tiles, hardly more than twice k in all that follow.
    if (tiles >= 6) {
        plan.firstPart = uint32_t(std::sqrt(tiles) + 0.5);
        plan.partGrowth = 4;
    }
    return true;
}

bool takesCombRows(const SelectProblem& p) {
    ThresholdPlan plan;
    return planCombRows(p, plan);
}

} // namespace faiss_bits

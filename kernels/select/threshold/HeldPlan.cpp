#include "kernels/select/threshold/HeldPlan.h"

#include <algorithm>

#include "kernels/common/KernelLaunch.h"
#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

namespace {

/// A device with fewer has parts that are too small for the largest clusters.
constexpr int kManyMultiprocessors = 100;

/// Rows that are held in registers: up to so many results; columns of a row,
/// and of one of several blocks, which are more where a multiprocessor has a
/// block already.
constexpr int kMostHeldK = 1024;
constexpr int kHeldThreads = 512;
constexpr idx_t kLeastHeldCols = 1025;
constexpr idx_t kFewHeldCols = idx_t(kHeldThreads) * kMostHeldItems / 2;
constexpr idx_t kMostHeldCols = idx_t(kHeldThreads) * kMostHeldItems;
/// Survivors that the blocks of a row have room for, and beyond k each of them.
constexpr uint32_t kHeldRoom = 8192;
constexpr uint32_t kLeastHeldRoom = 64;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

/// Blocks that hold a row, a power of two: as many as its columns want, or
/// twice as many, if each has a multiprocessor. 0: the row is too long.
int heldBlocks(const SelectProblem& p) {
    const idx_t most =
            p.device.computeCapability < 90 ? 1 : mostClusterBlocks(p.device);
    idx_t blocks = 1;
    while (blocks < most && divUp(p.cols, blocks) > kFewHeldCols &&
           (divUp(p.cols, blocks) > kMostHeldCols ||
            2 * p.rows * blocks <= p.device.multiprocessors)) {
        blocks *= 2;
    }
    return divUp(p.cols, blocks) <= kMostHeldCols ? int(blocks) : 0;
}

} // namespace

int mostClusterBlocks(const DeviceTraits& device) {
    return device.multiprocessors >= kManyMultiprocessors ? kMostCluster
                                                          : kPortableCluster;
}

/// Few rows take one launch, and one read of each. Many are read faster by
/// others, and clusters lose where their blocks share multiprocessors
/// (measured, H200).
bool planHeldRows(const SelectProblem& p, ThresholdPlan& plan) {
    if (p.k > kMostHeldK || p.hasColBias() || p.cols < kLeastHeldCols) {
        return false;
    }
    const int blocks = heldBlocks(p);
    const idx_t most = (blocks == 1 ? 2 : 1) * p.device.multiprocessors;
    if (blocks == 0 || p.rows * blocks > most) {
        return false;
    }
    const ThresholdPolicy policy =
            policyFor(kHeldRowsPolicies, kHeldThreads, p.k);
    const uint32_t room =
            std::min(kHeldRoom / blocks, 4 * uint32_t(kHeldThreads));
    const uint32_t capacity = std::max(room, uint32_t(p.k) + kLeastHeldRoom);
    // And what the sort and the search for the limit take.
    const size_t bytes = kHeldStorageBytes + 16 * size_t(policy.room) +
            8 * size_t(blocks) * capacity;
    if (bytes > p.device.blockSharedBytes) {
        return false;
    }
    plan = {};
    plan.isHeld = true;
    plan.policy = policy;
    plan.sampleParts = uint32_t(blocks);
    plan.capacity = capacity;
    plan.batchRows = p.rows;
    plan.segment = uint32_t(divUp(p.cols, blocks));
    return true;
}

bool holdsRows(const SelectProblem& p) {
    ThresholdPlan plan;
    return planHeldRows(p, plan);
}

} // namespace faiss_bits

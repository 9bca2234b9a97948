#include "research/queues/QueuePlan.h"

#include <algorithm>

#include "kernels/common/Error.h"
#include "research/queues/QueueProblem.h"

namespace faiss_bits {

namespace {

/// Queues and levels of one round of launches, unless a few rows need more.
constexpr idx_t kScratchBytes = idx_t(3) << 30;
constexpr int kMaxThreadsPerRow = 1 << 17;
/// Columns that a warp takes at a time (kOffer of LaneSearch.cuh each thread).
constexpr idx_t kWarpStep = 16 * kQueueLanes;

bool isPowerOfTwo(int x) {
    return x > 0 && (x & (x - 1)) == 0;
}

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

void checkOptions(const QueueSelectOptions& o) {
    BITS_THROW_IF_NOT_FMT(
            o.queue == QueueKind::Insertion || o.queue == QueueKind::Heap ||
                    o.queue == QueueKind::Merge,
            "queue = %d is no queue",
            int(o.queue));
    BITS_THROW_IF_NOT_FMT(
            !o.aligned || o.queue == QueueKind::Merge,
            "aligned = true needs queue = Merge");
    BITS_THROW_IF_NOT_FMT(
            o.buffered || !o.localSort, "localSort = true needs buffered");
    BITS_THROW_IF_NOT_FMT(
            o.buffered || o.flushTogether,
            "flushTogether = false needs buffered");
    BITS_THROW_IF_NOT_FMT(
            o.partition == 0 ||
                    (o.partition >= 2 && o.partition <= 16 &&
                     isPowerOfTwo(o.partition)),
            "partition = %d is not 0, 2, 4, 8 or 16",
            o.partition);
    BITS_THROW_IF_NOT_FMT(
            o.threadsPerRow == 0 ||
                    (isPowerOfTwo(o.threadsPerRow) &&
                     o.threadsPerRow <= kMaxThreadsPerRow),
            "threadsPerRow = %d is neither 0 nor a power of two to %d",
            o.threadsPerRow,
            kMaxThreadsPerRow);
    BITS_THROW_IF_NOT_FMT(
            isPowerOfTwo(o.firstLevel) && o.firstLevel <= kMaxQueueK,
            "firstLevel = %d is no power of two to %d",
            o.firstLevel,
            kMaxQueueK);
    BITS_THROW_IF_NOT_FMT(
            o.memory == QueueMemory::Auto || o.memory == QueueMemory::Shared ||
                    o.memory == QueueMemory::Global,
            "memory = %d is no memory",
            int(o.memory));
}

/// A Merge Queue is m, 2m, 4m, ... long: it keeps some more than k.
int queueSizeFor(int k, const QueueSelectOptions& options) {
    if (options.queue != QueueKind::Merge || k <= options.firstLevel) {
        return k;
    }
    int size = options.firstLevel;
    while (size < k) {
        size *= 2;
    }
    return size;
}

int lanesLogFor(
        const SelectProblem& p,
        const QueueSelectOptions& options,
        int queueSize) {
    int log = 0;
    if (options.threadsPerRow > 0) {
        while ((1 << log) < options.threadsPerRow) {
            ++log;
        }
        return log;
    }
    // Every thread keeps k of its own columns: with few columns it would keep
    // most of them. The partition pays where a thread has many.
    const idx_t wanted =
            idx_t(p.device.multiprocessors) * (options.partition ? 128 : 512);
    const idx_t least = idx_t(queueSize) * (options.partition ? 64 : 4);
    while ((p.rows << log) < wanted && (p.cols >> (log + 1)) >= least &&
           (2 << log) <= kMaxThreadsPerRow) {
        ++log;
    }
    return log;
}

} // namespace

QueuePlan planQueueSelect(
        const SelectProblem& p,
        const QueueSelectOptions& options) {
    checkQueueShape(p);
    checkOptions(options);
    QueuePlan plan;
    plan.queueSize = queueSizeFor(p.k, options);
    plan.lanesLog = lanesLogFor(p, options, plan.queueSize);
    const idx_t lanes = idx_t(1) << plan.lanesLog;
    const idx_t warpsPerRow = divUp(lanes, kQueueLanes);
    const idx_t rowsPerWarp = std::max<idx_t>(kQueueLanes / lanes, 1);

    idx_t levelItems = 0;
    if (options.partition > 0) {
        plan.segment = std::max<idx_t>(divUp(p.cols, lanes), 1);
        while ((1 << plan.groupLog) < options.partition) {
            ++plan.groupLog;
        }
        for (idx_t size = plan.segment; size > p.k;) {
            size = divUp(size, options.partition);
            plan.levelSizes.push_back(uint32_t(size));
            levelItems += size;
        }
    } else if (warpsPerRow == 1) {
        plan.segment = p.cols;
    } else {
        // Whole steps keep the loads of every warp aligned.
        plan.segment = divUp(divUp(p.cols, warpsPerRow), kWarpStep) * kWarpStep;
    }

    const idx_t queueBytes = idx_t(plan.queueSize) * kQueueLanes *
            sizeof(uint64_t) * (options.partition ? 2 : 1);
    const idx_t bytesOfGroup = warpsPerRow * queueBytes +
            rowsPerWarp * lanes * levelItems * idx_t(sizeof(uint32_t));
    plan.rowsAtOnce = std::min(
            std::max<idx_t>(kScratchBytes / bytesOfGroup, 1) * rowsPerWarp,
            p.rows);
    plan.sortPasses = planSortPasses(
            plan.rowsAtOnce,
            lanes * plan.queueSize,
            p.k,
            0,
            p.device.multiprocessors);
    return plan;
}

} // namespace faiss_bits

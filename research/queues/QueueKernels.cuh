/// One warp a block; every thread selects from its own columns with its own
/// queue. queueScanKernel goes through the keys, queueDescendKernel down a
/// Hierarchical Partition.
#pragma once

#include "kernels/common/CudaCheck.h"
#include "research/queues/LaneSearch.cuh"
#include "research/queues/QueueKeys.cuh"
#include "research/queues/QueueLaunch.h"

namespace faiss_bits {

/// A thread of a queue kernel: its row, and its place among the row's threads.
struct QueueLane {
    int lane;
    uint64_t number; // of all threads of all rows
    uint32_t localRow;
    uint32_t place;
    bool hasRow;

    __device__ explicit QueueLane(const QueueParams& p)
            : lane(threadIdx.x),
              number(uint64_t(blockIdx.x) * kQueueLanes + lane),
              localRow(uint32_t(number >> p.lanesLog)),
              place(uint32_t(number & ((uint64_t(1) << p.lanesLog) - 1))),
              hasRow((number >> p.lanesLog) < p.rows) {}
};

template <QueueKind Kind, bool Aligned>
__device__ __forceinline__ LaneSearch<Kind, Aligned> makeSearch(
        const QueueParams& p,
        uint64_t* shared,
        uint64_t* globalQueues) {
    const size_t queueSlots = size_t(p.queueSize) * kQueueLanes;
    uint64_t* queues =
            p.sharedQueues ? shared : globalQueues + blockIdx.x * queueSlots;
    uint64_t* buffers = p.sharedQueues ? shared + queueSlots : shared;
    LaneSearch<Kind, Aligned> search{
            {queues + threadIdx.x, p.queueSize, p.firstLevel},
            buffers + threadIdx.x,
            p.buffered,
            p.flushTogether,
            p.localSort};
    search.queue.clear();
    return search;
}

/// The columns of a warp that a thread takes at a time: kOffer, four
/// neighbours each where rows are aligned.
struct ScanStep {
    const QueueParams& p;
    int group; // threads of the warp that share the row
    int place; // of this thread among them

    __device__ __forceinline__ idx_t columnOffset(int i) const {
        const int four = i / 4;
        return p.select.vectorLoads ? idx_t(four * group + place) * 4 + i % 4
                                    : idx_t(i) * group + place;
    }

    /// `row` has the columns to `end`; what is beyond is left as it is.
    template <class T>
    __device__ __forceinline__ void load(
            const T* row,
            idx_t begin,
            idx_t end,
            float (&values)[kOffer]) const {
        if (p.select.vectorLoads && begin + idx_t(group) * kOffer <= end) {
#pragma unroll
            for (int i = 0; i < kOffer; i += 4) {
                float four[4];
                loadFour(row + begin + columnOffset(i), four);
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    values[i + j] = four[j];
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < kOffer; ++i) {
                const idx_t column = begin + columnOffset(i);
                if (column < end) {
                    values[i] = toFloat(row[column]);
                }
            }
        }
    }
};

template <QueueKind Kind, bool Aligned>
__global__ __launch_bounds__(kQueueLanes, 12) void queueScanKernel(
        const __grid_constant__ QueueParams p) {
    extern __shared__ uint64_t shared[];
    const QueueLane at(p);
    auto search = makeSearch<Kind, Aligned>(p, shared, p.outQueues);

    // A warp has one segment of a row, or several whole rows.
    const int groupLog = min(p.lanesLog, 5);
    const ScanStep step{
            p, 1 << groupLog, int(at.place & ((1u << groupLog) - 1))};
    const idx_t cols = p.select.cols;
    const idx_t first = min(idx_t(at.place >> groupLog) * p.segment, cols);
    const idx_t last = min(first + p.segment, cols);
    const idx_t end = at.hasRow ? last : first;
    const size_t rowStart =
            size_t(p.select.firstRow + at.localRow) * p.select.rowStride;
    const idx_t stepColumns = idx_t(step.group) * kOffer;

    float next[kOffer] = {};
    auto load = [&](idx_t begin) {
        withKeyType(p.keyType, [&](auto* typed) {
            step.load(
                    static_cast<decltype(typed)>(p.select.keys) + rowStart,
                    begin,
                    end,
                    next);
        });
    };
    load(first);
    for (idx_t begin = first; begin < last; begin += stepColumns) {
        uint64_t entries[kOffer];
#pragma unroll
        for (int i = 0; i < kOffer; ++i) {
            const idx_t column = begin + step.columnOffset(i);
            entries[i] = column < end
                    ? keyEntry(next[i], p.select.signMask, uint32_t(column))
                    : kNoEntry;
        }
        // In flight while the queues work.
        load(begin + stepColumns);
        search.offer(entries);
    }
    search.finish();

    if (p.sharedQueues) {
        const size_t slots = size_t(p.queueSize) * kQueueLanes;
        uint64_t* out = p.outQueues + blockIdx.x * slots + at.lane;
        for (int i = 0; i < p.queueSize; ++i) {
            out[i * kQueueLanes] = search.queue.at(i);
        }
    }
}

/// Top-down search of a Hierarchical Partition by one thread: the k best of a
/// level have the k best of the level below among their groups.
template <QueueKind Kind, bool Aligned>
struct DescendBody {
    const QueueParams& p;
    const QueueLane at;
    LaneSearch<Kind, Aligned> search;
    uint64_t* chosen; // best of the level above, slots as in a queue
    idx_t firstColumn;
    uint32_t columns; // of this thread

    __device__ uint32_t sizeOf(int level) const {
        const uint64_t group = uint64_t(1) << (p.groupLog * level);
        return uint32_t((columns + group - 1) / group);
    }

    /// Entry of item `index` of a level, which it has.
    __device__ __forceinline__ uint64_t
    entryOf(int level, uint32_t index) const {
        if (level > 0) {
            const uint32_t* keys =
                    p.levels[level - 1] + at.number * p.levelSizes[level - 1];
            return makeEntry(keys[index], index);
        }
        const size_t column = firstColumn + index;
        const size_t from =
                size_t(p.select.firstRow + at.localRow) * p.select.rowStride +
                column;
        uint64_t entry = kNoEntry;
        withKeyType(p.keyType, [&](auto* typed) {
            const auto* keys = static_cast<decltype(typed)>(p.select.keys);
            entry = keyEntry(keys[from], p.select.signMask, uint32_t(column));
        });
        return entry;
    }

    __device__ void run() {
        offerTop(p.numLevels);
        for (int level = p.numLevels - 1; level >= 0; --level) {
            saveChosen();
            search.queue.clear();
            offerChildren(level);
        }
        saveChosen();
    }

   private:
    /// All items of the highest level; k at most.
    __device__ void offerTop(int level) {
        const uint32_t size = sizeOf(level);
        for (uint32_t begin = 0; __any_sync(kFullWarp, begin < size);
             begin += kOffer) {
            uint64_t entries[kOffer];
#pragma unroll
            for (int i = 0; i < kOffer; ++i) {
                entries[i] =
                        begin + i < size ? entryOf(level, begin + i) : kNoEntry;
            }
            search.offer(entries);
        }
        search.finish();
    }

    __device__ void saveChosen() {
        for (int i = 0; i < p.queueSize; ++i) {
            chosen[i * kQueueLanes] = search.queue.at(i);
        }
    }

    /// The groups of the chosen, from the last slot, where the best are: the
    /// sooner the head falls, the fewer inserts.
    __device__ void offerChildren(int level) {
        const uint32_t size = sizeOf(level);
        const int step = kOffer >> p.groupLog;
        for (int slot = p.queueSize - 1; slot >= 0; slot -= step) {
            uint64_t entries[kOffer];
#pragma unroll
            for (int i = 0; i < kOffer; ++i) {
                const int from = slot - (i >> p.groupLog);
                const uint64_t parent =
                        from >= 0 ? chosen[from * kQueueLanes] : kNoEntry;
                const uint64_t index =
                        (uint64_t(entryColumn(parent)) << p.groupLog) +
                        (i & ((1 << p.groupLog) - 1));
                entries[i] = parent != kNoEntry && index < size
                        ? entryOf(level, uint32_t(index))
                        : kNoEntry;
            }
            search.offer(entries);
        }
        search.finish();
    }
};

template <QueueKind Kind, bool Aligned>
__global__ __launch_bounds__(kQueueLanes, 12) void queueDescendKernel(
        const __grid_constant__ QueueParams p) {
    extern __shared__ uint64_t shared[];
    const QueueLane at(p);
    const idx_t cols = p.select.cols;
    const idx_t first = min(idx_t(at.place) * p.segment, cols);
    const idx_t last = at.hasRow ? min(first + p.segment, cols) : first;
    const size_t slots = size_t(p.queueSize) * kQueueLanes;
    DescendBody<Kind, Aligned>{
            p,
            at,
            makeSearch<Kind, Aligned>(p, shared, p.workQueues),
            p.outQueues + blockIdx.x * slots + at.lane,
            first,
            uint32_t(last - first)}
            .run();
}

template <QueueKind Kind, bool Aligned>
void launchQueueSearch(
        const QueueParams& params,
        unsigned warps,
        int sharedBytes,
        cudaStream_t stream) {
    auto* kernel = params.groupLog > 0 ? queueDescendKernel<Kind, Aligned>
                                       : queueScanKernel<Kind, Aligned>;
    BITS_CUDA_CHECK(cudaFuncSetAttribute(
            kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sharedBytes));
    kernel<<<warps, kQueueLanes, sharedBytes, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits

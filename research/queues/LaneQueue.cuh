/// The queues of Tang 2015, III-B and III-C: one a thread, the largest entry
/// always in slot 0. Slots of the 32 threads of a warp interleave.
#pragma once

#include "kernels/device/Entry.cuh"
#include "research/queues/QueueParams.h"
#include "research/queues/QueueSelect.h"

namespace faiss_bits {

template <QueueKind Kind, bool Aligned>
struct LaneQueue {
    static_assert(!Aligned || Kind == QueueKind::Merge);

    uint64_t* slots; // of this thread, kQueueLanes apart
    int size;
    int firstLevel;           // Merge
    uint64_t head = kNoEntry; // slot 0

    __device__ __forceinline__ uint64_t& at(int slot) {
        return slots[slot * kQueueLanes];
    }

    __device__ void clear() {
        for (int i = 0; i < size; ++i) {
            at(i) = kNoEntry;
        }
        head = kNoEntry;
    }

    /// Puts `entry` in place of the head if it is less. Called by the threads
    /// `lanes` of the warp together.
    __device__ __forceinline__ void insert(uint64_t entry, unsigned lanes) {
        const bool enters = entry < head;
        if constexpr (Aligned) {
            if (!__any_sync(lanes, enters)) {
                return;
            }
            if (enters) {
                insertSorted(entry, min(firstLevel, size));
            }
            mergeWhereBroken(lanes);
            head = at(0);
        } else if (enters) {
            if constexpr (Kind == QueueKind::Insertion) {
                insertSorted(entry, size);
            } else if constexpr (Kind == QueueKind::Heap) {
                replaceRoot(entry);
            } else {
                insertSorted(entry, min(firstLevel, size));
                mergeWhereBroken(lanes);
            }
            head = at(0);
        }
    }

   private:
    /// Drops slot 0 of the descending list 0..count-1 and lets the larger
    /// ones move up. Several slots are read at a time: one after the other,
    /// the loop would wait for memory at every slot.
    __device__ __forceinline__ void insertSorted(uint64_t entry, int count) {
        constexpr int kAhead = 4;
        int slot = 0;
        while (slot + kAhead < count) {
            uint64_t next[kAhead];
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                next[i] = at(slot + 1 + i);
            }
            int moved = 0;
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                if (moved == i && !(next[i] < entry)) {
                    at(slot + i) = next[i];
                    ++moved;
                }
            }
            slot += moved;
            if (moved < kAhead) {
                at(slot) = entry;
                return;
            }
        }
        for (; slot + 1 < count; ++slot) {
            const uint64_t next = at(slot + 1);
            if (next < entry) {
                break;
            }
            at(slot) = next;
        }
        at(slot) = entry;
    }

    __device__ __forceinline__ void replaceRoot(uint64_t entry) {
        int slot = 0;
        for (int child = 1; child < size; child = 2 * slot + 1) {
            uint64_t larger = at(child);
            if (child + 1 < size) {
                const uint64_t other = at(child + 1);
                if (other > larger) {
                    larger = other;
                    ++child;
                }
            }
            if (larger <= entry) {
                break;
            }
            at(slot) = larger;
            slot = child;
        }
        at(slot) = entry;
    }

    /// Algorithm 2: level heads descend again. Where a merge is needed, 0 to
    /// next - 1 is one sorted list, as every level above was merged before it.
    /// Aligned: a thread whose heads are in order merges with the others,
    /// which changes nothing but the order inside its levels.
    __device__ __forceinline__ void mergeWhereBroken(unsigned lanes) {
        int previous = 0;
        for (int next = firstLevel; next < size; next *= 2) {
            bool broken = at(previous) < at(next);
            if constexpr (Aligned) {
                broken = __any_sync(lanes, broken);
            }
            if (!broken) {
                return;
            }
            mergeLists(next);
            previous = next;
        }
    }

    /// Reverse Bitonic Merge (Figure 2b) of two descending lists of `count`.
    __device__ __forceinline__ void mergeLists(int count) {
        for (int i = 0; i < count; ++i) {
            const uint64_t a = at(i);
            const uint64_t b = at(2 * count - 1 - i);
            if (a < b) {
                at(i) = b;
                at(2 * count - 1 - i) = a;
            }
        }
        int stride = count / 2;
        for (; stride >= 4; stride /= 8) {
            separate<3>(2 * count, stride);
        }
        if (stride == 2) {
            separate<2>(2 * count, stride);
        } else if (stride == 1) {
            separate<1>(2 * count, stride);
        }
    }

    /// Steps steps of the network, of strides stride, stride / 2, ..., on
    /// 2^Steps entries at a time in registers: the paper goes through memory
    /// for each.
    template <int Steps>
    __device__ __forceinline__ void separate(int count, int stride) {
        constexpr int kItems = 1 << Steps;
        const int unit = stride >> (Steps - 1);
        for (int group = 0; group < count / kItems; ++group) {
            const int inside = group & (unit - 1);
            const int first = (group - inside) * kItems + inside;
            uint64_t items[kItems];
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                items[i] = at(first + i * unit);
            }
#pragma unroll
            for (int step = kItems / 2; step >= 1; step /= 2) {
#pragma unroll
                for (int i = 0; i < kItems; ++i) {
                    if ((i & step) == 0) {
                        const uint64_t a = items[i];
                        const uint64_t b = items[i + step];
                        items[i] = a < b ? b : a;
                        items[i + step] = a < b ? a : b;
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                at(first + i * unit) = items[i];
            }
        }
    }
};

} // namespace faiss_bits

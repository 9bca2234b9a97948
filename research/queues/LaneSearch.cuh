/// Algorithms 1 and 3 of Tang 2015: a warp offers entries to its 32 queues,
/// one by one or through a buffer a thread.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "research/queues/LaneQueue.cuh"

namespace faiss_bits {

/// Entries that a thread offers at a time.
constexpr int kOffer = 16;

__device__ __forceinline__ unsigned warpOr(unsigned bits) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_or_sync(kFullWarp, bits);
#else
    for (int lanes = kWarpSize / 2; lanes >= 1; lanes /= 2) {
        bits |= __shfl_xor_sync(kFullWarp, bits, lanes);
    }
    return bits;
#endif
}

template <QueueKind Kind, bool Aligned>
struct LaneSearch {
    LaneQueue<Kind, Aligned> queue;
    uint64_t* buffer; // of this thread, kQueueLanes apart
    bool buffered;
    bool flushTogether;
    bool localSort;
    int held = 0;

    /// All threads of the warp, in step. kNoEntry is no offer.
    __device__ __forceinline__ void offer(const uint64_t (&entries)[kOffer]) {
        unsigned entering = 0;
#pragma unroll
        for (int i = 0; i < kOffer; ++i) {
            entering |= unsigned(entries[i] < queue.head) << i;
        }
        if (buffered) {
            if (__any_sync(kFullWarp, entering != 0)) {
                append(entries);
            }
        } else {
            insertAll(entries, warpOr(entering));
        }
    }

    /// Empties the buffers. All threads of the warp, in step.
    __device__ __forceinline__ void finish() {
        if (buffered) {
            flush(kFullWarp);
        }
    }

   private:
    /// One place of the list after the other, as the paper does: a thread
    /// waits where another has to insert. `places` has the bits of those at
    /// which any thread has to.
    __device__ __forceinline__ void insertAll(
            const uint64_t (&entries)[kOffer],
            unsigned places) {
#pragma unroll 1
        for (; places != 0; places &= places - 1) {
            uint64_t entry = kNoEntry;
#pragma unroll
            for (int i = 0; i < kOffer; ++i) {
                entry = (places & -places) >> i == 1 ? entries[i] : entry;
            }
            queue.insert(entry, kFullWarp);
            __syncwarp();
        }
    }

    __device__ __forceinline__ void append(const uint64_t (&entries)[kOffer]) {
        constexpr int kStep = 4;
#pragma unroll 1
        for (int step = 0; step < kOffer / kStep; ++step) {
#pragma unroll
            for (int i = 0; i < kStep; ++i) {
                uint64_t entry = entries[i];
#pragma unroll
                for (int j = 1; j < kOffer / kStep; ++j) {
                    entry = step == j ? entries[j * kStep + i] : entry;
                }
                if (entry < queue.head) {
                    buffer[held * kQueueLanes] = entry;
                    ++held;
                }
            }
            const bool full = held > kQueueBuffer - kStep;
            unsigned lanes = __ballot_sync(kFullWarp, full);
            if (flushTogether && lanes) {
                lanes = kFullWarp;
            }
            if ((lanes >> (threadIdx.x % kQueueLanes)) & 1) {
                flush(lanes);
            }
            __syncwarp();
        }
    }

    __device__ __forceinline__ void flush(unsigned lanes) {
        if (localSort) {
            sortBuffer();
        }
#pragma unroll 1
        for (int i = 0; __any_sync(lanes, i < held); ++i) {
            const uint64_t entry =
                    i < held ? buffer[i * kQueueLanes] : kNoEntry;
            // Sorted: what comes later is no better.
            if (localSort && !__any_sync(lanes, entry < queue.head)) {
                break;
            }
            queue.insert(entry, lanes);
        }
        held = 0;
    }

    /// Ascending, by a network: every thread takes the same steps.
    __device__ __forceinline__ void sortBuffer() {
        uint64_t items[kQueueBuffer];
#pragma unroll
        for (int i = 0; i < kQueueBuffer; ++i) {
            items[i] = i < held ? buffer[i * kQueueLanes] : kNoEntry;
        }
#pragma unroll
        for (int size = 2; size <= kQueueBuffer; size *= 2) {
#pragma unroll
            for (int stride = size / 2; stride >= 1; stride /= 2) {
#pragma unroll
                for (int i = 0; i < kQueueBuffer; ++i) {
                    if ((i & stride) == 0) {
                        const bool up = (i & size) == 0;
                        const uint64_t a = items[i];
                        const uint64_t b = items[i + stride];
                        const bool swap = (b < a) == up;
                        items[i] = swap ? b : a;
                        items[i + stride] = swap ? a : b;
                    }
                }
            }
        }
#pragma unroll
        for (int i = 0; i < kQueueBuffer; ++i) {
            buffer[i * kQueueLanes] = items[i];
        }
    }
};

} // namespace faiss_bits

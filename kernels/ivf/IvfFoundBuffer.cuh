/// What a warp finds, on its way to the rows. A place in a row takes an atomic
/// operation on global memory: many lanes ask at once, and go on until the
/// answer is needed, with the next ones in hand.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/LaneMask.cuh"
#include "kernels/ivf/IvfParams.h"

namespace faiss_bits {

/// In shared memory; it outlives an item of work.
class IvfFoundBuffer {
   public:
    static constexpr int kEntries = 64;

    struct alignas(16) Entry {
        uint32_t row;
        uint32_t list;
        uint32_t vector;
        float key;
    };
    /// Those that are collected, and those whose places are asked for.
    using Storage = Entry[2][kEntries];

    __device__ IvfFoundBuffer(Storage& entries, const IvfParams& params)
            : entries_(entries), params_(params) {}

    /// Appends entryOf(i) for every bit i of the lanes' masks. All lanes of the
    /// warp call it.
    template <class EntryOf>
    __device__ __forceinline__ void append(
            uint32_t mask,
            const EntryOf& entryOf) {
        uint32_t lanes = __ballot_sync(kFullWarp, mask != 0);
        while (lanes) {
            if (fill_ > kEntries - kWarpSize) {
                flush();
            }
            if (mask) {
                const int i = __ffs(mask) - 1;
                mask &= mask - 1;
                entries_[now_][fill_ + __popc(lanes & lanesBefore())] =
                        entryOf(i);
            }
            fill_ += __popc(lanes);
            lanes = __ballot_sync(kFullWarp, mask != 0);
        }
    }

    /// At the end: all are in their rows. All lanes of the warp call it.
    __device__ __forceinline__ void finish() {
        flush();
        flush();
    }

   private:
    static constexpr int kRounds = kEntries / kWarpSize;

    /// Sends those with places on, and asks for those of the others.
    __device__ __forceinline__ void flush() {
        __syncwarp();
        const int lane = threadIdx.x % kWarpSize;
#pragma unroll
        for (int i = 0; i < kRounds; ++i) {
            const int at = i * kWarpSize + lane;
            if (at < asked_ && places_[i] < params_.room) {
                const Entry found = entries_[now_ ^ 1][at];
                const bool isPacked = params_.firstFound != nullptr;
                const int64_t to = places_[i] +
                        (isPacked ? int64_t(params_.firstFound[found.row])
                                  : int64_t(found.row) * params_.room);
                params_.foundKeys[to] =
                        isPacked ? __uint_as_float(found.row) : found.key;
                params_.found[to] = uint64_t(found.list) << 32 | found.vector;
            }
            if (at < fill_) {
                places_[i] = atomicAdd(
                        &params_.numFound[entries_[now_][at].row], 1u);
            }
        }
        asked_ = fill_;
        fill_ = 0;
        now_ ^= 1;
        __syncwarp();
    }

    Storage& entries_;
    const IvfParams& params_;
    uint32_t places_[kRounds];
    // The same in all lanes.
    int fill_ = 0;
    int asked_ = 0;
    int now_ = 0;
};

} // namespace faiss_bits

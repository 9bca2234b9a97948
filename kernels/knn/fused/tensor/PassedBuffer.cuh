/// What passed, on its way from a warp's registers to the lists of queries.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/LaneMask.cuh"
#include "kernels/knn/fused/tensor/TensorScanParams.h"

namespace faiss_bits {

/// A warp's buffer in shared memory: an atomic operation on a list takes far
/// longer than the products of a tile, so that they are made 64 at a time,
/// all in flight together. Rows of lists are told by number, so that a buffer
/// outlives an item of work.
class PassedBuffer {
   public:
    static constexpr int kEntries = 64;

    __device__ PassedBuffer(uint64_t* entries, const TensorScanParams& params)
            : entries_(entries), params_(params) {}

    /// Appends one pair a bit of the lanes' masks; all lanes of the warp call
    /// it. Bit i stands for row i / kColumns and column i mod kColumns of those
    /// that a lane has in a part of a fragment (LimitTest). Returns bits of
    /// rows whose lists turned out to be full, perhaps not of all that are. The
    /// last argument says what value a bit stands for (PassedProducts).
    ///
    /// row, column   those of bit 0; kRowStep between rows 2 i and 2 i + 2,
    ///               8 between 2 i and 2 i + 1
    template <int kRows, int kColumns, int kRowStep, class ValueOf>
    __device__ __forceinline__ uint32_t
    append(uint32_t mask, uint32_t row, uint32_t column, const ValueOf&) {
        constexpr int kMany = 24;
        constexpr uint32_t kManyOfFew = 8; // pairs of few lanes
        uint32_t lanes = __ballot_sync(kFullWarp, mask != 0);
        if (__popc(lanes) >= kMany ||
            (params_.numQueries <= kFewLists &&
             __reduce_add_sync(kFullWarp, __popc(mask)) >= kManyOfFew)) {
            return appendAtOnce<kRows, kColumns, kRowStep>(
                    params_, mask, row, column);
        }
        // Mostly one bit of one lane.
        while (lanes) {
            if (fill_ > uint32_t(kEntries - kWarpSize)) {
                flush();
            }
            if (mask) {
                const uint32_t i = __ffs(mask) - 1;
                mask &= mask - 1;
                entries_[fill_ + __popc(lanes & lanesBefore())] =
                        uint64_t(row + rowOffset<kRowStep>(i / kColumns))
                                << 32 |
                        (column + columnOffset(i % kColumns));
            }
            fill_ += __popc(lanes);
            lanes = __ballot_sync(kFullWarp, mask != 0);
        }
        return 0;
    }

    /// Empties the buffer into the lists. All lanes of the warp call it.
    __device__ __forceinline__ void flush() {
        store(params_, entries_, fill_);
        fill_ = 0;
    }

   protected:
    template <int kRowStep>
    static __device__ __forceinline__ uint32_t rowOffset(uint32_t r) {
        return r / 2 * kRowStep + r % 2 * 8;
    }

    static __device__ __forceinline__ uint32_t columnOffset(uint32_t c) {
        return c / 2 * 8 + c % 2;
    }

    /// Padding passes where a limit is infinite, or a value NaN.
    static __device__ __forceinline__ bool isAllowed(
            const TensorScanParams& params,
            uint32_t row,
            uint32_t vector) {
        return row < params.numQueries && vector < params.numVectors &&
                (!params.allowedBits ||
                 (params.allowedBits[vector / 32] >> (vector % 32) & 1));
    }

    /// append() of many: one atomic operation a row and four lanes.
    /// put(place, vector, bit) stores one.
    template <int kRows, int kColumns, int kRowStep, class Put>
    static __device__ __forceinline__ uint32_t appendRows(
            const TensorScanParams& params,
            uint32_t mask,
            uint32_t row,
            uint32_t column,
            const Put& put) {
        const PassedLists& lists = params.passed;
        uint32_t full = 0;
        for (int r = 0; r < kRows; ++r) {
            uint32_t bits = mask >> (r * kColumns);
            bits &= kColumns == 32 ? ~0u : (1u << (kColumns % 32)) - 1;
            const uint32_t rowNow = row + rowOffset<kRowStep>(r);
            for (uint32_t left = bits; left; left &= left - 1) {
                const int c = __ffs(left) - 1;
                const uint32_t vector =
                        params.rows.vectorOf(column + columnOffset(c));
                if (!isAllowed(params, rowNow, vector)) {
                    bits &= ~(1u << c);
                }
            }
            // The four lanes that share a row are neighbours.
            const uint32_t mine = __popc(bits);
            uint32_t sum = mine;
            const int lane = threadIdx.x % 4;
#pragma unroll
            for (int distance = 1; distance < 4; distance *= 2) {
                const uint32_t other =
                        __shfl_up_sync(kFullWarp, sum, distance, 4);
                sum += lane >= distance ? other : 0;
            }
            uint32_t slot = 0;
            if (lane == 3 && sum > 0) {
                slot = atomicAdd(&lists.counts[rowNow], sum);
            }
            slot = __shfl_sync(kFullWarp, slot, 3, 4);
            // Nothing was appended where it is 0.
            full |= slot > lists.capacity ? 1u << r : 0;
            slot += sum - mine;
            for (; bits; bits &= bits - 1, ++slot) {
                if (slot < lists.capacity) {
                    const int c = __ffs(bits) - 1;
                    put(size_t(rowNow) * lists.capacity + slot,
                        params.rows.vectorOf(column + columnOffset(c)),
                        r * kColumns + c);
                }
            }
        }
        return full;
    }

   private:
    // Not members, so that the buffer stays in registers.
    static __device__ __noinline__ void store(
            const TensorScanParams& params,
            const uint64_t* entries,
            uint32_t fill) {
        const PassedLists& lists = params.passed;
        __syncwarp();
#pragma unroll
        for (int i = 0; i < kEntries / kWarpSize; ++i) {
            const uint32_t place = i * kWarpSize + threadIdx.x % kWarpSize;
            const uint64_t entry = place < fill ? entries[place] : 0;
            const uint32_t row = uint32_t(entry >> 32);
            const uint32_t vector = params.rows.vectorOf(uint32_t(entry));
            const bool isStored =
                    place < fill && isAllowed(params, row, vector);
            const uint32_t slot = takePlace(params, row, isStored);
            if (isStored && slot < lists.capacity) {
                lists.columns[size_t(row) * lists.capacity + slot] = vector;
            }
        }
        __syncwarp();
    }

    /// The place of an entry in its list; all lanes of the warp call it, those
    /// without an entry too. Where lists are few, one atomic operation for all
    /// lanes that share one: those of one address wait for one another.
    static __device__ __forceinline__ uint32_t
    takePlace(const TensorScanParams& params, uint32_t row, bool isStored) {
        if (params.numQueries > kFewLists) {
            return isStored ? atomicAdd(&params.passed.counts[row], 1u) : 0;
        }
        const uint32_t lanes =
                __match_any_sync(kFullWarp, isStored ? row : ~0u);
        const int first = __ffs(lanes) - 1;
        uint32_t slot = 0;
        if (isStored && int(threadIdx.x % kWarpSize) == first) {
            slot = atomicAdd(
                    &params.passed.counts[row], uint32_t(__popc(lanes)));
        }
        return __shfl_sync(kFullWarp, slot, first) +
                __popc(lanes & lanesBefore());
    }

    /// Many pass. Returns what append() does.
    template <int kRows, int kColumns, int kRowStep>
    static __device__ __noinline__ uint32_t appendAtOnce(
            const TensorScanParams& params,
            uint32_t mask,
            uint32_t row,
            uint32_t column) {
        return appendRows<kRows, kColumns, kRowStep>(
                params,
                mask,
                row,
                column,
                [&](size_t place, uint32_t vector, int) {
                    params.passed.columns[place] = vector;
                });
    }

    static constexpr uint32_t kFewLists = 16;

    uint64_t* entries_; // shared, [kEntries]
    const TensorScanParams& params_;
    uint32_t fill_ = 0; // the same in all lanes
};

} // namespace faiss_bits

/// Lists of queries that no other warp appends to.
#pragma once

#include "kernels/device/LaneSums.cuh"
#include "kernels/knn/fused/tensor/DenseTest.cuh"

namespace faiss_bits {

/// In place of a buffer of what passed: a place in a list takes no atomic
/// operation, and so no warp waits for one, with the other three that multiply
/// with it.
class OwnLists : private PassedBuffer {
   public:
    static constexpr int kEntries = 0;

    __device__ OwnLists(uint64_t*, const TensorScanParams& params)
            : PassedBuffer(nullptr, params), params_(params) {}

    /// Appends one vector a bit of the lanes' masks, of a row and the one 8
    /// further; all lanes of the warp call it. Bit c stands for column c of
    /// those that a lane has (LimitTest).
    ///
    /// column   of bit 0
    /// counts   of what the lists have, the same in all lanes of a row
    __device__ __forceinline__ void append(
            uint32_t (&masks)[2],
            uint32_t row,
            uint32_t column,
            uint32_t (&counts)[2]) const {
        keepAllowed(masks[0], row, column);
        keepAllowed(masks[1], row + 8, column);
        // Both rows in one word: they have at most 128 each.
        const uint32_t own = __popc(masks[0]) | __popc(masks[1]) << 16;
        const uint32_t sum = sumUpToLane<kRowLanes>(own);
        const uint32_t all =
                __shfl_sync(kFullWarp, sum, kRowLanes - 1, kRowLanes);
        const uint32_t before = sum - own;
        store(masks,
              row,
              column,
              counts[0] + (before & 0xffff),
              counts[1] + (before >> 16));
        counts[0] += all & 0xffff;
        counts[1] += all >> 16;
    }

    __device__ __forceinline__ uint32_t capacity() const {
        return params_.passed.capacity;
    }

    __device__ __forceinline__ void flush() const {}

   private:
    __device__ __forceinline__ void keepAllowed(
            uint32_t& mask,
            uint32_t row,
            uint32_t column) const {
        const uint32_t last = column + columnOffset(31);
        if (last < params_.numVectors && !params_.allowedBits) {
            return; // no padding: row i of the image has a vector if i < n
        }
        for (uint32_t left = mask; left; left &= left - 1) {
            const int c = __ffs(left) - 1;
            const uint32_t vector =
                    params_.rows.vectorOf(column + columnOffset(c));
            if (!isAllowed(params_, row, vector)) {
                mask &= ~(1u << c);
            }
        }
    }

    /// One loop for both rows: most lanes have a bit of one at most.
    __device__ __forceinline__ void store(
            const uint32_t (&masks)[2],
            uint32_t row,
            uint32_t column,
            uint32_t place,
            uint32_t place8) const {
        const PassedLists& lists = params_.passed;
        for (uint32_t low = masks[0], high = masks[1]; (low | high) != 0;) {
            const bool isLow = low != 0;
            const uint32_t mask = isLow ? low : high;
            const uint32_t vector = params_.rows.vectorOf(
                    column + columnOffset(__ffs(mask) - 1));
            const uint32_t at = isLow ? place : place8;
            if (at < lists.capacity) {
                const uint32_t its = isLow ? row : row + 8;
                lists.columns[size_t(its) * lists.capacity + at] = vector;
            }
            place += isLow;
            place8 += !isLow;
            high = isLow ? high : high & (high - 1);
            low &= low - 1; // 0 stays
        }
    }

    const TensorScanParams& params_;
};

/// DenseTest where an item of work has all vectors (TensorScanParams::chunks is
/// 1): the four lanes of a row count what its list has.
template <ScanNorms kNorms, int kBlocks, int kWidth, int kRowStep>
class OwnListTest : public DenseTest<kNorms, kBlocks, kWidth, kRowStep> {
    using Base = DenseTest<kNorms, kBlocks, kWidth, kRowStep>;
    using Base::kTakesNothing;
    using Base::limits_;
    using Base::maskOf;
    using Base::row_;

   public:
    using Base::kRows;
    static_assert(kRows == 2 && kWidth == 128);

    __device__ __forceinline__ void start(
            const TensorScanParams& params,
            uint32_t row) {
        Base::start(params, row);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const uint32_t i = row_ + 8 * r;
            counts_[r] = i < params.numQueries ? params.passed.counts[i] : 0;
        }
    }

    __device__ __forceinline__ void run(
            const float (&values)[kBlocks][kWidth / 2],
            const float*,
            uint32_t column,
            const OwnLists& lists) {
        uint32_t masks[kRows] = {maskOf(values, 0), maskOf(values, 1)};
        if (!__any_sync(kFullWarp, (masks[0] | masks[1]) != 0)) {
            return;
        }
        lists.append(
                masks, row_, column + 2 * (threadIdx.x % kRowLanes), counts_);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            limits_[r] =
                    counts_[r] > lists.capacity() ? kTakesNothing : limits_[r];
        }
    }

    /// Writes the counts of the item's rows.
    __device__ __forceinline__ void finish(
            const TensorScanParams& params,
            uint32_t) const {
        if (threadIdx.x % kRowLanes != 0) {
            return;
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const uint32_t i = row_ + 8 * r;
            if (i < params.numQueries) {
                params.passed.counts[i] = counts_[r];
            }
        }
    }

   private:
    uint32_t counts_[kRows];
};

/// FindPassingMany for lists of a warp's own.
struct FindPassingOwn {
    using Buffer = OwnLists;
    template <ScanNorms kNorms, int kBlocks, int kWidth, int kRowStep>
    using Test = OwnListTest<kNorms, kBlocks, kWidth, kRowStep>;
};

} // namespace faiss_bits

/// What passed, with its products, on its way to the lists of queries.
#pragma once

#include "kernels/knn/fused/tensor/LimitTest.cuh"

namespace faiss_bits {

/// As PassedBuffer, for PassedLists::products. A value is one of some 32
/// registers: to find it takes as many instructions.
class PassedProducts : private PassedBuffer {
   public:
    static constexpr int kEntries = 128; // words: two for each that passed

    __device__ PassedProducts(uint64_t* words, const TensorScanParams& params)
            : PassedBuffer(nullptr, params), words_(words), params_(params) {}

    /// As PassedBuffer::append.
    template <int kRows, int kColumns, int kRowStep, class ValueOf>
    __device__ __forceinline__ uint32_t
    append(uint32_t mask,
           uint32_t row,
           uint32_t column,
           const ValueOf& valueOf) {
        constexpr int kMany = 24;
        uint32_t lanes = __ballot_sync(kFullWarp, mask != 0);
        if (__popc(lanes) >= kMany) {
            return appendRows<kRows, kColumns, kRowStep>(
                    params_,
                    mask,
                    row,
                    column,
                    [&](size_t place, uint32_t vector, uint32_t bit) {
                        params_.passed.products[place] =
                                wordOf(valueOf(bit), vector);
                    });
        }
        while (lanes) {
            if (fill_ > uint32_t(kPairs - kWarpSize)) {
                flush();
            }
            if (mask) {
                const uint32_t i = __ffs(mask) - 1;
                mask &= mask - 1;
                const uint32_t place = fill_ + __popc(lanes & lanesBefore());
                words_[place] =
                        wordOf(valueOf(i), column + columnOffset(i % kColumns));
                words_[kPairs + place] =
                        row + rowOffset<kRowStep>(i / kColumns);
            }
            fill_ += __popc(lanes);
            lanes = __ballot_sync(kFullWarp, mask != 0);
        }
        return 0;
    }

    /// Empties the buffer into the lists. All lanes of the warp call it.
    __device__ __forceinline__ void flush() {
        store(params_, words_, fill_);
        fill_ = 0;
    }

   private:
    static constexpr int kPairs = kEntries / 2;

    static __device__ __forceinline__ uint64_t
    wordOf(float value, uint32_t column) {
        return uint64_t(__float_as_uint(value)) << 32 | column;
    }

    // Not a member, so that the buffer stays in registers.
    static __device__ __noinline__ void store(
            const TensorScanParams& params,
            const uint64_t* words,
            uint32_t fill) {
        const PassedLists& lists = params.passed;
        __syncwarp();
#pragma unroll
        for (int i = 0; i < kPairs / kWarpSize; ++i) {
            const uint32_t place = i * kWarpSize + threadIdx.x % kWarpSize;
            const uint64_t word = place < fill ? words[place] : 0;
            const uint32_t row =
                    place < fill ? uint32_t(words[kPairs + place]) : 0;
            const uint32_t vector = params.rows.vectorOf(uint32_t(word));
            const bool isStored =
                    place < fill && isAllowed(params, row, vector);
            const uint32_t slot =
                    isStored ? atomicAdd(&lists.counts[row], 1u) : 0;
            if (isStored && slot < lists.capacity) {
                lists.products[size_t(row) * lists.capacity + slot] =
                        word >> 32 << 32 | vector;
            }
        }
        __syncwarp();
    }

    uint64_t* words_; // shared, [kEntries]
    const TensorScanParams& params_;
    uint32_t fill_ = 0; // the same in all lanes
};

/// A scan that appends what passes with its products. In kernels of its own:
/// the registers of a value cannot be told by number.
struct FindPassingProducts {
    using Buffer = PassedProducts;
    template <ScanNorms kNorms, int kBlocks, int kWidth, int kRowStep>
    using Test = LimitTest<kNorms, kBlocks, kWidth, kRowStep>;
};

} // namespace faiss_bits

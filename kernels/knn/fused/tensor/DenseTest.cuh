/// LimitTest where most fragments have several values that pass.
#pragma once

#include "kernels/knn/fused/tensor/LimitTest.cuh"

namespace faiss_bits {

/// Has the interface of LimitTest, and its fragments, of at most 64 values a
/// lane. There are masks at once, with no first test whether anything passes:
/// the sign of each value less its limit is shifted into them, two instructions
/// a value.
template <ScanNorms kNorms, int kBlocks, int kWidth, int kRowStep>
class DenseTest : public LimitTest<kNorms, kBlocks, kWidth, kRowStep> {
    using Base = LimitTest<kNorms, kBlocks, kWidth, kRowStep>;
    static_assert(kNorms != ScanNorms::ToBeAdded);

   public:
    using Base::kRows;

    __device__ __forceinline__ void run(
            const float (&values)[kBlocks][kWidth / 2],
            const float*,
            uint32_t column,
            PassedBuffer& buffer) {
        uint32_t masks[kWords];
        uint32_t any = 0;
#pragma unroll
        for (int w = 0; w < kWords; ++w) {
            masks[w] = maskOf(values, w);
            any |= masks[w];
        }
        if (!__any_sync(kFullWarp, any != 0)) {
            return;
        }
#pragma unroll
        for (int w = 0; w < kWords; ++w) {
            const int first = w * kWordRows;
            const uint32_t full =
                    buffer.template append<kWordRows, kColumns, kRowStep>(
                            masks[w],
                            row_ + first / 2 * kRowStep + first % 2 * 8,
                            column + 2 * (threadIdx.x % kRowLanes),
                            [](uint32_t) { return 0.0f; });
#pragma unroll
            for (int r = 0; r < kWordRows; ++r) {
                float& limit = limits_[first + r];
                limit = full >> r & 1 ? kTakesNothing : limit;
            }
        }
    }

   protected:
    using Base::kTakesNothing;
    using Base::limits_;
    using Base::row_;

    static constexpr int kColumns = kWidth / 4; // of a lane
    static constexpr int kWordRows = 32 / kColumns;
    static constexpr int kWords = kRows / kWordRows;
    static_assert(kWordRows * kColumns == 32 && kWords * kWordRows == kRows);
    static_assert(kWordRows <= 2);

    /// Bit i: row i / kColumns of those of the word, column i mod kColumns.
    __device__ __forceinline__ uint32_t
    maskOf(const float (&values)[kBlocks][kWidth / 2], int word) const {
        uint32_t below = 0; // the last value's bit is the lowest
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            const int r = word * kWordRows + i / kColumns;
            const int c = i % kColumns;
            const float v = values[r / 2][c / 2 * 4 + 2 * (r % 2) + c % 2];
            // Exact as to its sign, as sums that begin with +0 are never -0;
            // the NaN of an operation has none, and passes.
            below = __funnelshift_l(__float_as_uint(v - limits_[r]), below, 1);
        }
        uint32_t mask = ~__brev(below);
#pragma unroll
        for (int r = 0; r < kWordRows; ++r) {
            constexpr uint32_t kOfRow = kColumns == 32 ? ~0u : 0xffffu;
            static_assert(kColumns == 32 || kColumns == 16);
            const bool takesNothing =
                    limits_[word * kWordRows + r] == kTakesNothing;
            mask &= takesNothing ? ~(kOfRow << (r * kColumns % 32)) : ~0u;
        }
        return mask;
    }
};

/// FindPassing, where most fragments have several that pass.
struct FindPassingMany {
    using Buffer = PassedBuffer;
    template <ScanNorms kNorms, int kBlocks, int kWidth, int kRowStep>
    using Test = DenseTest<kNorms, kBlocks, kWidth, kRowStep>;
};

} // namespace faiss_bits

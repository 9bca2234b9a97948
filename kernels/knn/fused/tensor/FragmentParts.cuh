/// What tests share that append what passes of a fragment.
#pragma once

#include "kernels/knn/fused/tensor/PassedBuffer.cuh"
#include "kernels/knn/fused/tensor/ScanRows.cuh"

namespace faiss_bits {

/// A fragment (LimitTest) in parts, each with a predicate of its own; bit
/// r * 2 kPairs + 2 p + odd of a part's mask stands for row r, pair p.
template <class Value, int kBlocks, int kWidth, int kRowStep>
class FragmentParts {
   public:
    static constexpr int kRows = 2 * kBlocks;

   protected:
    using Values = Value[kBlocks][kWidth / 2];
    static constexpr int kGroups = 4;                   // parts
    static constexpr int kPairs = kWidth / 8 / kGroups; // of columns
    static_assert(kRows * 2 * kPairs <= 32);

    /// normsOf(j): of the columns of pair j of the fragment; passes(value,
    /// norm, row of the lane).
    template <class NormsOf, class Passes>
    static __device__ __forceinline__ uint32_t
    maskOf(const Values& values,
           int part,
           const NormsOf& normsOf,
           const Passes& passes) {
        uint32_t mask = 0;
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            const int j = part * kPairs + p;
            const auto norms = normsOf(j);
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                const Value* v = &values[r / 2][4 * j + 2 * (r % 2)];
                const int bit = r * 2 * kPairs + 2 * p;
                mask |= passes(v[0], norms.x, r) ? 1u << bit : 0u;
                mask |= passes(v[1], norms.y, r) ? 2u << bit : 0u;
            }
        }
        return mask;
    }

    /// Appends what a part's mask has. Rows whose lists were found to be full
    /// take nothing from then on.
    ///
    /// row, column   of the fragment's first value, in this lane and in lane 0
    /// keptOf(bit)   what PassedProducts keeps of a value
    template <class Buffer, class Limit, class KeptOf>
    static __device__ __forceinline__ void appendPart(
            Buffer& buffer,
            int part,
            uint32_t mask,
            uint32_t row,
            uint32_t column,
            Limit (&limits)[kRows],
            Limit takesNothing,
            const KeptOf& keptOf) {
        const int lane = threadIdx.x % kRowLanes;
        const uint32_t full =
                buffer.template append<kRows, 2 * kPairs, kRowStep>(
                        mask,
                        row,
                        column + 8 * part * kPairs + 2 * lane,
                        keptOf);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            limits[r] = full >> r & 1 ? takesNothing : limits[r];
        }
    }

    /// The value that a bit of a part's mask stands for, of kCount from kFirst
    /// on: selected, as registers have no numbers.
    template <int kFirst = 0, int kCount = kRows * 2 * kPairs>
    static __device__ __forceinline__ Value
    valueOf(const Values& values, int part, uint32_t bit) {
        if constexpr (kCount == 1) {
            constexpr int kRow = kFirst / (2 * kPairs);
            const int j = part * kPairs + kFirst / 2 % kPairs;
            return values[kRow / 2][4 * j + 2 * (kRow % 2) + kFirst % 2];
        } else {
            constexpr int kHalf = kCount / 2;
            static_assert(kHalf * 2 == kCount);
            const Value low = valueOf<kFirst, kHalf>(values, part, bit);
            const Value high =
                    valueOf<kFirst + kHalf, kHalf>(values, part, bit);
            return bit & kHalf ? high : low;
        }
    }
};

} // namespace faiss_bits

/// Products of a query and a vector against the query's limit, to bits.
#pragma once

#include "kernels/knn/fused/tensor/LimitTest.cuh"

namespace faiss_bits {

/// In place of a buffer of what passed: bits are written where they are found.
class PassedBits {
   public:
    static constexpr int kEntries = 0;

    __device__ PassedBits(uint64_t*, const TensorScanParams& params)
            : params_(params) {}

    /// The bits of 32 rows of the image each, side by side, of a query. No
    /// other warp writes these words.
    ///
    /// column   of the first: a multiple of 32
    template <int kWords>
    __device__ __forceinline__ void write(
            uint32_t row,
            uint32_t column,
            const uint32_t (&words)[kWords]) const {
        // Padding passes where a limit is infinite, or a value NaN.
        if (row >= params_.numQueries) {
            return;
        }
        const PassedLists& passed = params_.passed;
        uint32_t* const to = passed.bits + row * passed.words + column / 32;
        const bool isWhole = column + 32 * kWords <= params_.numVectors;
        if (isWhole && !params_.allowedBits) {
#pragma unroll
            for (int w = 0; w < kWords; ++w) {
                if (words[w]) {
                    to[w] = words[w];
                }
            }
            return;
        }
#pragma unroll
        for (int w = 0; w < kWords; ++w) {
            const uint32_t bits = words[w] & allowed(column + 32 * w);
            if (bits) {
                to[w] = bits;
            }
        }
    }

    __device__ __forceinline__ void flush() const {}

   private:
    /// The bits of the 32 rows from one on that may pass.
    __device__ __forceinline__ uint32_t allowed(uint32_t first) const {
        if (first >= params_.numVectors) {
            return 0;
        }
        const uint32_t left = params_.numVectors - first;
        const uint32_t present = left < 32 ? (1u << left) - 1 : ~0u;
        if (!params_.allowedBits) {
            return present;
        }
        if (params_.rows.tiles == 0) {
            return params_.allowedBits[first / 32] & present;
        }
        uint32_t allowed = 0;
        for (uint32_t i = 0; i < min(left, 32u); ++i) {
            const uint32_t vector = params_.rows.vectorOf(first + i);
            allowed |= (params_.allowedBits[vector / 32] >> (vector % 32) & 1)
                    << i;
        }
        return allowed;
    }

    const TensorScanParams& params_;
};

/// LimitTest whose passing pairs become bits. A fragment has all 32 columns of
/// a word, so the four lanes that share a row put the word together, and it is
/// stored, not added to: what passes often costs a scan no atomic operations.
template <ScanNorms kNorms, int kBlocks, int kWidth, int kRowStep>
class BitsTest : public LimitTest<kNorms, kBlocks, kWidth, kRowStep> {
    using Base = LimitTest<kNorms, kBlocks, kWidth, kRowStep>;
    using Base::normsOf;
    using Base::passes;
    using Base::row_;

   public:
    using Base::kRows;

    __device__ __forceinline__ void run(
            const float (&values)[kBlocks][kWidth / 2],
            const float* norms,
            uint32_t column,
            const PassedBits& bits) const {
        bool hit[kWords];
        bool any = false;
#pragma unroll
        for (int w = 0; w < kWords; ++w) {
            hit[w] = false;
            forEachValue(values, norms, w, [&](int, int, bool isIn) {
                hit[w] = hit[w] | isIn;
            });
            any = any | hit[w];
        }
        if (!__any_sync(kFullWarp, any)) {
            return;
        }
        // Even lanes put the even row of two together, odd ones the odd row.
        uint32_t words[kRows / 2][kWords];
#pragma unroll
        for (int w = 0; w < kWords; ++w) {
            const bool isHit = __any_sync(kFullWarp, hit[w]);
#pragma unroll
            for (int r = 0; r < kRows / 2; ++r) {
                words[r][w] = 0;
            }
            if (isHit) {
                putTogether(values, norms, w, words);
            }
        }
        const uint32_t lane = threadIdx.x % kRowLanes;
        if (lane < 2) {
#pragma unroll
            for (int r = 0; r < kRows / 2; ++r) {
                bits.write(row_ + r * kRowStep + 8 * lane, column, words[r]);
            }
        }
    }

   private:
    static constexpr int kWords = kWidth / 32;
    static constexpr int kPairs = 4; // of a lane's columns, in a word
    static_assert(kWords * 32 == kWidth && kRows % 2 == 0);

    /// visit(row, bit, whether it passes) of a lane's values in a word; bits
    /// are those of lane 0.
    template <class Visit>
    __device__ __forceinline__ void forEachValue(
            const float (&values)[kBlocks][kWidth / 2],
            const float* norms,
            int word,
            const Visit& visit) const {
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            const int j = word * kPairs + p;
            const float2 norm = normsOf(norms, j);
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                const float* v = &values[r / 2][4 * j + 2 * (r % 2)];
                visit(r, 8 * p, passes(v[0], norm.x, r));
                visit(r, 8 * p + 1, passes(v[1], norm.y, r));
            }
        }
    }

    /// All lanes of the warp call it.
    __device__ __forceinline__ void putTogether(
            const float (&values)[kBlocks][kWidth / 2],
            const float* norms,
            int word,
            uint32_t (&words)[kRows / 2][kWords]) const {
        const uint32_t lane = threadIdx.x % kRowLanes;
        uint32_t own[kRows] = {};
        forEachValue(values, norms, word, [&](int r, int bit, bool isIn) {
            own[r] |= isIn ? 1u << bit : 0u;
        });
#pragma unroll
        for (int r = 0; r < kRows / 2; ++r) {
            const bool isOdd = lane % 2;
            const uint32_t even = own[2 * r] << 2 * lane;
            const uint32_t odd = own[2 * r + 1] << 2 * lane;
            uint32_t all = isOdd ? odd : even;
            all |= __shfl_xor_sync(kFullWarp, isOdd ? even : odd, 1);
            all |= __shfl_xor_sync(kFullWarp, all, 2);
            words[r][word] = all;
        }
    }
};

/// A scan that sets the bits of what passes (PassedLists). In kernels of their
/// own: to ask in those of lists costs their scan 7 to 9%
/// (docs/design/range.md).
struct FindPassingBits {
    using Buffer = PassedBits;
    template <ScanNorms kNorms, int kBlocks, int kWidth, int kRowStep>
    using Test = BitsTest<kNorms, kBlocks, kWidth, kRowStep>;
};

} // namespace faiss_bits

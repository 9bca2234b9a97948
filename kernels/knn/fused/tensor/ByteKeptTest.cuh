/// Integer products of queries and vectors against the queries' limits.
#pragma once

#include <climits>

#include "kernels/knn/fused/tensor/ByteImage.h"
#include "kernels/knn/fused/tensor/PassedBuffer.cuh"
#include "kernels/knn/fused/tensor/ScanRows.cuh"

namespace faiss_bits {

/// As LimitTest, of a block of 16 rows with kWidth columns: all in integers of
/// two squared steps (ByteImage::norms), and so exact. Adding a norm and
/// comparing are one instruction a value, as the greatest of some is all that
/// is asked first.
template <int kWidth>
class ByteKeptTest {
   public:
    static constexpr int kRows = 2;

    /// row: of the fragment's first value in this lane.
    __device__ __forceinline__ void start(
            const TensorScanParams& params,
            uint32_t row) {
        row_ = row;
        const float step = params.facts->inverse;
        unit_ = 2.0f * (step * step);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const uint32_t i = row + 8 * r;
            limits_[r] = kTakesNothing;
            if (i < params.numQueries) {
                // Down: the quotient is off by less than one.
                const double least =
                        floor((double(params.queryNorms[i]) -
                               double(params.passed.limits[i])) /
                              (2.0 * step * step));
                // An infinite limit is none, and so is NaN: all passes then,
                // what is infinitely far too.
                constexpr double kMost = ByteNorms::kMostLimit;
                limits_[r] = least > -__longlong_as_double(0x7ff0000000000000ll)
                        ? int32_t(fmin(fmax(least, -kMost), kMost))
                        : INT_MIN;
            }
        }
    }

    /// LimitTest::run. norms: of the fragment's columns, shared.
    template <class Buffer>
    __device__ __forceinline__ void run(
            const int32_t (&sums)[kWidth / 2],
            const int32_t* norms,
            uint32_t column,
            Buffer& buffer) {
        const int lane = threadIdx.x % kRowLanes;
        const auto* mine = reinterpret_cast<const int2*>(norms) + lane;
        bool hit[kGroups];
        bool any = false;
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
            int32_t most[kRows];
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                const int j = g * kPairs + p;
                const int2 norm = mine[kRowLanes * j];
#pragma unroll
                for (int r = 0; r < kRows; ++r) {
                    const int32_t* v = &sums[4 * j + 2 * r];
                    most[r] = p == 0 ? v[0] + norm.x
                                     : __viaddmax_s32(v[0], norm.x, most[r]);
                    most[r] = __viaddmax_s32(v[1], norm.y, most[r]);
                }
            }
            hit[g] = (most[0] >= limits_[0]) | (most[1] >= limits_[1]);
            any = any | hit[g];
        }
        if (!__any_sync(kFullWarp, any)) {
            return;
        }
        // Rare, so tested again to find out which, a part at a time.
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
            if (!__any_sync(kFullWarp, hit[g])) {
                continue;
            }
            uint32_t mask = 0;
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                const int j = g * kPairs + p;
                const int2 norm = mine[kRowLanes * j];
#pragma unroll
                for (int r = 0; r < kRows; ++r) {
                    const int32_t* v = &sums[4 * j + 2 * r];
                    const int bit = r * 2 * kPairs + 2 * p;
                    mask |= v[0] + norm.x >= limits_[r] ? 1u << bit : 0u;
                    mask |= v[1] + norm.y >= limits_[r] ? 2u << bit : 0u;
                }
            }
            const uint32_t full = buffer.template append<kRows, 2 * kPairs, 64>(
                    mask,
                    row_,
                    column + 8 * g * kPairs + 2 * lane,
                    [&](uint32_t bit) {
                        const uint32_t c = bit % (2 * kPairs);
                        const int32_t norm =
                                norms[8 * (g * kPairs + c / 2) + 2 * lane +
                                      c % 2];
                        return valueOf(sumOf(sums, g, bit), norm);
                    });
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                limits_[r] = full >> r & 1 ? kTakesNothing : limits_[r];
            }
        }
    }

   private:
    static constexpr int32_t kTakesNothing = INT_MAX;
    static constexpr int kGroups = 4; // parts, each with a predicate
    static constexpr int kPairs = kWidth / 8 / kGroups; // of columns
    static_assert(kRows * 2 * kPairs <= 32);

    /// What is kept of what passed; as its norm where that is no finite number.
    __device__ __forceinline__ float valueOf(int32_t sum, int32_t norm) const {
        return norm == ByteNorms::kNone     ? __int_as_float(0x7fc00000)
                : norm == -ByteNorms::kNone ? __int_as_float(0xff800000)
                                            : unit_ * float(sum + norm);
    }

    /// The sum that a bit stands for, as LimitTest::valueOf.
    template <int kFirst = 0, int kCount = kRows * 2 * kPairs>
    static __device__ __forceinline__ int32_t
    sumOf(const int32_t (&sums)[kWidth / 2], int part, uint32_t bit) {
        if constexpr (kCount == 1) {
            constexpr int kRow = kFirst / (2 * kPairs);
            const int j = part * kPairs + kFirst / 2 % kPairs;
            return sums[4 * j + 2 * kRow + kFirst % 2];
        } else {
            constexpr int kHalf = kCount / 2;
            static_assert(kHalf * 2 == kCount);
            const int32_t low = sumOf<kFirst, kHalf>(sums, part, bit);
            const int32_t high = sumOf<kFirst + kHalf, kHalf>(sums, part, bit);
            return bit & kHalf ? high : low;
        }
    }

    int32_t limits_[kRows];
    float unit_; // of a value
    uint32_t row_;
};

} // namespace faiss_bits

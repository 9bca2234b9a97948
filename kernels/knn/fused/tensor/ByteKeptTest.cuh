/// Integer products of queries and vectors against the queries' limits.
#pragma once

#include <climits>

#include "kernels/knn/fused/tensor/ByteImage.h"
#include "kernels/knn/fused/tensor/FragmentParts.cuh"

namespace faiss_bits {

/// As LimitTest, of a block of 16 rows with kWidth columns: all in integers of
/// two squared steps (ByteImage::norms), and so exact. Adding a norm and
/// comparing are one instruction a value, as the greatest of some is all that
/// is asked first.
template <int kWidth>
class ByteKeptTest : public FragmentParts<int32_t, 1, kWidth, 64> {
    using Base = FragmentParts<int32_t, 1, kWidth, 64>;
    using Base::appendPart;
    using Base::kGroups;
    using Base::kPairs;
    using Base::maskOf;

   public:
    using Base::kRows;

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
            const int32_t (&sums)[1][kWidth / 2],
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
                    const int32_t* v = &sums[0][4 * j + 2 * r];
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
            const uint32_t mask = maskOf(
                    sums,
                    g,
                    [&](int j) { return mine[kRowLanes * j]; },
                    [&](int32_t sum, int32_t norm, int r) {
                        return sum + norm >= limits_[r];
                    });
            appendPart(
                    buffer,
                    g,
                    mask,
                    row_,
                    column,
                    limits_,
                    kTakesNothing,
                    [&](uint32_t bit) {
                        const uint32_t c = bit % (2 * kPairs);
                        const int32_t norm =
                                norms[8 * (g * kPairs + c / 2) + 2 * lane +
                                      c % 2];
                        return keptOf(Base::valueOf(sums, g, bit), norm);
                    });
        }
    }

   private:
    static constexpr int32_t kTakesNothing = INT_MAX;

    /// What is kept of what passed; as its norm where that is no finite number.
    __device__ __forceinline__ float keptOf(int32_t sum, int32_t norm) const {
        return norm == ByteNorms::kNone     ? __int_as_float(0x7fc00000)
                : norm == -ByteNorms::kNone ? __int_as_float(0xff800000)
                                            : unit_ * float(sum + norm);
    }

    int32_t limits_[kRows];
    float unit_; // of a value
    uint32_t row_;
};

} // namespace faiss_bits

/// The float32 arithmetic of the metrics that no matrix product gives: what a
/// component adds to the sum of a pair, and the distance that comes of the sum.
/// docs/bounds.md bounds the error of each.
///
/// A term says
///
///     kStep     components that it takes at a time; those behind d are 0
///     kLogs     it reads the logarithms of the components (logOf)
///     kFacts    it reads RowFacts of vector and query, and is for pairs where
///               neither is below 0 ("fit"); kRest says what others get
///     staged    what a component is in shared memory
///     add       the next components of a pair to its sum
///     start     the same to a sum of 0; where there is none, add does it
///     join      of sums over different components of a pair
///     finish    the distance of a fit pair
///
/// Every operation is written out, so that a pair has the same bits in tiles of
/// any shape.
#pragma once

#include "kernels/common/Types.h"

namespace faiss_bits {

namespace pairwise {

/// The larger; NaN if one is.
__device__ __forceinline__ float larger(float a, float b) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

/// The smaller; NaN if one is.
__device__ __forceinline__ float smaller(float a, float b) {
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

// One instruction each; subnormal numbers count as zero. Their errors:
// kernels/knn/ErrorBound.h.

__device__ __forceinline__ float approximateLog2(float a) {
    float result;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
    return result;
}

__device__ __forceinline__ float approximateExp2(float a) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
    return result;
}

__device__ __forceinline__ float approximateReciprocal(float a) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
    return result;
}

__device__ __forceinline__ float approximateRoot(float a) {
    float result;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
    return result;
}

} // namespace pairwise

/// What becomes of pairs that are not fit.
enum class UnfitPairs {
    None,      ///< there are none
    Second,    ///< a second sum over the components, by the term's Second
    Canonical, ///< the canonical distance: slow, for data that is rare
};

struct PlainTerm {
    static constexpr int kStep = 1;
    static constexpr bool kLogs = false;
    static constexpr bool kFacts = false;
    static constexpr UnfitPairs kUnfit = UnfitPairs::None;
    static constexpr Metric kMetric = Metric::L1; // of canonical distances

    __device__ static float staged(float x) {
        return x;
    }

    __device__ static float join(float a, float b) {
        return __fadd_rn(a, b);
    }

    __device__ static float finish(float sum, float, float) {
        return sum;
    }
};

/// Two instructions a component.
struct L1Term : PlainTerm {
    __device__ __forceinline__ static float start(
            const float (&x)[1],
            const float (&q)[1]) {
        return fabsf(__fadd_rn(x[0], -q[0]));
    }

    __device__ __forceinline__ static void add(
            float& sum,
            const float (&x)[1],
            const float (&q)[1],
            float) {
        sum = __fadd_rn(sum, fabsf(__fadd_rn(x[0], -q[0])));
    }
};

struct LinfTerm : PlainTerm {
    __device__ static float join(float a, float b) {
        return pairwise::larger(a, b);
    }

    __device__ __forceinline__ static float start(
            const float (&x)[1],
            const float (&q)[1]) {
        return fabsf(__fadd_rn(x[0], -q[0]));
    }

    __device__ __forceinline__ static void add(
            float& sum,
            const float (&x)[1],
            const float (&q)[1],
            float) {
        sum = pairwise::larger(sum, fabsf(__fadd_rn(x[0], -q[0])));
    }
};

/// |difference|^(Halves / 2), Halves = 1, 3, 4, 6 or 8.
template <int Halves>
struct PowerTerm : PlainTerm {
    __device__ __forceinline__ static void add(
            float& sum,
            const float (&x)[1],
            const float (&q)[1],
            float) {
        const float t = fabsf(__fadd_rn(x[0], -q[0]));
        if constexpr (Halves == 1) {
            sum = __fadd_rn(sum, pairwise::approximateRoot(t));
        } else if constexpr (Halves == 3) {
            sum = __fmaf_rn(t, pairwise::approximateRoot(t), sum);
        } else if constexpr (Halves == 4) {
            sum = __fmaf_rn(t, t, sum);
        } else if constexpr (Halves == 6) {
            sum = __fmaf_rn(__fmul_rn(t, t), t, sum);
        } else {
            static_assert(Halves == 8);
            const float square = __fmul_rn(t, t);
            sum = __fmaf_rn(square, square, sum);
        }
    }
};

/// |difference|^p of any p > 0, as 2^(p log2 |difference|).
struct AnyPowerTerm : PlainTerm {
    __device__ __forceinline__ static void add(
            float& sum,
            const float (&x)[1],
            const float (&q)[1],
            float power) {
        const float t = fabsf(__fadd_rn(x[0], -q[0]));
        const float exponent = __fmul_rn(power, pairwise::approximateLog2(t));
        sum = __fadd_rn(sum, pairwise::approximateExp2(exponent));
    }
};

/// Fit: components are 0, or of a size in [2^-40, 2^60]. Two components at a
/// time, a / b + c / d = (a d + c b) / (b d), as a reciprocal takes as long as
/// eight other operations.
struct CanberraTerm : PlainTerm {
    static constexpr int kStep = 2;
    static constexpr bool kFacts = true;
    static constexpr UnfitPairs kUnfit = UnfitPairs::Second;

    /// Twice the component, which changes no term; of zero 2^-64. Beside
    /// components from 2^-39 on that is lost in rounding, and two of them
    /// differ by 0 over 2^-63: no size is zero, and the product of two is in
    /// [2^-126, 2^124], as is its reciprocal.
    __device__ static float staged(float x) {
        return x == 0 ? 0x1p-64f : __fmul_rn(2.0f, x);
    }

    __device__ __forceinline__ static void add(
            float& sum,
            const float (&x)[2],
            const float (&q)[2],
            float) {
        float difference[2];
        float size[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            difference[i] = fabsf(__fadd_rn(x[i], -q[i]));
            size[i] = __fadd_rn(fabsf(x[i]), fabsf(q[i]));
        }
        const float crossed = __fmaf_rn(
                difference[1], size[0], __fmul_rn(difference[0], size[1]));
        const float sizes = __fmul_rn(size[0], size[1]);
        sum = __fmaf_rn(crossed, pairwise::approximateReciprocal(sizes), sum);
    }

    /// Any components, one at a time, rounded to nearest.
    struct Second : PlainTerm {
        __device__ __forceinline__ static void add(
                float& sum,
                const float (&x)[1],
                const float (&q)[1],
                float) {
            float size = __fadd_rn(fabsf(x[0]), fabsf(q[0]));
            float difference = fabsf(__fadd_rn(x[0], -q[0]));
            if (!(size <= 0x1.fffffep127f)) {
                // Beyond the range, or infinite, or NaN.
                size = __fadd_rn(
                        __fmul_rn(0.25f, fabsf(x[0])),
                        __fmul_rn(0.25f, fabsf(q[0])));
                difference = fabsf(__fadd_rn(
                        __fmul_rn(0.25f, x[0]), -__fmul_rn(0.25f, q[0])));
            }
            const float term =
                    size == 0.0f ? 0.0f : __fdiv_rn(difference, size);
            sum = __fadd_rn(sum, term);
        }
    };

    /// Of a pair that is not fit. It does not need the first sum.
    static constexpr bool kUnfitOfBoth = false;
    __device__ __forceinline__ static float finishUnfit(float, float second) {
        return second;
    }
};

/// Fit: no component is below 0, and the fact of a row is its sum. Then
/// |x + q| is x + q, and one sum over the components is enough.
struct BrayCurtisTerm : L1Term {
    static constexpr bool kFacts = true;
    static constexpr UnfitPairs kUnfit = UnfitPairs::Second;

    __device__ __forceinline__ static float finish(
            float sum,
            float ofVector,
            float ofQuery) {
        return finishUnfit(sum, __fadd_rn(ofVector, ofQuery));
    }

    struct Second : PlainTerm {
        __device__ __forceinline__ static void add(
                float& sum,
                const float (&x)[1],
                const float (&q)[1],
                float) {
            sum = __fadd_rn(sum, fabsf(__fadd_rn(x[0], q[0])));
        }
    };

    static constexpr bool kUnfitOfBoth = true;
    __device__ __forceinline__ static float finishUnfit(
            float sum,
            float second) {
        // Where the sums have left float32's range there is no number to give.
        return second > 0x1.fffffep127f   ? __int_as_float(0x7fffffff)
                : sum == 0 && second == 0 ? 0.0f
                                          : __fdiv_rn(sum, second);
    }
};

/// Fit as for Bray-Curtis: max(x, q) = x + q - min(x, q).
struct JaccardTerm : PlainTerm {
    static constexpr bool kFacts = true;
    static constexpr UnfitPairs kUnfit = UnfitPairs::Canonical;
    static constexpr Metric kMetric = Metric::Jaccard;

    __device__ __forceinline__ static float start(
            const float (&x)[1],
            const float (&q)[1]) {
        return fminf(x[0], q[0]);
    }

    __device__ __forceinline__ static void add(
            float& sum,
            const float (&x)[1],
            const float (&q)[1],
            float) {
        sum = __fadd_rn(sum, fminf(x[0], q[0]));
    }

    __device__ __forceinline__ static float finish(
            float sum,
            float ofVector,
            float ofQuery) {
        const float larger = __fadd_rn(__fadd_rn(ofVector, ofQuery), -sum);
        return larger == 0 && sum == 0 ? 0.0f : __fdiv_rn(sum, larger);
    }
};

/// Fit: components are 0, or in [2^-100, 2^100]. With logarithms to base 2,
/// x log(x / m) = x ((log x + 1) - log(x + q)), so that one logarithm of each
/// pair is left.
struct JensenShannonTerm : PlainTerm {
    static constexpr bool kLogs = true;
    static constexpr bool kFacts = true;
    static constexpr UnfitPairs kUnfit = UnfitPairs::Canonical;
    static constexpr Metric kMetric = Metric::JensenShannon;

    /// Staged beside the components: log2(x) + 1, of zero any number.
    __device__ __forceinline__ static float logOf(float x) {
        return x > 0 ? __fadd_rn(pairwise::approximateLog2(x), 1.0f) : 0.0f;
    }

    __device__ __forceinline__ static void add(
            float& sum,
            const float (&x)[1],
            const float (&q)[1],
            const float (&logX)[1],
            const float (&logQ)[1]) {
        // The logarithm of 0 + 0 is multiplied by 0, and must be a number.
        const float both = fmaxf(__fadd_rn(x[0], q[0]), 0x1p-120f);
        const float log = pairwise::approximateLog2(both);
        const float ofX = __fmul_rn(x[0], __fadd_rn(logX[0], -log));
        const float pair = __fmaf_rn(q[0], __fadd_rn(logQ[0], -log), ofX);
        sum = __fadd_rn(sum, pair);
    }

    __device__ __forceinline__ static float finish(float sum, float, float) {
        // Rounding may leave less than the nothing that equal vectors have.
        constexpr float kHalfLn2 = 0x1.62e430p-2f;
        return fmaxf(__fmul_rn(sum, kHalfLn2), 0.0f);
    }
};

} // namespace faiss_bits

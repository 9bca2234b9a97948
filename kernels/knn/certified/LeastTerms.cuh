/// What a distance is no less than, by a few operations of float32 a component,
/// whatever is near: differences of components are taken first, so that what is
/// lost is a small part of the distance. (Norms and products, or logarithms
/// less each other, lose a small part of far greater numbers.)
#pragma once

#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits {

/// Metrics that have it.
template <Metric kMetric>
constexpr bool kHasLeastTerms = kMetric == Metric::L2 ||
        kMetric == Metric::L1 || kMetric == Metric::Linf ||
        kMetric == Metric::Lp || kMetric == Metric::Canberra ||
        kMetric == Metric::BrayCurtis || kMetric == Metric::JensenShannon;

/// Those of which least() is the distance, or NaN.
template <Metric kMetric>
constexpr bool kIsExactInFloat = kMetric == Metric::Linf;

/// Those whose distance is NaN where a component is infinite or NaN.
template <Metric kMetric>
constexpr bool kWantsFinite = kMetric == Metric::Canberra ||
        kMetric == Metric::BrayCurtis || kMetric == Metric::JensenShannon;

/// Those that have an upper bound, too.
template <Metric kMetric>
constexpr bool kHasMostTerms =
        kMetric == Metric::L2 || kMetric == Metric::JensenShannon;

/// add() takes the components x and q of a pair to its sums; least() is what
/// the canonical distance, rounded to float32, is not below. The distance is a
/// number: of NaN nothing is said. Zeros add nothing.
///
/// Errors: a difference, a sum and a product are rounded by 2^-24 of
/// themselves, an approximate reciprocal or root by twice that. A term is off
/// by seven of these at most, and a sum of d terms, none below 0, by d more; a
/// quotient of two such sums by twice as many. least() takes off 2 (d + 16) of
/// them, which also covers that the canonical distance is rounded.
template <Metric kMetric>
struct LeastTerms {
    static constexpr int kSums =
            kMetric == Metric::BrayCurtis || kMetric == Metric::JensenShannon
            ? 2
            : 1;
    /// 2 p of Lp: 3 to 8. Others: 0.
    static constexpr bool kWantsHalves = kMetric == Metric::Lp;

    /// Whether there is a bound for this power of Lp, 2 p. Not for p = 1/2: the
    /// root of a difference beyond float32 is a number of float32, for which
    /// infinity is no lower bound.
    __device__ __forceinline__ static bool takes(int halves) {
        return !kWantsHalves || halves == 3 || halves == 4 || halves == 5 ||
                halves == 6 || halves == 8;
    }

    template <int kHalves>
    __device__ __forceinline__ static void add(
            float (&s)[kSums],
            float x,
            float q) {
        const float off = fabsf(__fadd_rn(x, -q));
        if constexpr (kMetric == Metric::L2) {
            s[0] = __fmaf_rn(off, off, s[0]);
        } else if constexpr (kMetric == Metric::L1) {
            s[0] = __fadd_rn(s[0], off);
        } else if constexpr (kMetric == Metric::Linf) {
            s[0] = larger(s[0], off);
        } else if constexpr (kMetric == Metric::Lp) {
            s[0] = __fadd_rn(s[0], powerOf<kHalves>(off));
        } else if constexpr (kMetric == Metric::Canberra) {
            const float size = __fadd_rn(fabsf(x), fabsf(q));
            s[0] = __fmaf_rn(off, reciprocal(size), s[0]);
        } else if constexpr (kMetric == Metric::BrayCurtis) {
            s[0] = __fadd_rn(s[0], off);
            s[1] = __fadd_rn(s[1], fabsf(__fadd_rn(x, q)));
        } else {
            // With m = (x + q) / 2 and t = (x - q) / (x + q) the term is
            // m ((1 + t) log(1 + t) + (1 - t) log(1 - t)) / 2, which is
            // (x - q)^2 / (4 (x + q)) times what seriesOf() is not above. Of
            // negative components it is NaN or below 0.
            const float both = __fadd_rn(x, q);
            const float ratio = __fmul_rn(off, reciprocal(both));
            const float series = off == both
                    ? kGreatestSeries
                    : seriesOf(__fmul_rn(ratio, ratio));
            s[0] = fminf(x, q) < 0
                    ? -infinity()
                    : __fmaf_rn(__fmul_rn(ratio, off), series, s[0]);
            s[1] = __fadd_rn(s[1], both);
        }
    }

    __device__ __forceinline__ static float least(
            const float (&s)[kSums],
            int d) {
        constexpr float kMost = 0x1p126f;
        // A term below the normal numbers is rounded up by 2^-150 at most.
        const float tiny = fmaxf(0x1p-140f, float(d) * 0x1p-149f);
        const float rest = 1 - float(d + 16) * 0x1p-23f;
        float sum = s[0];
        if constexpr (kMetric == Metric::BrayCurtis) {
            // Of sums beyond float32, and of 0 / 0, nothing is known.
            sum = s[0] < kMost && s[1] < kMost && s[1] > 0
                    ? fminf(s[0] / s[1], kMost)
                    : 0.0f;
        } else if constexpr (kMetric == Metric::Linf) {
            // The distance. Where a difference has more bits than float64 has,
            // one component is so small that the other is it in float32.
            return sum;
        } else if constexpr (kMetric == Metric::Canberra) {
            sum = s[0] < kMost ? s[0] : 0.0f;
        } else if constexpr (kMetric == Metric::JensenShannon) {
            // What float64 leaves of a component's two logarithms; its sums
            // are of terms that are not below 0 but for that.
            const float lost = s[1] * 0x1.4p-51f;
            sum = sum > kMost ? kMost : sum;
            sum = rest > 0.5f ? sum : -infinity();
            return __fadd_rd(0.25f * sum * fmaxf(rest, 0.5f), -lost) - tiny;
        } else {
            // The true sum is no less, if it was too large for float32.
            sum = fminf(sum, kMost);
        }
        return rest > 0 ? sum * rest - tiny : 0.0f;
    }

    /// What the canonical distance, rounded to float32, is not above; NaN where
    /// nothing is known, and where the distance is NaN.
    __device__ __forceinline__ static float most(
            const float (&s)[kSums],
            int d) {
        static_assert(kHasMostTerms<kMetric>);
        constexpr int kMostComponents = 8192; // squares of errors are small
        const float more = 1 + float(d + 16) * 0x1p-23f;
        // Terms are rounded down by as much as up.
        const float tiny = fmaxf(0x1p-140f, float(d) * 0x1p-149f);
        float sum = d <= kMostComponents ? s[0] : nan();
        if constexpr (kMetric == Metric::JensenShannon) {
            // Components below 2^-120 may have been left out.
            const float lost = s[1] * 0x1.4p-51f + float(d) * 0x1p-120f;
            sum = sum >= 0 && s[1] < 0x1p126f ? sum * (0.25f * kSeriesLeaves)
                                              : nan();
            return sum * more + lost;
        }
        return sum * more + tiny;
    }

   private:
    __device__ __forceinline__ static float infinity() {
        return __uint_as_float(0x7f800000u);
    }

    __device__ __forceinline__ static float nan() {
        return __uint_as_float(0x7fffffffu);
    }

    /// NaN if one of them is.
    __device__ __forceinline__ static float larger(float a, float b) {
        float result;
        asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
        return result;
    }

    /// 2 log 2, of which a component that only one of two has adds (x + q) / 4,
    /// less 2^-18 for what of it is rounded.
    static constexpr float kGreatestSeries = 0x1.62e42ep+0f * (1 - 0x1p-18f);

    /// ((1 + t) log(1 + t) + (1 - t) log(1 - t)) / t^2 of t^2, or 1.2% less:
    /// the polynomial that has its value at 0 and meets it, without crossing,
    /// at 0.4 and 0.95; 2^-18 is taken off for what is rounded.
    __device__ __forceinline__ static float seriesOf(float square) {
        float sum = __fmaf_rn(0.990018189f, square, -1.499981930f);
        sum = __fmaf_rn(sum, square, 0.836776058f);
        sum = __fmaf_rn(sum, square, 0.042945772f);
        return __fmaf_rn(sum, square, 1 - 0x1p-18f);
    }

    /// The true value is no more than so many times that.
    static constexpr float kSeriesLeaves = 1.0123f;

    /// Of what is smaller the reciprocal of 2^-120: no more than its own.
    __device__ __forceinline__ static float reciprocal(float a) {
        float result;
        asm("rcp.approx.ftz.f32 %0, %1;"
            : "=f"(result)
            : "f"(fmaxf(a, 0x1p-120f)));
        return result;
    }

    template <int kHalves>
    __device__ __forceinline__ static float powerOf(float a) {
        if constexpr (kHalves == 4) {
            return __fmul_rn(a, a);
        } else if constexpr (kHalves == 6) {
            return __fmul_rn(__fmul_rn(a, a), a);
        } else if constexpr (kHalves == 8) {
            const float square = __fmul_rn(a, a);
            return __fmul_rn(square, square);
        } else {
            static_assert(kHalves == 3 || kHalves == 5);
            float root;
            asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(a));
            for (int i = 1; i < kHalves; i += 2) {
                root = __fmul_rn(root, a);
            }
            return root;
        }
    }
};

/// Calls body(std::integral_constant) with 2 p, of one that there is a bound
/// for.
template <Metric kMetric, class Body>
__device__ __forceinline__ void withHalves(int halves, const Body& body) {
    if constexpr (kMetric == Metric::Lp) {
        switch (halves) {
            case 3:
                return body(std::integral_constant<int, 3>());
            case 4:
                return body(std::integral_constant<int, 4>());
            case 5:
                return body(std::integral_constant<int, 5>());
            case 6:
                return body(std::integral_constant<int, 6>());
            default:
                return body(std::integral_constant<int, 8>());
        }
    } else {
        body(std::integral_constant<int, 0>());
    }
}

} // namespace faiss_bits

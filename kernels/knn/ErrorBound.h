#pragma once

#include <cmath>

#include "kernels/common/Types.h"

#if defined(__CUDACC__)
#define BITS_BOUND __host__ __device__ inline
#else
#define BITS_BOUND inline
#endif

namespace faiss_bits {

/// How far an approximate distance may be from the canonical one, before that
/// is rounded to float32; derivations in docs/bounds.md. For a vector x at the
/// canonical distance c from a query q the difference is at most
///
///     relative c + absolute + ofNorms N(q, x)
///
/// where N is (|q| + |x|)^2 for L2 and |q| |x| for products, plus what the
/// rounding of q to a 16-bit type, if there was one, adds to N.
struct ErrorBound {
    double relative = 0;
    double absolute = 0;
    double ofNorms = 0;
    /// Products, whose vectors of any length may be near: N needs the greatest
    /// norm of all vectors. For L2 a vector at distance c is no longer than
    /// |q| + sqrt(c).
    bool ofProducts = false;
    /// All of it is of images of 16 bits: TensorScanBound.h.
    bool ofImages = false;
};

/// m u / (1 - m u): what m roundings to nearest by the unit u make of a sum or
/// a product, at most (Higham 2002, lemma 3.1); infinity where m u reaches 1.
inline double errorOfRoundings(double m, double unit) {
    const double product = m * unit;
    return product < 1 ? product / (1 - product) : HUGE_VAL;
}

constexpr double kFloat32Unit = 0x1p-24;
/// Of sums on tensor cores, which cut off bits instead of rounding, and align
/// the products of a step to the largest: taken four times as coarse.
constexpr double kTensorCoreUnit = 0x1p-22;

namespace bounds {

constexpr double kUnit = 0x1p-24; // of float32
/// Errors of the device's approximate functions. Assumed is twice what the PTX
/// manual promises (2^-22 for logarithm and power, 2^-23 for reciprocal and
/// root); tests/knn/TestApproximations.cu looks at every float32.
constexpr double kLog2Error = 8 * kUnit; // absolute below 2, else relative
constexpr double kExp2Error = 8 * kUnit;
constexpr double kReciprocalError = 4 * kUnit;
constexpr double kRootError = 4 * kUnit;

constexpr double kInfinity = __builtin_huge_val();

/// m roundings of one number (Higham 2002, lemma 3.1), and the roundings of
/// the canonical distance, which are far smaller, and its last, to float32.
BITS_BOUND double gamma(double m) {
    const double mu = (m + 2) * kUnit;
    return mu < 0.5 ? mu / (1 - mu) : kInfinity;
}

/// Largest sum of x |log2 x| of d components x >= 0 that add up to at most
/// `sum`: that of equal ones, below 1; and log2(sum) for those above.
BITS_BOUND double logSum(double sum, double d) {
    constexpr double kE = 2.718281828459045;
    const double below = sum <= 0 ? 0
            : sum * kE >= d       ? d * 0.531
                                  : sum * log2(d / sum);
    return below + (sum > 1 ? sum * log2(sum) : 0);
}

/// For sums of |difference|^p.
BITS_BOUND ErrorBound ofPower(double p, double d) {
    if (p == 0.5) {
        return {gamma(d + 1) + kRootError, d * 0x1p-62};
    }
    if (p == 1.5) {
        return {gamma(d + 3) + 2 * kRootError, d * 0x1p-148};
    }
    if (p == 2) {
        return {gamma(d + 3), d * 0x1p-148};
    }
    if (p == 3) {
        return {gamma(d + 5), d * 0x1p-148};
    }
    if (p == 4) {
        return {gamma(d + 7), d * 0x1p-148};
    }
    // 2^(p log2 t): the error of the exponent, where the power is in range.
    const double largest = p > 130 ? p : 130;
    const double exponent = largest * kLog2Error + (2 * p + 131) * kUnit;
    if (!(exponent < 0x1p-6)) {
        return {kInfinity, kInfinity};
    }
    return {0.71 * exponent + 1.1 * kExp2Error + gamma(d + 1),
            d * (0x1p-124 + (p < 1 ? exp2(-125 * p) : 0))};
}

/// |approximate - c| of Jensen-Shannon, less the roundings of its sum.
BITS_BOUND double ofJensenShannon(double d, double sums) {
    // Logarithms of x and q together, of x + q, and the roundings beside them.
    const double logs = logSum(sums, 2 * d);
    const double terms = (kLog2Error + kUnit) * (sums + logs) +
            kLog2Error * (sums + logs) + 12 * kUnit * sums;
    return 0.36 * terms + d * 0x1p-140;
}

} // namespace bounds

/// The bound of the distances of kernels/knn/pairwise and kernels/knn/cosine
/// between queries and vectors of d components.
///
/// p           of Lp, as FlatKnnProblem::metricArg; 1 is L1
/// vectorSum   Jensen-Shannon: the largest sum of |components| of a vector
///             (RowMaxima::sum), and querySum that of the query; others: not
///             read
BITS_BOUND ErrorBound errorBound(
        Metric metric,
        float p,
        int d,
        double vectorSum = 0,
        double querySum = 0) {
    using bounds::gamma;
    switch (metric) {
        case Metric::L1:
            return {gamma(d), 0};
        case Metric::Linf:
            return {gamma(1), 0};
        case Metric::Lp:
            return p == 1.0f ? ErrorBound{gamma(d), 0}
                             : bounds::ofPower(double(p), d);
        case Metric::Canberra:
            return {gamma(d + 6) + bounds::kReciprocalError, d * 0x1p-68};
        case Metric::BrayCurtis:
            return {gamma(2.0 * d + 4), 0x1p-148};
        case Metric::Jaccard:
            return {gamma(4.0 * d + 9), 0x1p-148};
        case Metric::Cosine:
            // Products of 16-bit components: tensor cores, which cut off.
            return {gamma(d + 12.0), 4 * gamma(d + 12.0) + d * 0x1p-66};
        case Metric::JensenShannon: {
            // The sums were added up in float32.
            const double sums = (vectorSum + querySum) * (1 + gamma(d));
            if (!(sums < 0x1p120)) {
                return {bounds::kInfinity, bounds::kInfinity};
            }
            return {gamma(d + 4), bounds::ofJensenShannon(d, sums)};
        }
        default:
            return {bounds::kInfinity, bounds::kInfinity};
    }
}

} // namespace faiss_bits

#undef BITS_BOUND

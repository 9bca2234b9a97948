#pragma once

#include "kernels/canonical/RoundedOps.h"

/// Logarithms and powers of few rounded operations, so that they have the same
/// bits on every GPU and CPU, which those of the C library and of CUDA have
/// not. They take numbers that came from float32: no subnormal float64.
namespace faiss_bits::canonical {

/// Natural logarithm of a > 0, within 2 units in the last place. 0: -infinity;
/// below 0 and NaN: NaN; infinity: infinity.
///
/// a = 2^e m, m from sqrt(1/2) to sqrt(2); with s = (m - 1) / (m + 1) its
/// logarithm is 2 (s + s^3 / 3 + s^5 / 5 + ...), |s| < 0.1716.
BITS_HOST_DEVICE double log(double a) {
    constexpr double kInfinity = __builtin_huge_val();
    if (!(a > 0)) {
        return a == 0 ? -kInfinity : kInfinity - kInfinity;
    }
    if (a == kInfinity) {
        return a;
    }
    // The exponent of a / sqrt(1/2), rounded down.
    const uint64_t kRootHalf = 0x3fe6a09e667f3bcdull;
    const int64_t e = int64_t(bitsOf(a) - kRootHalf) >> 52;
    const double m = ofBits(bitsOf(a) - (uint64_t(e) << 52));
    const double s = div(sub(m, 1.0), add(m, 1.0));
    const double z = mul(s, s);
    double sum = 1.0 / 23;
    const double coefficients[] = {
            1.0 / 21,
            1.0 / 19,
            1.0 / 17,
            1.0 / 15,
            1.0 / 13,
            1.0 / 11,
            1.0 / 9,
            1.0 / 7,
            1.0 / 5,
            1.0 / 3};
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (const double coefficient : coefficients) {
        sum = add(mul(sum, z), coefficient);
    }
    const double s2 = add(s, s);
    const double ofM = add(s2, mul(mul(s2, z), sum));
    // ln 2 in two parts; e times the first is exact.
    const double kHigh = 0x1.62e42feep-1;
    const double kLow = 0x1.a39ef35793c76p-33;
    const double exponent = double(e);
    return add(mul(exponent, kHigh), add(ofM, mul(exponent, kLow)));
}

/// e^a, within 2 units in the last place; above 709 infinity, below -708 zero.
///
/// a = j ln 2 + r, |r| < 0.347; then the series of e^r.
BITS_HOST_DEVICE double exp(double a) {
    if (a != a) {
        return a;
    }
    if (a > 709.0) {
        return __builtin_huge_val();
    }
    if (a < -708.0) {
        return 0.0;
    }
    // To the nearest integer: adding 1.5 2^52 leaves no room for a fraction.
    const double kRound = 6755399441055744.0;
    const double j = sub(add(mul(a, 0x1.71547652b82fep+0), kRound), kRound);
    const double high = sub(a, mul(j, 0x1.62e42feep-1));
    const double r = sub(high, mul(j, 0x1.a39ef35793c76p-33));
    double sum = 1.0 / 87178291200.0; // 1 / 14!
    const double coefficients[] = {
            1.0 / 6227020800.0,
            1.0 / 479001600.0,
            1.0 / 39916800.0,
            1.0 / 3628800.0,
            1.0 / 362880.0,
            1.0 / 40320.0,
            1.0 / 5040.0,
            1.0 / 720.0,
            1.0 / 120.0,
            1.0 / 24.0,
            1.0 / 6.0,
            0.5};
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (const double coefficient : coefficients) {
        sum = add(mul(sum, r), coefficient);
    }
    const double ofR = add(1.0, add(r, mul(mul(r, r), sum)));
    return ofBits(bitsOf(ofR) + (uint64_t(int64_t(j)) << 52));
}

/// Powers a^p of a >= 0 for one p > 0.
class Power {
   public:
    Power() = default;
    /// Any finite p > 0.
    explicit Power(double p) : p_(p) {
        const double twice = 2 * p;
        const bool few = twice <= kMostHalves && twice == double(int(twice));
        halves_ = few ? int(twice) : 0;
    }

    /// Multiples of a half up to 32: by square root and products, the factors
    /// from the lowest bit of p to the highest. Others: exp(p log a), with a
    /// relative error below 2^-41.
    BITS_HOST_DEVICE double operator()(double a) const {
        if (halves_ == 0) {
            return a == 0 ? 0.0 : exp(mul(p_, log(a)));
        }
        double result = halves_ & 1 ? sqrt(a) : 1.0;
        for (int rest = halves_ >> 1; rest != 0; rest >>= 1) {
            if (rest & 1) {
                result = mul(result, a);
            }
            a = mul(a, a);
        }
        return result;
    }

    /// True if a power is made of products and square roots.
    BITS_HOST_DEVICE bool isSimple() const {
        return halves_ != 0;
    }

   private:
    static constexpr int kMostHalves = 64;
    double p_ = 2;
    int halves_ = 4; // 2 p, or 0: not of the simple kind
};

} // namespace faiss_bits::canonical

/// What a component adds to Jensen-Shannon for kernels whose lanes take one
/// component after the other.
#pragma once

#include "kernels/canonical/Power.h"

namespace faiss_bits {

/// Divisions by one divisor, of numbers that are not near the ends of float64,
/// and of 0: the operations of canonical::div on a GPU, but without the choice
/// of another way for such ends, so that several divisions go side by side.
class UsualDivisor {
   public:
    BITS_HOST_DEVICE explicit UsualDivisor(double divisor) : divisor_(divisor) {
#if defined(__CUDA_ARCH__)
        double rough;
        asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(rough) : "d"(divisor));
        rough = __hiloint2double(__double2hiint(rough), 1);
        const double off = __fma_rn(rough, -divisor, 1.0);
        const double near = __fma_rn(rough, __fma_rn(off, off, off), rough);
        reciprocal_ = __fma_rn(near, __fma_rn(near, -divisor, 1.0), near);
#endif
    }

    BITS_HOST_DEVICE double divide(double a) const {
#if defined(__CUDA_ARCH__)
        const double near = __dmul_rn(a, reciprocal_);
        return __fma_rn(reciprocal_, __fma_rn(near, -divisor_, a), near);
#else
        return canonical::div(a, divisor_);
#endif
    }

   private:
    double divisor_;
#if defined(__CUDA_ARCH__)
    double reciprocal_;
#endif
};

// Parts of canonical::log, whose operations these are: the bits of sqrt(1/2),
// and ln 2 in two parts.
constexpr uint64_t kRootHalfBits = 0x3fe6a09e667f3bcdull;
constexpr double kLogTwoHigh = 0x1.62e42feep-1;
constexpr double kLogTwoLow = 0x1.a39ef35793c76p-33;

/// Of a / sqrt(1/2), rounded down.
BITS_HOST_DEVICE int64_t exponentOf(double a) {
    return int64_t(canonical::bitsOf(a) - kRootHalfBits) >> 52;
}

/// Of a without its exponent.
BITS_HOST_DEVICE double logOfPart(double a, int64_t exponent) {
    const double m = canonical::ofBits(
            canonical::bitsOf(a) - (uint64_t(exponent) << 52));
    const double s =
            UsualDivisor(canonical::add(m, 1.0)).divide(canonical::sub(m, 1.0));
    const double z = canonical::mul(s, s);
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
        sum = canonical::add(canonical::mul(sum, z), coefficient);
    }
    const double s2 = canonical::add(s, s);
    return canonical::add(s2, canonical::mul(canonical::mul(s2, z), sum));
}

BITS_HOST_DEVICE double addExponent(double logOfPart, int64_t exponent) {
    const double e = double(int(exponent));
    return canonical::add(
            canonical::mul(e, kLogTwoHigh),
            canonical::add(logOfPart, canonical::mul(e, kLogTwoLow)));
}

/// x log(x / m) + q log(q / m), m = (x + q) / 2, of positive numbers that came
/// from float32: the bits of Terms<Metric::JensenShannon>. Both logarithms are
/// canonical::log's, side by side, as each operation waits for the one before
/// it.
BITS_HOST_DEVICE double positiveDivergence(double x, double q) {
    const UsualDivisor byM(canonical::mul(0.5, canonical::add(x, q)));
    const double ofX = byM.divide(x);
    const double ofQ = byM.divide(q);
    const int64_t exponentX = exponentOf(ofX);
    const int64_t exponentQ = exponentOf(ofQ);
    double logX = logOfPart(ofX, exponentX);
    double logQ = logOfPart(ofQ, exponentQ);
    // Of what is alike both are 0, which add nothing.
    if ((exponentX | exponentQ) != 0) {
        logX = addExponent(logX, exponentX);
        logQ = addExponent(logQ, exponentQ);
    }
    return canonical::add(canonical::mul(x, logX), canonical::mul(q, logQ));
}

/// The same of any numbers that came from float32; Terms<JensenShannon>::add
/// adds it. Equal components and zeros, of which histograms have many, take no
/// logarithm.
BITS_HOST_DEVICE double divergenceTerm(double x, double q) {
    using namespace canonical;
    constexpr double kMost = 0x1p128; // beyond float32
    if (x == q && x < kMost && x > -kMost) {
        return 0; // x log 1, where -0 adds what 0 does
    }
    if ((x == 0 || q == 0) && x + q < kMost && x + q > -kMost) {
        return mul(add(x, q), kLogTwoHigh + kLogTwoLow); // of y y log 2
    }
    if (x > 0 && q > 0 && x < kMost && q < kMost) {
        return positiveDivergence(x, q);
    }
    const double m = mul(0.5, add(x, q));
    const auto term = [=](double y) {
        return y == 0 ? 0.0 : mul(y, log(div(y, m)));
    };
    return add(term(x), term(q));
}

} // namespace faiss_bits

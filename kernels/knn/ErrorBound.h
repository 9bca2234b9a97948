#pragma once

#include "kernels/canonical/RoundedOps.h"

namespace faiss_bits {

/// How far an approximate distance may be from the canonical one, before that
/// is rounded to float32; derivations in docs/exact.md. For a vector x at the
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

} // namespace faiss_bits

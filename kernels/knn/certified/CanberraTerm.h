/// A term of Canberra for kernels.
#pragma once

#include "kernels/canonical/RoundedOps.h"

namespace faiss_bits {

/// |x - q| / (|x| + |q|), 0 for 0 / 0: the bits of Terms<Metric::Canberra>.
///
/// A division in float64 is some nine operations, and a call of some seventy
/// instructions where the dividend is 0: all lanes of a warp wait for it when
/// one has two components that are equal. So 1 / 1 is divided there instead.
BITS_HOST_DEVICE double canberraTerm(double x, double q) {
    const double off = canonical::abs(canonical::sub(x, q));
    const double size = canonical::add(canonical::abs(x), canonical::abs(q));
    // Also where both are zeros; where one is no number neither is off.
    const bool isZero = off == 0;
    const double term = canonical::div(isZero ? 1.0 : off, isZero ? 1.0 : size);
    return isZero ? 0.0 : term;
}

} // namespace faiss_bits

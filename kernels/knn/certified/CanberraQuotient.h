/// A term of Canberra for kernels whose lanes take one term after the other.
#pragma once

#include "kernels/canonical/RoundedOps.h"

namespace faiss_bits {

/// |x - q| / (|x| + |q|), 0 for 0 / 0: the bits of Terms<Metric::Canberra>.
///
/// A division in float64 is some nine operations, and a call of some seventy
/// instructions where the dividend is 0: all lanes of a warp wait for it when
/// one has two components that are equal. So 1 / 1 is divided there instead.
BITS_HOST_DEVICE double canberraQuotient(double x, double q) {
    const double off = canonical::abs(canonical::sub(x, q));
    const double size = canonical::add(canonical::abs(x), canonical::abs(q));
    // Also where both are zeros; where one is no number neither is off.
    const bool isZero = off == 0;
    double dividend = isZero ? 1.0 : off;
    double divisor = isZero ? 1.0 : size;
#if defined(__CUDA_ARCH__)
    // The compiler sees that the quotient is not used where off is 0, and would
    // divide that after all.
    asm("" : "+d"(dividend), "+d"(divisor));
#endif
    const double term = canonical::div(dividend, divisor);
    return isZero ? 0.0 : term;
}

} // namespace faiss_bits

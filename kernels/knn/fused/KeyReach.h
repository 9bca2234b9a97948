/// How far a vector can be whose key in a scan is known.
#pragma once

#include <cmath>

#include "kernels/canonical/RoundedOps.h"
#include "kernels/knn/ErrorBound.h"

namespace faiss_bits {

/// A canonical key, rounded to float32, that no vector exceeds whose key in a
/// scan by L2 or inner product is at most `key`; infinity where none is found.
/// For L2 key is 0 or more.
///
/// bound.at(c)  |scan's key - c| of a vector of canonical key c, at most
///
/// A vector of canonical key c has a scan's key of at least f(c) = c - at(c),
/// so that f(c) <= key. Returned is r with f(r) >= key. For L2 at(c) is a
/// polynomial of the second degree in sqrt(c) whose factors are not negative,
/// and that of c is below 1; so f is convex in sqrt(c), and as f(0) = -at(0) <
/// 0 <= key <= f(r), f(c) > key for every c > r. For inner products at(c) is
/// a constant and 2^-22 |c|, and f rises with c. Where at() takes no vector to
/// be longer than some length (RowBound::longest), it is the polynomial up to
/// some c, and from there on a constant and 2^-22 c, so that f is no less than
/// before and rises there: the same follows. What is rounded here, 2^-50 of it,
/// is covered by at(), which takes 2^-22 of c for a rounding of 2^-24.
///
/// As at() hardly grows from key to r, r = key + 1.0625 at(key) does mostly; it
/// does not where vectors are far from a query whose own norm is small.
#if defined(__CUDACC__)
#pragma nv_exec_check_disable
#endif
template <class Bound>
BITS_HOST_DEVICE double reachOfKey(double key, const Bound& bound) {
    constexpr int kTries = 4;
    double more = 1.0625 * bound.at(key);
    for (int i = 0; i < kTries; ++i) {
        const double reach = key + more;
        if (reach - bound.at(reach) >= key) {
            return reach;
        }
        more *= 2;
    }
    return bounds::kInfinity;
}

} // namespace faiss_bits

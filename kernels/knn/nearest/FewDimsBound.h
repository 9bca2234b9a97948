#pragma once

#include <cmath>

#include "kernels/canonical/RoundedOps.h"
#include "kernels/common/Types.h"

namespace faiss_bits {

/// Dimensions of vectors that FewDimsKnn.h searches, and that it is the second
/// search of.
constexpr int kMostFewDims = 8;
constexpr int kMostFewDimsAgain = 16;

/// How far the float32 value of a pair (FewDimsScan.cuh) may be from its
/// canonical key, a similarity's with its sign turned, with room for the
/// rounding of two keys to float32. y and p are vector and query, by L2 less a
/// center; L2: |y|^2 - 2 <y, p> in fused steps, and |p|^2 added last. The
/// derivation is in docs/bounds.md.
///
/// greatest   of |y|^2 of the vectors
/// own        |p|^2
/// Both sums of float32. Infinity where a sum may overflow. Of cosines, whose
/// vectors and queries were made of length 1, it is that of inner products.
template <Metric kMetric, int kDims>
BITS_HOST_DEVICE float fewDimsError(float greatest, float own) {
    constexpr bool kIsL2 = kMetric == Metric::L2;
    static_assert(kIsL2 || kMetric == Metric::InnerProduct);
    constexpr float kRoundings = kIsL2 ? 2 * kDims + 10 : kDims + 8;
    constexpr float kOfSums = 1 + 0x1p-20f;
    constexpr float kUnderflow = 0x1p-62f; // of the squares
    constexpr float kMostOfSum = 0x1p120f;
    const float vectors = sqrtf(greatest) * kOfSums + kUnderflow;
    const float query = sqrtf(own) * kOfSums + kUnderflow;
    const float size =
            kIsL2 ? (vectors + query) * (vectors + query) : vectors * query;
    return size < kMostOfSum
            ? size * (1.02f * kRoundings * 0x1p-24f) + 0x1p-140f
            : HUGE_VALF;
}

} // namespace faiss_bits

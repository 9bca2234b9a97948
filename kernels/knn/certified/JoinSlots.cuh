/// The sums of a canonical distance, from the slots that eight lanes have.
#pragma once

#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits {

/// All lanes of the warp call it; each eight get the sums of their slots, in
/// the order that makes them canonical.
template <class Terms>
__device__ __forceinline__ void joinSlots(double (&sums)[Terms::kSums]) {
    // Slots 0 and 4, then 2 and 6 to them, then the odd ones.
#pragma unroll
    for (int j = 0; j < Terms::kSums; ++j) {
#pragma unroll
        for (int lanes = kPairLanes / 2; lanes >= 1; lanes /= 2) {
            const double other = __shfl_xor_sync(kFullWarp, sums[j], lanes);
            sums[j] = Terms::join(sums[j], other);
        }
    }
}

} // namespace faiss_bits

#pragma once

#include "kernels/knn/direct/DirectParams.h"

namespace faiss_bits {

/// The vector at a place; -1 if there is none, or it is not allowed.
__device__ __forceinline__ int32_t directVector(
        const CertifiedParams& search,
        const DirectKeys& keys,
        int64_t place) {
    const uint32_t number = directNumber(keys, uint32_t(place));
    if (number >= keys.places) {
        return -1;
    }
    const int32_t vector = keys.ids ? keys.ids[number] : int32_t(number);
    const bool allowed = vector >= 0 &&
            (!search.allowedBits || keys.ids ||
             (search.allowedBits[vector / 32] >> (vector % 32) & 1));
    return allowed ? vector : -1;
}

} // namespace faiss_bits

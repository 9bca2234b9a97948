/// The key of some rank among those that the lanes of a warp hold.
#pragma once

#include "kernels/device/Bitonic.cuh"

namespace faiss_bits {

/// Of the keys that lanes hold, in order: the rank'th, or a later one where
/// equal ones are beside it. They are at least `least` and at most `most`, and
/// there are `rank` of them. All lanes of the warp call it.
template <int kItems>
__device__ __forceinline__ uint32_t rankedOf(
        const uint32_t (&keys)[kItems],
        uint32_t rank,
        uint32_t least,
        uint32_t most) {
    // There are `rank` keys up to `most`; fewer below `least`.
    while (least < most) {
        const uint32_t middle = least + (most - least) / 2;
        uint32_t count = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            count += keys[i] <= middle;
        }
        count = __reduce_add_sync(kFullWarp, count);
        if (count < rank) {
            least = middle + 1;
            continue;
        }
        most = middle;
        if (count == rank) {
            break;
        }
    }
    uint32_t ranked = 0;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
        ranked = keys[i] <= most ? max(ranked, keys[i]) : ranked;
    }
    return __reduce_max_sync(kFullWarp, ranked);
}

} // namespace faiss_bits

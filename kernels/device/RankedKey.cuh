/// The key of some rank among those that a warp holds.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// The key that `share` of the way from one to another leads to, by value.
__device__ __forceinline__ uint32_t
keyBetween(uint32_t least, uint32_t most, float share) {
    const float from = keyValue(least);
    return orderedKey(fmaf(keyValue(most) - from, share, from));
}

/// Of the keys that lanes hold, in order: the rank'th, or a later one where
/// equal ones are beside it. They are at least `least` and at most `most`, and
/// there are `upTo` of them, `rank` or more; what is above `most` is no key.
/// All lanes of the warp call it.
template <int kItems>
__device__ __forceinline__ uint32_t rankedOf(
        const uint32_t (&keys)[kItems],
        uint32_t rank,
        uint32_t least,
        uint32_t most,
        uint32_t upTo) {
    // Values are even enough that the ranks at both ends tell where to look;
    // bits are halved where they are not. Halving alone takes twice as many
    // steps where keys of both signs meet, as most bits of such a range are
    // those of its smallest numbers.
    constexpr int kByRank = 5;
    constexpr int kByValue = 12;
    uint32_t below = 0; // keys before `least`
    // There are `upTo` keys up to `most`.
    for (int step = 0; least < most && upTo != rank; ++step) {
        uint32_t middle = least + (most - least) / 2;
        if (step < kByValue) {
            const float share = step < kByRank
                    ? __fdividef(float(rank - below), float(upTo - below))
                    : 0.5f;
            middle = min(max(keyBetween(least, most, share), least), most - 1);
        }
        uint32_t count = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            count += keys[i] <= middle;
        }
        count = __reduce_add_sync(kFullWarp, count);
        if (count < rank) {
            least = middle + 1;
            below = count;
        } else {
            most = middle;
            upTo = count;
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

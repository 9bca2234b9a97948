/// Codes of four vectors that stand side by side in an interleaved list.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

/// Codes of a component, or of a part, of four vectors: of kBits each, side by
/// side in groups of 32.
template <int kBits>
struct CodesOfFour {
    using Word = std::conditional_t<
            kBits == 16,
            uint2,
            std::conditional_t<kBits == 4, uint16_t, uint32_t>>;
    static constexpr int kGroupBytes = kBits * kListGroup / 8;

    /// Of vectors 4 g to 4 g + 3 of a group; `row` is where its codes of the
    /// component begin.
    __device__ __forceinline__ static Word read(const uint8_t* row, int g) {
        if constexpr (kBits == 6) {
            // Three bytes, in one word or in two.
            const auto* words = reinterpret_cast<const uint32_t*>(row);
            const int first = 3 * g / 4;
            const uint32_t low = __ldg(words + first);
            const uint32_t high =
                    __ldg(words + min(first + 1, kGroupBytes / 4 - 1));
            return __funnelshift_r(low, high, 3 * g % 4 * 8);
        } else {
            return __ldg(reinterpret_cast<const Word*>(row) + g);
        }
    }

    /// Code j, below 256, as a number.
    __device__ __forceinline__ static float number(uint32_t word, int j) {
        if constexpr (kBits == 8) {
            return numberOfBits(__byte_perm(word, kNumberBits, 0x7440 | j));
        } else {
            return numberOf(word >> (j * kBits) & ((1u << kBits) - 1));
        }
    }
};

/// The group of an interleaved vector: its codes from number `code` on.
template <int kBits>
__device__ __forceinline__ const uint8_t* codesOfGroup(
        const TilePlace& place,
        int i,
        int numCodes,
        int code) {
    const int64_t group = (place.first + i) / kListGroup;
    return static_cast<const uint8_t*>(place.list) +
            (group * numCodes + code) * CodesOfFour<kBits>::kGroupBytes;
}

/// 4 g is the vector's number in its group.
__device__ __forceinline__ int fourOfGroup(const TilePlace& place, int i) {
    return int(place.first + i) % kListGroup / 4;
}

} // namespace faiss_bits

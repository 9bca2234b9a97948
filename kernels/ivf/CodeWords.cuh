/// Codes of a byte as the words that one load has.
#pragma once

#include <cstdint>

namespace faiss_bits {

/// Codes `from` on, which begin on kBytes, 2, 4, 8 or 16: four in a word, or
/// two.
template <int kBytes>
__device__ __forceinline__ void loadCodeWords(
        const uint8_t* from,
        uint32_t (&words)[(kBytes + 3) / 4]) {
    static_assert(kBytes == 2 || kBytes == 4 || kBytes == 8 || kBytes == 16);
    if constexpr (kBytes == 16) {
        const uint4 all = *reinterpret_cast<const uint4*>(from);
        words[0] = all.x;
        words[1] = all.y;
        words[2] = all.z;
        words[3] = all.w;
    } else if constexpr (kBytes == 8) {
        const uint2 all = *reinterpret_cast<const uint2*>(from);
        words[0] = all.x;
        words[1] = all.y;
    } else if constexpr (kBytes == 4) {
        words[0] = *reinterpret_cast<const uint32_t*>(from);
    } else {
        words[0] = *reinterpret_cast<const uint16_t*>(from);
    }
}

} // namespace faiss_bits

#pragma once

#include "kernels/common/Layout.h"
#include "kernels/common/Types.h"

namespace faiss_bits {

/// Rows of keys in memory, as kernels get them by value: what entries are made
/// from. The key that counts is keys[r][c] or, with colBias, (keys[r][c] +
/// colBias[c]) + rowBias[r], not below the floor.
struct KeySource {
    const void* keys = nullptr; // [rows, cols] of the kernel's key type
    idx_t rowStride = 0;
    const float* colBias = nullptr; // [cols]
    const float* rowBias = nullptr; // [rows] or nullptr: zeros
    uint32_t cols = 0;
    uint32_t signMask = 0; // flips keys for `largest`: 0x80000000, else 0
    float floor = 0; // biased keys below it count as it; 0 or -infinity
    uint32_t vectorLoads = 0; // 1: rows start at multiples of 16 bytes
};

static_assert(!hasTailPadding<KeySource>());

} // namespace faiss_bits

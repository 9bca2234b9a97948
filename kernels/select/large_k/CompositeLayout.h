#pragma once

#include <cstdint>

#include "kernels/common/Types.h"

namespace faiss_bits {

/// Entries of several rows as numbers that one radix sort can order: row above
/// key above column. Keys of 16 bits take only so many.
struct CompositeLayout {
    bool used = false; // else entries stay as they are
    DataType keyType = DataType::Float32;
    int keyBits = 32;
    int columnBits = 32;
    uint32_t rowMask = 0; // rows of one sort - 1; those are a power of two
};

} // namespace faiss_bits

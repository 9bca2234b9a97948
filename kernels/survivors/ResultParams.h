#pragma once

#include "kernels/common/Types.h"

namespace faiss_bits {

/// Where results go and what they look like, as kernels get it by value. An
/// entry holds a column; only what writes a result turns it into an id.
struct ResultParams {
    int k = 0;
    void* outKeys = nullptr; // [rows, k]
    void* outIds = nullptr;
    idx_t outStride = 0;

    const void* ids = nullptr; // [rows, columns]; nullptr: idOffset + column
    idx_t idStride = 0;
    bool ids64 = true; // of ids and outIds
    idx_t idOffset = 0;

    uint32_t outSignMask = 0; // flips keys back: 0x80000000 for the largest
    // NaN of columns from here on leaves an empty place: kNoEntry, which no
    // column is, or all.
    uint32_t emptyNanFrom = ~0u;

    uint32_t firstRow = 0; // of this launch
};

} // namespace faiss_bits

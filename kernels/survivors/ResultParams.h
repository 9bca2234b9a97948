#pragma once

#include "kernels/common/Layout.h"
#include "kernels/common/Types.h"

namespace faiss_bits {

/// Where results go and what they look like, as kernels get it by value. An
/// entry holds a column; only what writes a result turns it into an id.
struct ResultParams {
    void* outKeys = nullptr; // [rows, k]
    void* outIds = nullptr;
    idx_t outStride = 0;

    const void* ids = nullptr; // [rows, columns]; nullptr: idOffset + column
    idx_t idStride = 0;
    idx_t idOffset = 0;

    int k = 0;
    uint32_t outSignMask = 0; // flips keys back: 0x80000000 for the largest
    // NaN of columns from here on leaves an empty place: kNoEntry, which no
    // column is, or all.
    uint32_t emptyNanFrom = ~0u;
    uint32_t firstRow = 0; // of this launch
    uint64_t ids64 = 1;    // of ids and outIds: 1, or 0 for 32 bits
};

static_assert(!hasTailPadding<ResultParams>());

} // namespace faiss_bits

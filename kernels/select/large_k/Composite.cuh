/// From entries to the composites of CompositeLayout and back.
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/select/large_k/CompositeLayout.h"

namespace faiss_bits {

/// The same order in as few bits as the type of the keys has.
__device__ __forceinline__ uint32_t narrowKey(DataType type, uint32_t key) {
    if (type == DataType::Float32 || key == kNanKey) {
        return type == DataType::Float32 ? key : 0xFFFFu;
    }
    if (type == DataType::BFloat16) {
        return key >> 16; // the lower half follows from the sign
    }
    const uint32_t bits = __half_as_ushort(__float2half_rn(keyValue(key)));
    return (bits & 0x8000u) ? ~bits & 0xFFFFu : bits | 0x8000u;
}

__device__ __forceinline__ uint32_t widenKey(DataType type, uint32_t narrow) {
    if (type == DataType::Float32) {
        return narrow;
    }
    if (narrow == 0xFFFFu) {
        return kNanKey;
    }
    const uint32_t bits =
            (narrow & 0x8000u) ? narrow & 0x7FFFu : ~narrow & 0xFFFFu;
    return orderedKey(
            type == DataType::BFloat16
                    ? __uint_as_float(bits << 16)
                    : __half2float(__ushort_as_half((unsigned short)bits)));
}

__device__ __forceinline__ uint64_t makeComposite(
        const CompositeLayout& layout,
        uint32_t row,
        uint32_t narrowKey,
        uint32_t column) {
    const uint64_t rowInSort = row & layout.rowMask;
    const int rowShift = layout.keyBits + layout.columnBits;
    return (rowInSort != 0 ? rowInSort << rowShift : 0) |
            (uint64_t(narrowKey) << layout.columnBits) | column;
}

/// How an entry of `row` goes into the sort.
__device__ __forceinline__ uint64_t
sortedAs(const CompositeLayout& layout, uint32_t row, uint64_t entry) {
    return layout.used ? makeComposite(
                                 layout,
                                 row,
                                 narrowKey(layout.keyType, entryKey(entry)),
                                 entryColumn(entry))
                       : entry;
}

/// Behind every entry of the row, or equal to the last NaN of it.
__device__ __forceinline__ uint64_t
lastComposite(const CompositeLayout& layout, uint32_t row) {
    const uint32_t ones = ~uint32_t(0);
    return makeComposite(
            layout,
            row,
            layout.keyBits == 32 ? ones : 0xFFFFu,
            layout.columnBits == 32 ? ones
                                    : (uint32_t(1) << layout.columnBits) - 1);
}

/// The entry, without its row.
__device__ __forceinline__ uint64_t
entryOf(const CompositeLayout& layout, uint64_t composite) {
    if (!layout.used) {
        return composite;
    }
    const uint64_t columns = (uint64_t(1) << layout.columnBits) - 1;
    const uint64_t keys = (uint64_t(1) << layout.keyBits) - 1;
    return makeEntry(
            widenKey(
                    layout.keyType,
                    uint32_t((composite >> layout.columnBits) & keys)),
            uint32_t(composite & columns));
}

} // namespace faiss_bits

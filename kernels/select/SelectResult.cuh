/// From an entry to the key and id that the caller gets.
#pragma once

#include <cfloat>
#include <type_traits>

#include "kernels/device/Entry.cuh"
#include "kernels/select/SelectParams.h"

namespace faiss_bits {

template <class T>
__device__ __forceinline__ T largestFinite() {
    if constexpr (std::is_same_v<T, __nv_bfloat16>) {
        return __ushort_as_bfloat16(0x7F7F);
    } else {
        return T(sizeof(T) == 4 ? FLT_MAX : 65504.0f);
    }
}

/// The key as the caller gave it: zeros and NaN have several.
template <class T>
__device__ inline T keyInMemory(
        const SelectParams& p,
        uint32_t row,
        uint32_t column) {
    const size_t from = size_t(p.rowStride) * row + column;
    const T key = static_cast<const T*>(p.keys)[from];
    if (!p.colBias) {
        return key;
    }
    const float rowBias = p.rowBias ? p.rowBias[row] : 0.0f;
    const float value = (toFloat(key) + p.colBias[column]) + rowBias;
    return T(value < p.floor ? p.floor : value);
}

/// Writes one place of the result. `T` is the type of keys in memory. An entry
/// beyond params.lastEntry leaves the place empty. Zeros are read again, since
/// they may be -0, unless the caller knows better.
template <class T>
__device__ inline void writeResult(
        const SelectParams& p,
        uint32_t row,
        int place,
        uint64_t entry,
        bool zerosArePlus = false) {
    const size_t at = size_t(row) * p.outStride + place;
    T key;
    int64_t id = -1;
    if (entry > p.lastEntry) {
        const T worst = largestFinite<T>();
        key = p.signMask ? T(-toFloat(worst)) : worst;
    } else {
        const uint32_t ordered = entryKey(entry);
        const uint32_t column = entryColumn(entry);
        if (ordered == kNanKey || (ordered == kZeroKey && !zerosArePlus)) {
            key = keyInMemory<T>(p, row, column);
        } else if (ordered == kZeroKey) {
            key = T(0.0f);
        } else {
            // Every other key is in its entry, which costs no memory read.
            const uint32_t bits = __float_as_uint(keyValue(ordered));
            key = T(__uint_as_float(bits ^ p.signMask));
        }
        id = p.idOffset + column;
        if (p.ids) {
            const size_t from = size_t(p.idStride) * row + column;
            id = p.ids64 ? static_cast<const int64_t*>(p.ids)[from]
                         : int64_t(static_cast<const int32_t*>(p.ids)[from]);
        }
    }
    static_cast<T*>(p.outKeys)[at] = key;
    if (p.ids64) {
        static_cast<int64_t*>(p.outIds)[at] = id;
    } else {
        static_cast<int32_t*>(p.outIds)[at] = int32_t(id);
    }
}

} // namespace faiss_bits

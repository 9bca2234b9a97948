/// From an entry to the key and id that the caller gets.
#pragma once

#include <cfloat>
#include <type_traits>

#include "kernels/device/Entry.cuh"
#include "kernels/device/KeySource.h"
#include "kernels/survivors/ResultParams.h"

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
        const KeySource& source,
        uint32_t row,
        uint32_t column) {
    const size_t from = size_t(source.rowStride) * row + column;
    const T key = static_cast<const T*>(source.keys)[from];
    if (!source.colBias) {
        return key;
    }
    const float rowBias = source.rowBias ? source.rowBias[row] : 0.0f;
    const float value = (toFloat(key) + source.colBias[column]) + rowBias;
    return T(value < source.floor ? source.floor : value);
}

/// Writes one place of the result. `T` is the type of keys; Params is a
/// ResultParams, and the KeySource of its special keys. kNoEntry, and
/// NaN where it is no candidate, leaves the place empty. NaN is read again, and
/// zeros, since they may be -0, unless the caller knows better; where there are
/// no keys in memory they are the NaN of all ones but the sign, and +0.
template <class T, class Params>
__device__ inline void writeResult(
        const Params& p,
        uint32_t row,
        int place,
        uint64_t entry,
        bool zerosArePlus = false) {
    const size_t at = size_t(row) * p.outStride + place;
    T key;
    int64_t id = -1;
    const uint32_t ordered = entryKey(entry);
    const uint32_t column = entryColumn(entry);
    const bool isNan = ordered == kNanKey;
    if (isNan && column >= p.emptyNanFrom) {
        const T worst = largestFinite<T>();
        key = p.outSignMask ? T(-toFloat(worst)) : worst;
    } else {
        // Every key but zeros and NaN is in its entry, which costs no read.
        const uint32_t sign = ordered == kZeroKey ? 0 : p.outSignMask;
        key = T(__uint_as_float(__float_as_uint(keyValue(ordered)) ^ sign));
        if ((isNan || (ordered == kZeroKey && !zerosArePlus)) && p.keys) {
            key = keyInMemory<T>(p, row, column);
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

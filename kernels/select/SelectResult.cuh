/// From an entry to the key and id that the caller gets.
#pragma once

#include <cfloat>

#include "kernels/device/Entry.cuh"
#include "kernels/select/SelectParams.h"

namespace faiss_bits {

/// Writes one place of the result. `T` is the type of keys in memory.
template <class T>
__device__ inline void writeResult(
        const SelectParams& p,
        uint32_t row,
        int place,
        uint64_t entry) {
    const size_t at = size_t(row) * p.outStride + place;
    T key;
    int64_t id = -1;
    if (entry == kNoEntry) {
        const float worst = sizeof(T) == 4 ? FLT_MAX : 65504.0f;
        key = T(p.signMask ? -worst : worst);
    } else {
        const uint32_t column = entryColumn(entry);
        const size_t from = size_t(p.rowStride) * row + column;
        key = static_cast<const T*>(p.keys)[from];
        if (p.colBias) {
            const float value =
                    (toFloat(key) + p.colBias[column]) + p.rowBias[row];
            key = T(value < 0.0f ? 0.0f : value);
        }
        id = p.idOffset + column;
        if (p.ids) {
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

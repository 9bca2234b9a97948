/// Keys of any type as entries, and entries as results, with the type known at
/// run time only: the queue methods are for comparison, and one instance of a
/// kernel serves all types.
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

template <class T>
__device__ __forceinline__ uint64_t
keyEntry(T key, uint32_t signMask, uint32_t column) {
    const uint32_t bits = __float_as_uint(toFloat(key)) ^ signMask;
    return makeEntry(orderedKey(__uint_as_float(bits)), column);
}

/// Four keys with one load.
__device__ __forceinline__ void loadFour(const float* from, float (&to)[4]) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
}

template <class T>
__device__ __forceinline__ void loadFour(const T* from, float (&to)[4]) {
    struct alignas(8) Four {
        T values[4];
    };
    const Four four = *reinterpret_cast<const Four*>(from);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        to[i] = toFloat(four.values[i]);
    }
}

/// Calls `body` with a null pointer to the type of the keys.
template <class Body>
__device__ __forceinline__ void withKeyType(DataType type, Body body) {
    switch (type) {
        case DataType::Float32:
            body(static_cast<const float*>(nullptr));
            break;
        case DataType::Float16:
            body(static_cast<const __half*>(nullptr));
            break;
        case DataType::BFloat16:
            body(static_cast<const __nv_bfloat16*>(nullptr));
            break;
    }
}

__device__ inline void writeResultOf(
        DataType type,
        const SelectParams& p,
        uint32_t row,
        int place,
        uint64_t entry) {
    withKeyType(type, [&](auto* typed) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(typed)>>;
        writeResult<T>(p, row, place, entry);
    });
}

} // namespace faiss_bits

/// A candidate of a k-selection as one 64-bit number: the key in the upper
/// half, mapped so that unsigned order is the contract's order, and the column
/// in the lower half, so that equal keys fall to the lower column.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace faiss_bits {

/// Worse than every candidate: an empty place of a list.
constexpr uint64_t kNoEntry = ~uint64_t(0);
constexpr uint32_t kNanKey = ~uint32_t(0);
constexpr uint32_t kZeroKey = 0x80000000u; // of +0 and -0

/// -0 counts as +0, NaN is behind every number.
__device__ __forceinline__ uint32_t orderedKey(float value) {
    const uint32_t bits = __float_as_uint(value + 0.0f);
    const uint32_t ordered =
            (bits & 0x80000000u) ? ~bits : (bits | 0x80000000u);
    return value != value ? kNanKey : ordered;
}

__device__ __forceinline__ float keyValue(uint32_t ordered) {
    return __uint_as_float(
            (ordered & 0x80000000u) ? (ordered & 0x7FFFFFFFu) : ~ordered);
}

__device__ __forceinline__ uint64_t makeEntry(uint32_t key, uint32_t column) {
    return (uint64_t(key) << 32) | column;
}

__device__ __forceinline__ uint32_t entryKey(uint64_t entry) {
    return uint32_t(entry >> 32);
}

__device__ __forceinline__ uint32_t entryColumn(uint64_t entry) {
    return uint32_t(entry);
}

/// Better first: equal keys fall to the lower column.
struct EntryLess {
    __device__ __forceinline__ bool operator()(uint64_t a, uint64_t b) const {
        return a < b;
    }
};

template <class T>
__device__ __forceinline__ float toFloat(T value);

template <>
__device__ __forceinline__ float toFloat(float value) {
    return value;
}

template <>
__device__ __forceinline__ float toFloat(__half value) {
    return __half2float(value);
}

template <>
__device__ __forceinline__ float toFloat(__nv_bfloat16 value) {
    return __bfloat162float(value);
}

} // namespace faiss_bits

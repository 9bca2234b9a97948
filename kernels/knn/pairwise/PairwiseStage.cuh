/// Rows of any type and layout on their way from memory to shared memory, where
/// they lie as float32, component by component: [component][row].
///
/// A thread takes four components of a row. They wait in its registers as they
/// were read while the block computes, and are widened after that.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/knn/pairwise/PairwiseParams.h"

namespace faiss_bits {

/// Four components as read: a word each, or with PairwiseRows::quads two
/// 16-bit ones a word.
struct RawQuad {
    uint32_t words[4];
};

/// Component c of a row whose first is at `row`, widened.
__device__ __forceinline__ float loadComponent(
        const PairwiseRows& rows,
        idx_t row,
        int c) {
    const idx_t at = row * rows.rowStride + c * rows.columnStride;
    if (rows.type == DataType::Float32) {
        return static_cast<const float*>(rows.data)[at];
    }
    if (rows.type == DataType::Float16) {
        return __half2float(static_cast<const __half*>(rows.data)[at]);
    }
    return __bfloat162float(static_cast<const __nv_bfloat16*>(rows.data)[at]);
}

__device__ __forceinline__ const uint8_t* rowPointer(
        const PairwiseRows& rows,
        idx_t row) {
    return static_cast<const uint8_t*>(rows.data) +
            row * rows.rowStride * (rows.type == DataType::Float32 ? 4 : 2);
}

/// Components c to c + 3; zeros behind d.
__device__ __forceinline__ RawQuad
loadQuad(const PairwiseRows& rows, const uint8_t* row, int c, int d) {
    RawQuad raw = {};
    const bool wide = rows.type == DataType::Float32;
    if (rows.quads) {
        if (c < d) {
            if (wide) {
                const uint4 four =
                        __ldg(reinterpret_cast<const uint4*>(row) + c / 4);
                raw = {{four.x, four.y, four.z, four.w}};
            } else {
                const uint2 four =
                        __ldg(reinterpret_cast<const uint2*>(row) + c / 4);
                raw.words[0] = four.x;
                raw.words[1] = four.y;
            }
        }
        return raw;
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        if (c + j < d) {
            const idx_t at = (c + j) * rows.columnStride;
            raw.words[j] = wide
                    ? __ldg(reinterpret_cast<const uint32_t*>(row) + at)
                    : __ldg(reinterpret_cast<const uint16_t*>(row) + at);
        }
    }
    return raw;
}

__device__ __forceinline__ float widen16(DataType type, uint32_t bits) {
    return type == DataType::Float16
            ? __half2float(__ushort_as_half(uint16_t(bits)))
            : __uint_as_float(bits << 16);
}

__device__ __forceinline__ float4
widenQuad(const PairwiseRows& rows, const RawQuad& raw) {
    const uint32_t(&w)[4] = raw.words;
    if (rows.type == DataType::Float32) {
        return make_float4(
                __uint_as_float(w[0]),
                __uint_as_float(w[1]),
                __uint_as_float(w[2]),
                __uint_as_float(w[3]));
    }
    const bool packed = rows.quads;
    return make_float4(
            widen16(rows.type, w[0] & 0xFFFFu),
            widen16(rows.type, packed ? w[0] >> 16 : w[1]),
            widen16(rows.type, packed ? w[1] & 0xFFFFu : w[2]),
            widen16(rows.type, packed ? w[1] >> 16 : w[3]));
}

} // namespace faiss_bits

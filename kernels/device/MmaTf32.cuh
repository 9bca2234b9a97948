/// Matrix instructions in TF32.
#pragma once

#include <cstdint>

namespace faiss_bits {

/// The nearest number of TF32: ten bits behind the point.
__device__ __forceinline__ uint32_t toTf32(float value) {
    uint32_t rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
    return rounded;
}

/// Of a warp: c += a b for a [16, 8] and b [8, 8]. With g = lane / 4 and t =
/// lane % 4 a lane has a of (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4), b
/// of (t, g), (t + 4, g), and c of (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8,
/// 2t + 1).
__device__ __forceinline__ void mmaTf32(
        float (&c)[4],
        const uint32_t (&a)[4],
        const uint32_t (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

} // namespace faiss_bits

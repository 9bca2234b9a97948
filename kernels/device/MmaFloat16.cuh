/// Matrix instructions in float16, and what they read from shared memory.
#pragma once

#include <cstdint>

namespace faiss_bits {

/// Four matrices of 8 rows of 16 bytes: a lane gives the address of row
/// lane % 8 of matrix lane / 8, and gets two halves of row lane / 4 of each.
__device__ __forceinline__ void loadFragments(
        uint32_t (&out)[4],
        uint32_t shared) {
    asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
            : "r"(shared)
            : "memory");
}

/// Of a warp: c += a b^T for a [16, 16] and b [8, 16]. With g = lane / 4 and
/// t = lane % 4 a lane has a of (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t +
/// 8), each with the next component, b of (g, 2t), (g, 2t + 8) likewise, and c
/// of (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
__device__ __forceinline__ void mmaFloat16(
        float* c,
        const uint32_t (&a)[4],
        const uint32_t* b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// The nearest numbers of float16, the first one below.
__device__ __forceinline__ uint32_t toFloat16(float first, float second) {
    uint32_t both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}

} // namespace faiss_bits

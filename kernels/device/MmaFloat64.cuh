/// Matrix instructions on float64, from compute capability 8.0 on.
#pragma once

namespace faiss_bits {

/// Of a warp: c += a b for a [16, 8] and b [8, 8]. With g = lane / 4 and
/// t = lane % 4 a lane has a of (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4),
/// b of (t, g), (t + 4, g), and c of (g, 2t), (g, 2t + 1), (g + 8, 2t),
/// (g + 8, 2t + 1).
__device__ __forceinline__ void mmaFloat64(
        double (&c)[4],
        const double (&a)[4],
        const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
    for (int row = 0; row < 2; ++row) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
                "{%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+d"(c[2 * row]), "+d"(c[2 * row + 1])
                : "d"(a[row + 2 * k]), "d"(b[k]));
        }
    }
#endif
}

} // namespace faiss_bits

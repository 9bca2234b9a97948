#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define BITS_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define BITS_HOST_DEVICE inline
#endif

/// float64 operations that are rounded one by one and never fused, alike on
/// every GPU and CPU. Files that use them on the host are compiled with
/// -ffp-contract=off: a compiler would make one fused operation of two.
namespace faiss_bits::canonical {

BITS_HOST_DEVICE double add(double a, double b) {
#if defined(__CUDA_ARCH__)
    return __dadd_rn(a, b);
#else
    return a + b;
#endif
}

BITS_HOST_DEVICE double sub(double a, double b) {
#if defined(__CUDA_ARCH__)
    return __dsub_rn(a, b);
#else
    return a - b;
#endif
}

BITS_HOST_DEVICE double mul(double a, double b) {
#if defined(__CUDA_ARCH__)
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

/// s + a * b of a and b that were float32: their product is exact in float64,
/// so that it does not matter whether it is rounded before the sum.
BITS_HOST_DEVICE double addProduct(double s, double a, double b) {
#if defined(__CUDA_ARCH__)
    return __fma_rn(a, b, s);
#else
    return s + a * b;
#endif
}

BITS_HOST_DEVICE double div(double a, double b) {
#if defined(__CUDA_ARCH__)
    return __ddiv_rn(a, b);
#else
    return a / b;
#endif
}

BITS_HOST_DEVICE double sqrt(double a) {
#if defined(__CUDA_ARCH__)
    return __dsqrt_rn(a);
#else
    return std::sqrt(a);
#endif
}

BITS_HOST_DEVICE double abs(double a) {
#if defined(__CUDA_ARCH__)
    // A flag of the operand; the choice below is three operations of float64.
    return fabs(a);
#else
    return a < 0 ? -a : a + 0.0; // -0 to +0
#endif
}

/// The larger; NaN if one of them is.
BITS_HOST_DEVICE double larger(double a, double b) {
    return a != a || a > b ? a : b;
}

/// The smaller; NaN if one of them is.
BITS_HOST_DEVICE double smaller(double a, double b) {
    return a != a || a < b ? a : b;
}

/// To float32 once, to the nearest, ties to even; beyond its range infinity.
/// Zero has no sign.
BITS_HOST_DEVICE float toFloat32(double a) {
#if defined(__CUDA_ARCH__)
    return __double2float_rn(a) + 0.0f;
#else
    return float(a) + 0.0f;
#endif
}

BITS_HOST_DEVICE uint64_t bitsOf(double a) {
#if defined(__CUDA_ARCH__)
    return uint64_t(__double_as_longlong(a));
#else
    uint64_t bits;
    std::memcpy(&bits, &a, sizeof(bits));
    return bits;
#endif
}

BITS_HOST_DEVICE double ofBits(uint64_t bits) {
#if defined(__CUDA_ARCH__)
    return __longlong_as_double((long long)bits);
#else
    double a;
    std::memcpy(&a, &bits, sizeof(a));
    return a;
#endif
}

} // namespace faiss_bits::canonical

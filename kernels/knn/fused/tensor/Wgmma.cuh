/// Products of Hopper's warpgroups: 128 threads, operands in shared memory.
#pragma once

#include <cstdint>

namespace faiss_bits::wgmma {

/// The descriptor of rows of kRowBytes bytes, 32, 64 or 128, swizzled over
/// their own length, as TensorImageLayout has them. Step k of 16 components is
/// 2 k further, a row 1/16 of its bytes.
template <int kRowBytes>
__device__ __forceinline__ uint64_t descriptor(uint32_t sharedAddress) {
    static_assert(kRowBytes == 32 || kRowBytes == 64 || kRowBytes == 128);
    constexpr uint64_t kSwizzle = kRowBytes == 128 ? 1
            : kRowBytes == 64                      ? 2
                                                   : 3;
    constexpr uint64_t kEightRows = 8 * kRowBytes / 16;
    return kSwizzle << 62 | kEightRows << 32 | uint64_t(1) << 16 |
            (sharedAddress & 0x3ffff) >> 4;
}

/// Before the first product that reads or writes registers which other
/// instructions wrote.
__device__ __forceinline__ void fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Until at most `kPending` groups are not finished.
template <int kPending>
__device__ __forceinline__ void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending)
                 : "memory");
}

/// The warpgroup's registers a thread, in a kernel of several roles.
template <int kRegisters>
__device__ __forceinline__ void lowerRegisters() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void raiseRegisters() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// Operands of a product: the registers of c by number, and as read and written
// ones of a type ("f" or "r").
// clang-format off
#define BITS_NAMES_32 \
    "%0, %1, %2, %3, %4, %5, %6, %7, " \
    "%8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define BITS_NAMES_64 \
    BITS_NAMES_32 ", " \
    "%32, %33, %34, %35, %36, %37, %38, %39, " \
    "%40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, " \
    "%56, %57, %58, %59, %60, %61, %62, %63"
#define BITS_NAMES_128 \
    BITS_NAMES_64 ", " \
    "%64, %65, %66, %67, %68, %69, %70, %71, " \
    "%72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, " \
    "%88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, " \
    "%104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, " \
    "%120, %121, %122, %123, %124, %125, %126, %127"

#define BITS_SUMS_8(type, c, i) \
    "+" type(c[i]), "+" type(c[i + 1]), "+" type(c[i + 2]), \
    "+" type(c[i + 3]), "+" type(c[i + 4]), "+" type(c[i + 5]), \
    "+" type(c[i + 6]), "+" type(c[i + 7])
#define BITS_SUMS_32_FROM(type, c, i) \
    BITS_SUMS_8(type, c, i), BITS_SUMS_8(type, c, i + 8), \
    BITS_SUMS_8(type, c, i + 16), BITS_SUMS_8(type, c, i + 24)
#define BITS_SUMS_32(type, c) BITS_SUMS_32_FROM(type, c, 0)
#define BITS_SUMS_64(type, c) \
    BITS_SUMS_32(type, c), BITS_SUMS_32_FROM(type, c, 32)
#define BITS_SUMS_128(type, c) \
    BITS_SUMS_64(type, c), BITS_SUMS_32_FROM(type, c, 64), \
    BITS_SUMS_32_FROM(type, c, 96)

/// c = a b^T + (add ? c : 0): 64 rows of a, kWidth rows of b, 16 components.
template <int kWidth>
__device__ __forceinline__ void multiply(
        float (&c)[kWidth / 2],
        uint64_t a,
        uint64_t b,
        int add);

/// c = a b^T: 64 rows of a in registers, of which components beyond the 8th are
/// zeros. Of lane l of warp w, a[0] holds components 2 (l mod 4) and the next
/// of row 16 w + l / 4, and a[1] those of 8 rows further.
template <int kWidth>
__device__ __forceinline__ void multiplyOwn(
        float (&c)[kWidth / 2],
        const uint32_t (&a)[2],
        uint64_t b);

template <>
__device__ __forceinline__ void multiplyOwn<64>(
        float (&c)[32],
        const uint32_t (&a)[2],
        uint64_t b) {
    asm volatile(
            "{\n"
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
            "{" BITS_NAMES_32 "}, "
            "{%32, %33, %34, %34}, %35, 0, 1, 1, 0;\n"
            "}"
            : BITS_SUMS_32("f", c)
            : "r"(a[0]), "r"(a[1]), "r"(0), "l"(b));
}

template <>
__device__ __forceinline__ void multiplyOwn<128>(
        float (&c)[64],
        const uint32_t (&a)[2],
        uint64_t b) {
    asm volatile(
            "{\n"
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
            "{" BITS_NAMES_64 "}, "
            "{%64, %65, %66, %66}, %67, 0, 1, 1, 0;\n"
            "}"
            : BITS_SUMS_64("f", c)
            : "r"(a[0]), "r"(a[1]), "r"(0), "l"(b));
}

template <>
__device__ __forceinline__ void multiplyOwn<256>(
        float (&c)[128],
        const uint32_t (&a)[2],
        uint64_t b) {
    asm volatile(
            "{\n"
            "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
            "{" BITS_NAMES_128 "}, "
            "{%128, %129, %130, %130}, %131, 0, 1, 1, 0;\n"
            "}"
            : BITS_SUMS_128("f", c)
            : "r"(a[0]), "r"(a[1]), "r"(0), "l"(b));
}

template <>
__device__ __forceinline__ void multiply<64>(
        float (&c)[32],
        uint64_t a,
        uint64_t b,
        int add) {
    asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "setp.ne.b32 p, %34, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
            "{" BITS_NAMES_32 "}, "
            "%32, %33, p, 1, 1, 0, 0;\n"
            "}"
            : BITS_SUMS_32("f", c)
            : "l"(a), "l"(b), "r"(add));
}

template <>
__device__ __forceinline__ void multiply<128>(
        float (&c)[64],
        uint64_t a,
        uint64_t b,
        int add) {
    asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "setp.ne.b32 p, %66, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
            "{" BITS_NAMES_64 "}, "
            "%64, %65, p, 1, 1, 0, 0;\n"
            "}"
            : BITS_SUMS_64("f", c)
            : "l"(a), "l"(b), "r"(add));
}

template <>
__device__ __forceinline__ void multiply<256>(
        float (&c)[128],
        uint64_t a,
        uint64_t b,
        int add) {
    asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "setp.ne.b32 p, %130, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
            "{" BITS_NAMES_128 "}, "
            "%128, %129, p, 1, 1, 0, 0;\n"
            "}"
            : BITS_SUMS_128("f", c)
            : "l"(a), "l"(b), "r"(add));
}

/// c = a b^T + (add ? c : 0), exactly: 64 rows of a, 128 rows of b, 32
/// components of 8 bits with a sign. Descriptors as of 16 bits; a step of 32
/// components is 2 further.
__device__ __forceinline__ void multiplyBytes(
        int32_t (&c)[64],
        uint64_t a,
        uint64_t b,
        int add) {
    asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "setp.ne.b32 p, %66, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 "
            "{" BITS_NAMES_64 "}, "
            "%64, %65, p;\n"
            "}"
            : BITS_SUMS_64("r", c)
            : "l"(a), "l"(b), "r"(add));
}

/// The same with 256 rows of b; c += a b^T.
__device__ __forceinline__ void multiplyBytes(
        int32_t (&c)[128],
        uint64_t a,
        uint64_t b) {
    asm volatile(
            "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 "
            "{" BITS_NAMES_128 "}, "
            "%128, %129, 1;"
            : BITS_SUMS_128("r", c)
            : "l"(a), "l"(b));
}
// clang-format on

#undef BITS_NAMES_32
#undef BITS_NAMES_64
#undef BITS_NAMES_128
#undef BITS_SUMS_8
#undef BITS_SUMS_32_FROM
#undef BITS_SUMS_32
#undef BITS_SUMS_64
#undef BITS_SUMS_128

} // namespace faiss_bits::wgmma

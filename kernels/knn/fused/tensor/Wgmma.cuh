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

#define BITS_EIGHT(c, i)                                        \
    "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), \
            "+f"(c[i + 4]), "+f"(c[i + 5]), "+f"(c[i + 6]), "+f"(c[i + 7])

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

// clang-format off
template <>
__device__ __forceinline__ void multiplyOwn<64>(
        float (&c)[32],
        const uint32_t (&a)[2],
        uint64_t b) {
    asm volatile(
            "{\n"
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
            "{"
            "%0, %1, %2, %3, %4, %5, %6, %7, "
            "%8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, "
            "%24, %25, %26, %27, %28, %29, %30, %31}, "
            "{%32, %33, %34, %34}, %35, 0, 1, 1, 0;\n"
            "}"
            : BITS_EIGHT(c, 0),
              BITS_EIGHT(c, 8),
              BITS_EIGHT(c, 16),
              BITS_EIGHT(c, 24)
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
            "{"
            "%0, %1, %2, %3, %4, %5, %6, %7, "
            "%8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, "
            "%24, %25, %26, %27, %28, %29, %30, %31, "
            "%32, %33, %34, %35, %36, %37, %38, %39, "
            "%40, %41, %42, %43, %44, %45, %46, %47, "
            "%48, %49, %50, %51, %52, %53, %54, %55, "
            "%56, %57, %58, %59, %60, %61, %62, %63}, "
            "{%64, %65, %66, %66}, %67, 0, 1, 1, 0;\n"
            "}"
            : BITS_EIGHT(c, 0),
              BITS_EIGHT(c, 8),
              BITS_EIGHT(c, 16),
              BITS_EIGHT(c, 24),
              BITS_EIGHT(c, 32),
              BITS_EIGHT(c, 40),
              BITS_EIGHT(c, 48),
              BITS_EIGHT(c, 56)
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
            "{"
            "%0, %1, %2, %3, %4, %5, %6, %7, "
            "%8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, "
            "%24, %25, %26, %27, %28, %29, %30, %31, "
            "%32, %33, %34, %35, %36, %37, %38, %39, "
            "%40, %41, %42, %43, %44, %45, %46, %47, "
            "%48, %49, %50, %51, %52, %53, %54, %55, "
            "%56, %57, %58, %59, %60, %61, %62, %63, "
            "%64, %65, %66, %67, %68, %69, %70, %71, "
            "%72, %73, %74, %75, %76, %77, %78, %79, "
            "%80, %81, %82, %83, %84, %85, %86, %87, "
            "%88, %89, %90, %91, %92, %93, %94, %95, "
            "%96, %97, %98, %99, %100, %101, %102, %103, "
            "%104, %105, %106, %107, %108, %109, %110, %111, "
            "%112, %113, %114, %115, %116, %117, %118, %119, "
            "%120, %121, %122, %123, %124, %125, %126, %127}, "
            "{%128, %129, %130, %130}, %131, 0, 1, 1, 0;\n"
            "}"
            : BITS_EIGHT(c, 0),
              BITS_EIGHT(c, 8),
              BITS_EIGHT(c, 16),
              BITS_EIGHT(c, 24),
              BITS_EIGHT(c, 32),
              BITS_EIGHT(c, 40),
              BITS_EIGHT(c, 48),
              BITS_EIGHT(c, 56),
              BITS_EIGHT(c, 64),
              BITS_EIGHT(c, 72),
              BITS_EIGHT(c, 80),
              BITS_EIGHT(c, 88),
              BITS_EIGHT(c, 96),
              BITS_EIGHT(c, 104),
              BITS_EIGHT(c, 112),
              BITS_EIGHT(c, 120)
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
            "{"
            "%0, %1, %2, %3, %4, %5, %6, %7, "
            "%8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, "
            "%24, %25, %26, %27, %28, %29, %30, %31}, "
            "%32, %33, p, 1, 1, 0, 0;\n"
            "}"
            : BITS_EIGHT(c, 0),
              BITS_EIGHT(c, 8),
              BITS_EIGHT(c, 16),
              BITS_EIGHT(c, 24)
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
            "{"
            "%0, %1, %2, %3, %4, %5, %6, %7, "
            "%8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, "
            "%24, %25, %26, %27, %28, %29, %30, %31, "
            "%32, %33, %34, %35, %36, %37, %38, %39, "
            "%40, %41, %42, %43, %44, %45, %46, %47, "
            "%48, %49, %50, %51, %52, %53, %54, %55, "
            "%56, %57, %58, %59, %60, %61, %62, %63}, "
            "%64, %65, p, 1, 1, 0, 0;\n"
            "}"
            : BITS_EIGHT(c, 0),
              BITS_EIGHT(c, 8),
              BITS_EIGHT(c, 16),
              BITS_EIGHT(c, 24),
              BITS_EIGHT(c, 32),
              BITS_EIGHT(c, 40),
              BITS_EIGHT(c, 48),
              BITS_EIGHT(c, 56)
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
            "{"
            "%0, %1, %2, %3, %4, %5, %6, %7, "
            "%8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, "
            "%24, %25, %26, %27, %28, %29, %30, %31, "
            "%32, %33, %34, %35, %36, %37, %38, %39, "
            "%40, %41, %42, %43, %44, %45, %46, %47, "
            "%48, %49, %50, %51, %52, %53, %54, %55, "
            "%56, %57, %58, %59, %60, %61, %62, %63, "
            "%64, %65, %66, %67, %68, %69, %70, %71, "
            "%72, %73, %74, %75, %76, %77, %78, %79, "
            "%80, %81, %82, %83, %84, %85, %86, %87, "
            "%88, %89, %90, %91, %92, %93, %94, %95, "
            "%96, %97, %98, %99, %100, %101, %102, %103, "
            "%104, %105, %106, %107, %108, %109, %110, %111, "
            "%112, %113, %114, %115, %116, %117, %118, %119, "
            "%120, %121, %122, %123, %124, %125, %126, %127}, "
            "%128, %129, p, 1, 1, 0, 0;\n"
            "}"
            : BITS_EIGHT(c, 0),
              BITS_EIGHT(c, 8),
              BITS_EIGHT(c, 16),
              BITS_EIGHT(c, 24),
              BITS_EIGHT(c, 32),
              BITS_EIGHT(c, 40),
              BITS_EIGHT(c, 48),
              BITS_EIGHT(c, 56),
              BITS_EIGHT(c, 64),
              BITS_EIGHT(c, 72),
              BITS_EIGHT(c, 80),
              BITS_EIGHT(c, 88),
              BITS_EIGHT(c, 96),
              BITS_EIGHT(c, 104),
              BITS_EIGHT(c, 112),
              BITS_EIGHT(c, 120)
            : "l"(a), "l"(b), "r"(add));
}
// clang-format on

#undef BITS_EIGHT

} // namespace faiss_bits::wgmma

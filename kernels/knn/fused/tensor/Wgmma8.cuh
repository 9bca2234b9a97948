/// Products of Hopper's warpgroups in integers of 8 bits.
#pragma once

#include <cstdint>

namespace faiss_bits::wgmma {

#define BITS_EIGHT(c, i)                                        \
    "+r"(c[i]), "+r"(c[i + 1]), "+r"(c[i + 2]), "+r"(c[i + 3]), \
            "+r"(c[i + 4]), "+r"(c[i + 5]), "+r"(c[i + 6]), "+r"(c[i + 7])

/// c += a b^T, exactly: 64 rows of a, 256 rows of b, 32
/// components of 8 bits with a sign. Descriptors as Wgmma.cuh has them; a step
/// of 32 components is 2 further.
/// The same with 128 rows of b; c = a b^T where not `add`.
// clang-format off
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
            "{"
            "%0, %1, %2, %3, %4, %5, %6, %7, "
            "%8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, "
            "%24, %25, %26, %27, %28, %29, %30, %31, "
            "%32, %33, %34, %35, %36, %37, %38, %39, "
            "%40, %41, %42, %43, %44, %45, %46, %47, "
            "%48, %49, %50, %51, %52, %53, %54, %55, "
            "%56, %57, %58, %59, %60, %61, %62, %63}, "
            "%64, %65, p;\n"
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

__device__ __forceinline__ void multiplyBytes(
        int32_t (&c)[128],
        uint64_t a,
        uint64_t b) {
    asm volatile(
            "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 "
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
            "%128, %129, 1;"
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
            : "l"(a), "l"(b));
}
// clang-format on

#undef BITS_EIGHT

} // namespace faiss_bits::wgmma

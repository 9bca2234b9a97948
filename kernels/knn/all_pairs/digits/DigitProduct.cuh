/// A product of digits by Hopper's warpgroups (Wgmma.cuh).
#pragma once

#include <cstdint>

namespace faiss_bits {

// clang-format off
/// c += a b^T, exactly: 64 rows of a, 64 rows of b, 32 components of 8 bits
/// with a sign. Descriptors of wgmma::descriptor; a step of 32 components is 2
/// further.
__device__ __forceinline__ void multiplyDigits(
        int32_t (&c)[32],
        uint64_t a,
        uint64_t b) {
    asm volatile(
            "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {"
            "%0, %1, %2, %3, %4, %5, %6, %7, "
            "%8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, "
            "%24, %25, %26, %27, %28, %29, %30, %31"
            "}, %32, %33, 1;"
            : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]),
              "+r"(c[4]), "+r"(c[5]), "+r"(c[6]), "+r"(c[7]),
              "+r"(c[8]), "+r"(c[9]), "+r"(c[10]), "+r"(c[11]),
              "+r"(c[12]), "+r"(c[13]), "+r"(c[14]), "+r"(c[15]),
              "+r"(c[16]), "+r"(c[17]), "+r"(c[18]), "+r"(c[19]),
              "+r"(c[20]), "+r"(c[21]), "+r"(c[22]), "+r"(c[23]),
              "+r"(c[24]), "+r"(c[25]), "+r"(c[26]), "+r"(c[27]),
              "+r"(c[28]), "+r"(c[29]), "+r"(c[30]), "+r"(c[31])
            : "l"(a), "l"(b));
}
// clang-format on

} // namespace faiss_bits

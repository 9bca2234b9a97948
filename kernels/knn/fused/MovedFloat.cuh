/// float32 that becomes float64 by moves of its bits: a multiprocessor has 16
/// lanes that convert, and 32 that multiply to 64 bits.
#pragma once

#include <cstdint>

namespace faiss_bits {

/// What movedFloat() multiplies by.
constexpr double kOfMovedFloat = 0x1p-896;

/// x 2^-896 of a finite x: both exponents have the same bits, and float64 has
/// room for those below the range too. Of an infinity or NaN it is finite.
__device__ __forceinline__ double movedFloat(float x) {
    // One instruction of a pipe that is idle here, where two shifts would be of
    // the pipe that addresses, sorts and masks wait for.
    int low;
    int high;
    asm("{\n\t.reg .b64 wide;\n\t"
        "mul.wide.s32 wide, %2, 0x20000000;\n\t"
        "mov.b64 {%0, %1}, wide;\n\t}"
        : "=r"(low), "=r"(high)
        : "r"(__float_as_int(x)));
    // The sign is at its place, and copies of it below are none of the
    // exponent's.
    return __hiloint2double(int(uint32_t(high) & 0x8fffffffu), low);
}

} // namespace faiss_bits

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

/// The bits of float16 and bfloat16 values, in plain C++, so that the tests of
/// the CPU part need no CUDA header. Rounding is to nearest, ties to even;
/// every NaN becomes 0x7fff, as CUDA's own conversions have it.
namespace faiss_bits::test {

/// value / 2^shift, rounded to nearest, ties to even; 1 <= shift <= 31.
inline uint32_t shiftRounding(uint32_t value, int shift) {
    const uint32_t half = uint32_t(1) << (shift - 1);
    const uint32_t rest = value & (2 * half - 1);
    const uint32_t quotient = value >> shift;
    return quotient + (rest > half || (rest == half && quotient % 2));
}

inline uint16_t float16Bits(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t magnitude = bits & 0x7fffffff;
    const int exponent = int(magnitude >> 23);
    if (std::isnan(value)) {
        return 0x7fff;
    }
    // From 65520 on the nearest is 65536, which there is not.
    if (magnitude >= std::bit_cast<uint32_t>(65520.f)) {
        return uint16_t(sign | 0x7c00);
    }
    if (magnitude >= std::bit_cast<uint32_t>(0x1p-14f)) {
        // A mantissa that rounds up to 2 carries into the exponent.
        const uint32_t rebiased = magnitude - (uint32_t(127 - 15) << 23);
        return uint16_t(sign | shiftRounding(rebiased, 13));
    }
    // Denormal: a multiple of 2^-24, and at most half of it is zero.
    const int shift = 126 - exponent;
    if (shift > 24) {
        return uint16_t(sign);
    }
    return uint16_t(
            sign | shiftRounding((magnitude & 0x7fffff) | 0x800000, shift));
}

inline float float16Value(uint16_t bits) {
    const int exponent = bits >> 10 & 0x1f;
    const int mantissa = bits & 0x3ff;
    float value;
    if (exponent == 0x1f) {
        value = mantissa ? std::numeric_limits<float>::quiet_NaN()
                         : std::numeric_limits<float>::infinity();
    } else if (exponent == 0) {
        value = std::ldexp(float(mantissa), -24);
    } else {
        value = std::ldexp(float(mantissa + 1024), exponent - 25);
    }
    return bits & 0x8000 ? -value : value;
}

inline uint16_t bfloat16Bits(float value) {
    if (std::isnan(value)) {
        return 0x7fff;
    }
    // The upper half of a float; what rounds beyond its range is infinity.
    return uint16_t(shiftRounding(std::bit_cast<uint32_t>(value), 16));
}

inline float bfloat16Value(uint16_t bits) {
    return std::bit_cast<float>(uint32_t(bits) << 16);
}

} // namespace faiss_bits::test

/// Our conversions to and from float16 and bfloat16 against CUDA's own, which
/// run on the host: no device is needed.

#include <bit>
#include <cmath>
#include <random>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include "tests/common/HalfBits.h"

namespace faiss_bits::test {
namespace {

/// Equal bits, or both NaN.
bool isSame(float ours, float theirs) {
    return (std::isnan(ours) && std::isnan(theirs)) ||
            std::bit_cast<uint32_t>(ours) == std::bit_cast<uint32_t>(theirs);
}

testing::AssertionResult agree(float value) {
    const uint16_t half = std::bit_cast<uint16_t>(__float2half_rn(value));
    const uint16_t wide = std::bit_cast<uint16_t>(__float2bfloat16_rn(value));
    if (float16Bits(value) == half && bfloat16Bits(value) == wide) {
        return testing::AssertionSuccess();
    }
    return testing::AssertionFailure()
            << std::hexfloat << value << std::hex << ": float16 "
            << float16Bits(value) << ", CUDA " << half << "; bfloat16 "
            << bfloat16Bits(value) << ", CUDA " << wide;
}

TEST(HalfBitsOfCuda, EveryPattern) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        const uint16_t pattern = uint16_t(bits);
        ASSERT_TRUE(
                isSame(float16Value(pattern),
                       __half2float(std::bit_cast<__half>(pattern))))
                << bits;
        ASSERT_TRUE(
                isSame(bfloat16Value(pattern),
                       __bfloat162float(std::bit_cast<__nv_bfloat16>(pattern))))
                << bits;
    }
}

/// All values of either type, the middles between neighbours, and the floats
/// beside both: where rounding turns.
TEST(HalfBitsOfCuda, FloatsWhereRoundingTurns) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        // A bfloat16 in the upper half; then the middle; then the next.
        for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
            ASSERT_TRUE(agree(std::bit_cast<float>(bits << 16 | low)));
        }
        const float value = float16Value(uint16_t(bits));
        const float next = float16Value(uint16_t(bits + 1));
        for (float turn : {value, value / 2 + next / 2}) {
            for (float to : {-INFINITY, turn, INFINITY}) {
                ASSERT_TRUE(agree(std::nextafter(turn, to)));
            }
        }
    }
}

TEST(HalfBitsOfCuda, RandomFloats) {
    std::mt19937 random(1);
    for (int i = 0; i < 20000000; ++i) {
        ASSERT_TRUE(agree(std::bit_cast<float>(uint32_t(random()))));
    }
}

} // namespace
} // namespace faiss_bits::test

/// Our conversions to and from float16 and bfloat16, against tables written by
/// hand from the formats' definitions.

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/HalfBits.h"

namespace faiss_bits::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kSmallest = std::numeric_limits<float>::denorm_min();

struct Row {
    float value;
    uint16_t bits;
};

/// Values that the type holds: both ways, both signs.
const std::vector<Row> kFloat16Held = {
        {0.f, 0x0000},
        {1.f, 0x3c00},
        {1.5f, 0x3e00},
        {2.f, 0x4000},
        {0.1f, 0x2e66},
        {1.f / 3, 0x3555},
        {1.f + 0x1p-10f, 0x3c01},
        {65504.f, 0x7bff},
        {0x1p-14f, 0x0400},
        {0x1p-15f, 0x0200},
        {0x1p-24f, 0x0001},
        {0x3ffp-24f, 0x03ff},
        {kInf, 0x7c00},
};

TEST(HalfBits, Float16) {
    for (const auto& [value, bits] : kFloat16Held) {
        SCOPED_TRACE(value);
        EXPECT_EQ(float16Bits(value), bits);
        EXPECT_EQ(float16Bits(-value), bits | 0x8000);
        if (value != 0.1f && value != 1.f / 3) {
            EXPECT_EQ(float16Value(bits), value);
            EXPECT_EQ(float16Value(bits | 0x8000), -value);
        }
    }
    EXPECT_TRUE(std::signbit(float16Value(0x8000)));
    EXPECT_EQ(float16Value(0x2e66), 0x666p-14f);
    EXPECT_EQ(float16Value(0x3555), 0x555p-12f);
}

TEST(HalfBits, Float16Rounds) {
    const std::vector<Row> table = {
            // Ties of normal values go to the even mantissa, others do not.
            {1.f + 0x1p-11f, 0x3c00},
            {1.f + 0x1p-11f + 0x1p-23f, 0x3c01},
            {1.f + 0x3p-11f, 0x3c02},
            {1.f + 0x3p-11f - 0x1p-23f, 0x3c01},
            {2.f - 0x1p-11f, 0x4000}, // carries into the exponent
            {2.f - 0x1p-11f - 0x1p-23f, 0x3fff},
            // The end of the range.
            {65519.996f, 0x7bff},
            {65520.f, 0x7c00},
            {65536.f, 0x7c00},
            {kMax, 0x7c00},
            // Denormals, and the step from them to the normal values.
            {0x1p-25f, 0x0000},
            {0x1.000002p-25f, 0x0001},
            {0x3p-25f, 0x0002},
            {0x2.fffffp-25f, 0x0001},
            {0x5p-25f, 0x0002},
            {0x1p-14f - 0x1p-25f, 0x0400},
            {0x1p-14f - 0x1.2p-25f, 0x03ff},
            {0x1.fffffep-26f, 0x0000},
            {0x1p-126f, 0x0000},
            {kSmallest, 0x0000},
    };
    for (const auto& [value, bits] : table) {
        SCOPED_TRACE(::testing::PrintToString(value));
        EXPECT_EQ(float16Bits(value), bits);
        EXPECT_EQ(float16Bits(-value), bits | 0x8000);
    }
}

TEST(HalfBits, BFloat16) {
    const std::vector<Row> held = {
            {0.f, 0x0000},
            {1.f, 0x3f80},
            {1.5f, 0x3fc0},
            {2.f, 0x4000},
            {1.f + 0x1p-7f, 0x3f81},
            {3.38953139e38f, 0x7f7f},
            {0x1p-126f, 0x0080},
            {0x1p-133f, 0x0001},
            {kInf, 0x7f80},
    };
    for (const auto& [value, bits] : held) {
        SCOPED_TRACE(value);
        EXPECT_EQ(bfloat16Bits(value), bits);
        EXPECT_EQ(bfloat16Bits(-value), bits | 0x8000);
        EXPECT_EQ(bfloat16Value(bits), value);
        EXPECT_EQ(bfloat16Value(bits | 0x8000), -value);
    }
    const std::vector<Row> rounded = {
            {1.f + 0x1p-8f, 0x3f80},
            {1.f + 0x1p-8f + 0x1p-23f, 0x3f81},
            {1.f + 0x3p-8f, 0x3f82},
            {1.f + 0x3p-8f - 0x1p-23f, 0x3f81},
            {2.f - 0x1p-8f, 0x4000},
            {0.1f, 0x3dcd},
            {kMax, 0x7f80},
            {0x1.fep127f + 0x1p119f - 0x1p104f, 0x7f7f},
            {0x1p-134f, 0x0000},
            {0x3p-134f, 0x0002},
            {kSmallest, 0x0000},
    };
    for (const auto& [value, bits] : rounded) {
        SCOPED_TRACE(::testing::PrintToString(value));
        EXPECT_EQ(bfloat16Bits(value), bits);
        EXPECT_EQ(bfloat16Bits(-value), bits | 0x8000);
    }
}

TEST(HalfBits, NanStaysNan) {
    for (float nan : {kNan, -kNan, std::bit_cast<float>(0x7f800001u)}) {
        EXPECT_EQ(float16Bits(nan), 0x7fff);
        EXPECT_EQ(bfloat16Bits(nan), 0x7fff);
    }
    for (int payload : {1, 0x3ff}) {
        EXPECT_TRUE(std::isnan(float16Value(uint16_t(0x7c00 + payload))));
        EXPECT_TRUE(std::isnan(float16Value(uint16_t(0xfc00 + payload))));
    }
    EXPECT_TRUE(std::isnan(bfloat16Value(0x7f81)));
    EXPECT_TRUE(std::isnan(bfloat16Value(0xffff)));
}

/// Every value of a type comes back as it was.
TEST(HalfBits, ThereAndBack) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        const float half = float16Value(uint16_t(bits));
        if (!std::isnan(half)) {
            ASSERT_EQ(float16Bits(half), bits);
        }
        const float wide = bfloat16Value(uint16_t(bits));
        if (!std::isnan(wide)) {
            ASSERT_EQ(bfloat16Bits(wide), bits);
        }
    }
}

} // namespace
} // namespace faiss_bits::test

/// What the tests of kernels/knn rest on, checked without a device.

#include "tests/knn/KnnHarness.h"

namespace faiss_bits::test {
namespace {

/// FlatKnnArithmetic.NeverTF32 can fail: what TF32 rounds off is above its
/// limit, and the integers' twelve bits do not survive.
TEST(FlatKnnReference, TF32WouldBeSeen) {
    KnnCase c;
    c.d = 128;
    std::mt19937 random(1);
    const auto x = makeVectors(c, 200, false, random);
    auto roundedTF32 = [](float value) {
        uint32_t bits;
        std::memcpy(&bits, &value, 4);
        bits = (bits + 0x1000u) & ~0x1FFFu;
        std::memcpy(&value, &bits, 4);
        return value;
    };
    double worst = 0;
    for (int i = 0; i < 200; ++i) {
        const float* a = x.data() + i * c.d;
        const float* b = x.data() + (i + 7) % 200 * c.d;
        double product = 0;
        for (int j = 0; j < c.d; ++j) {
            product += double(roundedTF32(a[j])) * roundedTF32(b[j]);
        }
        const double size = innerProduct(a, a, c.d) + innerProduct(b, b, c.d);
        worst = std::max(
                worst, std::abs(product - innerProduct(a, b, c.d)) / size);
    }
    EXPECT_GT(worst, 4e-6);

    c.data = Vectors::Integers;
    const auto integers = makeVectors(c, 200, false, random);
    EXPECT_TRUE(std::any_of(integers.begin(), integers.end(), [&](float value) {
        return roundedTF32(value) != value;
    }));
}

/// Integer distances are exact in fp32: the least sum that could round is
/// beyond them.
TEST(FlatKnnReference, IntegersStayExact) {
    for (DataType type : kDataTypes) {
        KnnCase c;
        c.d = kDims.back();
        c.dataType = type;
        c.data = Vectors::Integers;
        std::mt19937 random(2);
        const auto x = makeVectors(c, 300, false, random);
        const auto q = makeVectors(c, 300, true, random);
        for (int i = 0; i < 300; ++i) {
            const float* a = x.data() + i * c.d;
            const float* b = q.data() + i * c.d;
            EXPECT_EQ(roundTo(type, a[0]), a[0]);
            EXPECT_LT(
                    innerProduct(a, a, c.d) + 2 * innerProduct(a, b, c.d) +
                            innerProduct(b, b, c.d),
                    double(1 << 24));
        }
    }
}

} // namespace
} // namespace faiss_bits::test

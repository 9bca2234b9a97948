/// What the scan of vectors of few dimensions takes for granted: its distances
/// in float64 are the canonical ones, and its float32 values no farther from
/// them than the bound says.

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/knn/nearest/FewDimsBound.h"
#include "kernels/knn/nearest/ShortDistance.h"
#include "tests/common/HardVectors.h"

namespace faiss_bits::test {
namespace {

template <int kDims, class To>
void copyTo(const float* from, int d, To (&to)[kDims]) {
    for (int c = 0; c < kDims; ++c) {
        to[c] = c < d ? To(from[c]) : To(0);
    }
}

/// Bits, but for zeros and NaN.
bool isSame(double a, double b) {
    return a == b || (a != a && b != b);
}

struct Counts {
    int64_t bounded = 0; // pairs that the bound says something of
    int64_t close = 0;   // whose error is more than a hundredth of it
};

/// The sum of squares in float32 is no farther off than the value.
void checkSum(
        const float* x,
        const float* q,
        int d,
        double distance,
        float error) {
    float sum = 0;
    for (int c = 0; c < d; ++c) {
        sum = std::fma(x[c] - q[c], x[c] - q[c], sum);
    }
    if (distance == distance) {
        ASSERT_LE(
                std::abs(double(sum) - distance) + 2 * distance * 0x1p-24 +
                        0x1p-148,
                double(error))
                << "sum " << sum << " distance " << distance;
    }
}

/// All pairs of a strip of n vectors and the queries.
template <Metric kMetric, int kDims>
void checkStrip(
        const std::vector<float>& vectors,
        const std::vector<float>& queries,
        int d,
        Counts& counts) {
    constexpr bool kIsL2 = kMetric == Metric::L2;
    const int64_t n = int64_t(vectors.size()) / d;
    const int64_t q = int64_t(queries.size()) / d;
    float center[kDims];
    copyTo(vectors.data(), d, center);
    for (float& c : center) {
        c = kIsL2 && std::isfinite(c) ? c : 0;
    }
    std::vector<float> norms(n);
    float greatest = 0;
    for (int64_t v = 0; v < n; ++v) {
        float x[kDims];
        copyTo(vectors.data() + v * d, d, x);
        for (int c = 0; c < kDims; ++c) {
            norms[v] = std::fma(x[c] - center[c], x[c] - center[c], norms[v]);
        }
        greatest = std::fmax(greatest, norms[v]);
    }
    for (int64_t i = 0; i < q; ++i) {
        float p[kDims];
        copyTo(queries.data() + i * d, d, p);
        double exact[kDims];
        copyTo(queries.data() + i * d, d, exact);
        float own = 0;
        for (int c = 0; c < kDims; ++c) {
            p[c] = kIsL2 ? p[c] - center[c] : -p[c];
            own = std::fma(p[c], p[c], own);
        }
        const float error = fewDimsError<kMetric, kDims>(greatest, own);
        ASSERT_FALSE(error != error && own == own) << own << " " << greatest;
        for (int64_t v = 0; v < n; ++v) {
            float x[kDims];
            copyTo(vectors.data() + v * d, d, x);
            double wide[kDims];
            copyTo(vectors.data() + v * d, d, wide);
            const double distance = shortDistance<kMetric>(wide, exact);
            ASSERT_TRUE(isSame(
                    distance,
                    canonical::distance<kMetric>(
                            vectors.data() + v * d, queries.data() + i * d, d)))
                    << "d " << d << " vector " << v << " query " << i;
            if (!(error < INFINITY)) {
                continue;
            }
            float value = kIsL2 ? norms[v] : 0.0f;
            for (int c = 0; c < kDims; ++c) {
                const float y = kIsL2 ? -2 * (x[c] - center[c]) : x[c];
                value = std::fma(y, p[c], value);
            }
            value += kIsL2 ? own : 0.0f;
            if constexpr (kIsL2) {
                checkSum(
                        vectors.data() + v * d,
                        queries.data() + i * d,
                        d,
                        distance,
                        error);
            }
            const double key = kIsL2 ? distance : -distance;
            if (key != key) {
                // No minimum notices it.
                ASSERT_TRUE(value != value) << "vector " << v;
                continue;
            }
            // Room for the rounding of two distances to float32.
            const double off = std::abs(double(value) - key) +
                    2 * std::abs(key) * 0x1p-24 + 0x1p-148;
            ASSERT_LE(off, double(error))
                    << "d " << d << " vector " << v << " query " << i
                    << " value " << value << " key " << key;
            ++counts.bounded;
            counts.close += off > 0.01 * error;
        }
    }
}

template <Metric kMetric>
void checkDims(
        const std::vector<float>& vectors,
        const std::vector<float>& queries,
        int d,
        Counts& counts) {
    const auto check = d <= 2 ? checkStrip<kMetric, 2>
            : d <= 4          ? checkStrip<kMetric, 4>
            : d <= 6          ? checkStrip<kMetric, 6>
            : d <= 8          ? checkStrip<kMetric, 8>
            : d <= 12         ? checkStrip<kMetric, 12>
                              : checkStrip<kMetric, 16>;
    check(vectors, queries, d, counts);
}

/// A row to length 1, as the kernel makes it.
template <int kDims>
void toUnit(const float* from, int d, float (&to)[kDims]) {
    double square = 0;
    for (int c = 0; c < d; ++c) {
        square += double(from[c]) * double(from[c]);
    }
    const double scale = square == 0 ? 0.0
            : square < INFINITY      ? 1 / std::sqrt(square)
                                     : NAN;
    for (int c = 0; c < kDims; ++c) {
        to[c] = c < d ? float(scale * double(from[c])) : 0.0f;
    }
}

/// Cosines by products of rows of length 1, against the canonical ones.
template <int kDims>
void checkCosines(
        const std::vector<float>& vectors,
        const std::vector<float>& queries,
        int d,
        Counts& counts) {
    const int64_t n = int64_t(vectors.size()) / d;
    const int64_t q = int64_t(queries.size()) / d;
    for (int64_t i = 0; i < q; ++i) {
        float p[kDims];
        toUnit(queries.data() + i * d, d, p);
        double turned[kDims] = {};
        float own = 0;
        for (int c = 0; c < kDims; ++c) {
            p[c] = -p[c];
            turned[c] = c < d ? -double(queries[i * d + c]) : 0.0;
            own = std::fma(p[c], p[c], own);
        }
        for (int64_t v = 0; v < n; ++v) {
            float y[kDims];
            toUnit(vectors.data() + v * d, d, y);
            double wide[kDims];
            copyTo(vectors.data() + v * d, d, wide);
            float norm = 0;
            float value = 0;
            for (int c = 0; c < kDims; ++c) {
                norm = std::fma(y[c], y[c], norm);
                value = std::fma(y[c], p[c], value);
            }
            const double key = shortKey<Metric::Cosine>(wide, turned);
            ASSERT_TRUE(isSame(
                    -key,
                    canonical::distance<Metric::Cosine>(
                            vectors.data() + v * d, queries.data() + i * d, d)))
                    << "d " << d << " vector " << v << " query " << i;
            // Alone in its strip: no other makes the bound greater.
            const float greatest = std::fmax(0.0f, norm);
            const float error =
                    fewDimsError<Metric::InnerProduct, kDims>(greatest, own);
            if (!(error < INFINITY)) {
                ASSERT_TRUE(own != own);
                continue;
            }
            if (key != key) {
                ASSERT_TRUE(value != value) << "vector " << v;
                continue;
            }
            const double off = std::abs(double(value) - key) +
                    2 * std::abs(key) * 0x1p-24 + 0x1p-148;
            ASSERT_LE(off, double(error))
                    << "d " << d << " vector " << v << " query " << i
                    << " value " << value << " key " << key;
            ++counts.bounded;
            counts.close += off > 0.1 * error;
        }
    }
}

void checkCosinesOf(
        const std::vector<float>& vectors,
        const std::vector<float>& queries,
        int d,
        Counts& counts) {
    const auto check = d <= 2 ? checkCosines<2>
            : d <= 4          ? checkCosines<4>
            : d <= 6          ? checkCosines<6>
            : d <= 8          ? checkCosines<8>
            : d <= 12         ? checkCosines<12>
                              : checkCosines<16>;
    check(vectors, queries, d, counts);
}

TEST(FewDimsBound, Cosines) {
    for (int d = 1; d <= kMostFewDimsAgain; ++d) {
        Counts counts;
        for (Hard kind : kHard) {
            for (uint32_t seed = 0; seed < 6; ++seed) {
                checkCosinesOf(
                        makeHard(kind, 128, d, 2 * seed),
                        makeHard(kind, 24, d, 2 * seed + 1),
                        d,
                        counts);
                if (testing::Test::HasFatalFailure()) {
                    return;
                }
            }
        }
        EXPECT_GT(counts.bounded, 6 * 128 * 24) << d;
        EXPECT_GT(counts.close, 0) << d;
    }
}

TEST(FewDimsBound, HardData) {
    for (int d = 1; d <= kMostFewDimsAgain; ++d) {
        for (Hard kind : kHard) {
            Counts l2;
            Counts products;
            for (uint32_t seed = 0; seed < 6; ++seed) {
                const auto vectors = makeHard(kind, 128, d, 2 * seed);
                const auto queries = makeHard(kind, 24, d, 2 * seed + 1);
                checkDims<Metric::L2>(vectors, queries, d, l2);
                checkDims<Metric::InnerProduct>(vectors, queries, d, products);
                if (testing::Test::HasFatalFailure()) {
                    return;
                }
            }
            const bool isPlain = kind == Hard::Bytes || kind == Hard::Offset ||
                    kind == Hard::Clusters || kind == Hard::Terrain;
            if (isPlain) {
                EXPECT_EQ(l2.bounded, 6 * 128 * 24) << d;
                EXPECT_EQ(products.bounded, 6 * 128 * 24) << d;
                EXPECT_GT(l2.close + products.close, 0) << d;
            }
        }
    }
}

/// Components of every size, so that squares and products underflow in some
/// places and overflow in others.
TEST(FewDimsBound, EverySize) {
    std::mt19937 random(5);
    Counts counts;
    Counts cosines;
    for (int round = 0; round < 400; ++round) {
        const int d = 1 + round % kMostFewDimsAgain;
        const int middle = int(random() % 260) - 140;
        const int spread = round % 3 * 20 + 1;
        const auto draw = [&](int64_t count) {
            std::vector<float> values(count * d);
            for (float& value : values) {
                const int power = middle + int(random() % spread);
                const float size = float(1 + random() % 0xFFFFFF) * 0x1p-24f;
                value = std::ldexp(random() % 2 ? size : -size, power);
            }
            return values;
        };
        const auto vectors = draw(64);
        const auto queries = draw(16);
        checkDims<Metric::L2>(vectors, queries, d, counts);
        checkDims<Metric::InnerProduct>(vectors, queries, d, counts);
        checkCosinesOf(vectors, queries, d, cosines);
        if (testing::Test::HasFatalFailure()) {
            return;
        }
    }
    EXPECT_GT(cosines.bounded, 100000);
    EXPECT_GT(counts.bounded, 100000);
    EXPECT_GT(counts.close, 1000);
}

TEST(FewDimsBound, SumsThatMayOverflowHaveNone) {
    constexpr float kMost = 3.402823466e+38f;
    const auto l2 = fewDimsError<Metric::L2, 4>;
    const auto products = fewDimsError<Metric::InnerProduct, 4>;
    EXPECT_LT(l2(0x1p117f, 0x1p116f), INFINITY);
    EXPECT_EQ(l2(0x1p119f, 0x1p119f), INFINITY);
    EXPECT_EQ(l2(INFINITY, 1), INFINITY);
    EXPECT_EQ(l2(1, INFINITY), INFINITY);
    EXPECT_EQ(l2(1, NAN), INFINITY);
    EXPECT_LT(products(kMost, 0x1p100f), INFINITY);
    EXPECT_EQ(products(kMost, kMost), INFINITY);
    EXPECT_EQ(products(INFINITY, 0), INFINITY);
    EXPECT_EQ(products(0, NAN), INFINITY);
    EXPECT_GT(products(0, 0), 0);
}

} // namespace
} // namespace faiss_bits::test

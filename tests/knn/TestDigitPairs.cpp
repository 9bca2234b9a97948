/// All pairs by products of digits.

#include <cmath>

#include "kernels/knn/all_pairs/digits/DigitSearch.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

/// Each has bounds of its own.
const std::vector<Metric> kMetrics = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine};

class DigitPairsKnn : public FlatKnnCertified {
   protected:
    std::string lack() const override {
        return hasDigitPairs(deviceTraits())
                ? ""
                : "products of digits need compute capability 9.0";
    }

    static CertifiedCase of(
            int64_t n,
            int64_t q,
            int d,
            int k,
            Metric metric = Metric::L2) {
        return caseOf(Direct::Digits, metric, n, q, d, k);
    }

    void expectByDigits(const CertifiedCase& c, Hard kind) {
        ASSERT_TRUE(planOf(c).allPairs && planOf(c).allPairs->byDigits)
                << c.describe();
        EXPECT_EQ(expectCanonical(c, kind).repeated, 0u);
    }

    /// Of every query, bit for bit.
    void expectAsFloat64(
            CertifiedCase c,
            const std::vector<float>& vectors,
            const std::vector<float>& queries) {
        ASSERT_TRUE(planOf(c).allPairs && planOf(c).allPairs->byDigits);
        const KnnResult byDigits = search(c, vectors, queries);
        check(c, vectors, queries, byDigits, 4);
        c.direct = Direct::AllPairs;
        ASSERT_TRUE(planOf(c).allPairs && !planOf(c).allPairs->byDigits);
        EXPECT_TRUE(search(c, vectors, queries) == byDigits) << c.describe();
    }
};

TEST_F(DigitPairsKnn, HardData) {
    std::vector<Hard> kinds = kHard;
    kinds.push_back(Hard::Ends);
    for (Metric metric : kMetrics) {
        for (Hard kind : kinds) {
            for (int d : {1, 7, 64, 65, 130}) {
                expectByDigits(of(1005, 90, d, 10, metric), kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Of queries, vectors and components.
TEST_F(DigitPairsKnn, BothSidesOfEveryTile) {
    for (int64_t n : {1, 8, 63, 64, 65, 129}) {
        for (int64_t q : {17, 64, 65, 127, 128, 129, 193}) {
            for (int d : {32, 33, 64, 65, 192}) {
                expectByDigits(of(n, q, d, 5), Hard::Mixed);
                const Metric other =
                        d % 2 ? Metric::Cosine : Metric::InnerProduct;
                expectByDigits(of(n, q, d, 5, other), Hard::Mixed);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    for (Metric metric : kMetrics) {
        expectByDigits(of(65536, 20, 96, 513, metric), Hard::Bytes);
        expectByDigits(of(16385, 400, 96, 300, metric), Hard::Clusters);
    }
    EXPECT_FALSE(planOf(of(65537, 20, 96, 513)).allPairs);
    // Of fewer queries all of the matrix stays in L2.
    EXPECT_FALSE(planOf(of(16385, 384, 95, 513)).allPairs);
    EXPECT_FALSE(planOf(of(16385, 384, 96, 1)).allPairs);
    EXPECT_TRUE(planOf(of(16385, 384, 96, 2)).allPairs);
    EXPECT_FALSE(planOf(of(100, 20, 2049, 5)).allPairs);
    EXPECT_FALSE(planOf(of(100, 20, 100, 5, Metric::L1)).allPairs);
}

/// Of four digits and of five.
TEST_F(DigitPairsKnn, EveryType) {
    for (DataType type :
         {DataType::BFloat16, DataType::Float16, DataType::Float32}) {
        for (bool exactQueries : {false, true}) {
            for (Hard kind : kHard) {
                // Its products have a sum more than those of L2.
                CertifiedCase c = of(700, 150, 131, 12, Metric::InnerProduct);
                c.dataType = type;
                c.exactQueries = exactQueries && type != DataType::Float32;
                expectByDigits(c, kind);
                c.metric = Metric::L2;
                expectByDigits(c, kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Sums of as many components as there may be are the greatest that there are,
/// of either sign: 127 / 128 is the greatest first digit.
TEST_F(DigitPairsKnn, GreatestSums) {
    constexpr int64_t kRows = 130;
    for (DataType type :
         {DataType::BFloat16, DataType::Float16, DataType::Float32}) {
        for (int d : {2047, 2048}) {
            for (bool hasCenter : {false, true}) {
                CertifiedCase c = of(kRows, kRows, d, 20);
                c.dataType = type;
                std::vector<float> vectors(kRows * d);
                std::vector<float> queries(kRows * d);
                for (int64_t i = 0; i < kRows * d; ++i) {
                    const int64_t row = i / d;
                    const float most = row % 3 == 0 ? 127.0f / 128
                            : row % 3 == 1          ? 0.99609375f
                                                    : 0.50196078f;
                    vectors[i] = row % 2 ? -most : most;
                    queries[i] = row % 5 == 0 && i % d < row ? -most : most;
                }
                if (!hasCenter) {
                    std::fill_n(vectors.begin(), d, 0.0f);
                }
                roundAllTo(type, vectors);
                roundAllTo(type, queries);
                for (Metric metric : kMetrics) {
                    c.metric = metric;
                    expectAsFloat64(c, vectors, queries);
                }
            }
        }
    }
}

/// Rows of one digit to five: others are not multiplied. Of three digits sums
/// of products may have more bits than float64.
TEST_F(DigitPairsKnn, EveryNumberOfDigits) {
    std::mt19937 random(11);
    for (int digits = 1; digits <= 5; ++digits) {
        const int most = 8 * digits - 1;
        // Multiples of 2^-most below 1, of any size or all of them large.
        const auto make = [&](int64_t rows, int d, bool areLarge) {
            std::vector<float> values(rows * d);
            for (float& value : values) {
                const int bits = areLarge ? most : int(random() % (most + 1));
                const int cut = std::max(bits - 24, 0);
                const int64_t whole =
                        int64_t(uint64_t(random()) << 32 | random()) &
                        ((int64_t(1) << bits) - 1) & -(int64_t(1) << cut);
                value = std::ldexp(
                        random() % 2 ? float(whole) : -float(whole), -most);
            }
            return values;
        };
        for (int d : {64, 150, 700, 2048}) {
            for (bool areLarge : {false, true}) {
                const std::vector<float> vectors = make(200, d, areLarge);
                const std::vector<float> queries = make(130, d, areLarge);
                for (Metric metric : kMetrics) {
                    expectAsFloat64(
                            of(200, 130, d, 30, metric), vectors, queries);
                }
            }
        }
    }
}

/// Products that cancel, all of them or but for the least bits, and rows that
/// have no component in common.
TEST_F(DigitPairsKnn, SumsNearZero) {
    constexpr int d = 130;
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (int kind = 0; kind < 4; ++kind) {
        const auto make = [&](int64_t rows, bool areQueries) {
            std::vector<float> values(rows * d);
            for (int64_t i = 0; i < rows; ++i) {
                float* row = values.data() + i * d;
                for (int j = 0; j < d; j += 2) {
                    const float one = normal(random);
                    // q = (a, a), x = (b, -b), or almost.
                    const float off = kind == 0 ? 0.0f
                            : kind == 1         ? 1e-6f * normal(random)
                                                : 1e-3f * normal(random);
                    row[j] = one;
                    row[j + 1] = areQueries ? one : -one * (1 + off);
                }
                if (kind == 3) { // sparse, none negative
                    for (int j = 0; j < d; ++j) {
                        row[j] = random() % 20 == 0 ? std::abs(row[j]) : 0.0f;
                    }
                }
            }
            return values;
        };
        const std::vector<float> vectors = make(400, false);
        const std::vector<float> queries = make(150, true);
        for (Metric metric : kMetrics) {
            expectAsFloat64(of(400, 150, d, 50, metric), vectors, queries);
        }
    }
}

/// Inner products beside numbers that lie between two of float32, as near as
/// the bound reaches and nearer: also below powers of two, where these are half
/// as far apart.
TEST_F(DigitPairsKnn, BesideTheMiddleOfTwoFloats) {
    constexpr int d = 100;
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    const auto oneBits = [&](int bits) {
        return 1.0f + std::ldexp(float(random() % (1 << bits)), -bits);
    };
    for (bool hasRest : {false, true}) {
        std::vector<float> vectors(600 * d);
        std::vector<float> queries(70 * d);
        for (int i = 0; i < 600; ++i) {
            float* x = vectors.data() + i * d;
            // 1 less half of a step below, or a number and half of a step.
            const bool isBelow = i % 3 == 0;
            x[0] = isBelow ? 1.0f : oneBits(23);
            x[1] = isBelow ? -0x1p-25f : 0x1p-24f;
            x[2] = std::ldexp(i % 2 ? 1.0f : -1.0f, -25 - i / 2 % 30);
            // Queries have none of these: they make the bound, but no product.
            for (int j = 3; j < d && hasRest; ++j) {
                x[j] = 0.1f * normal(random);
            }
        }
        for (int i = 0; i < 70; ++i) {
            const float sign = i % 2 ? -1.0f : 1.0f;
            for (int j = 0; j < 3; ++j) {
                queries[i * d + j] = std::ldexp(sign, i % 5 - 2);
            }
        }
        for (Metric metric : kMetrics) {
            expectAsFloat64(of(600, 70, d, 600, metric), vectors, queries);
        }
    }
}

/// Pairs that products leave in doubt: a few of each tile, or so many that
/// tiles are left.
TEST_F(DigitPairsKnn, NearCopies) {
    for (float off : {0.0f, 1e-6f, 1e-4f, 1e-2f, 0.3f}) {
        CertifiedCase c = of(1500, 300, 200, 40);
        std::mt19937 random(5);
        std::normal_distribution<float> normal;
        std::vector<float> centers(20 * c.d);
        for (float& one : centers) {
            one = normal(random);
        }
        const auto make = [&](int64_t rows) {
            std::vector<float> values(rows * c.d);
            for (int64_t i = 0; i < rows; ++i) {
                const float* center = centers.data() + random() % 20 * c.d;
                for (int j = 0; j < c.d; ++j) {
                    values[i * c.d + j] = center[j] + off * normal(random);
                }
            }
            return values;
        };
        const std::vector<float> vectors = make(c.n);
        const std::vector<float> queries = make(c.q);
        for (Metric metric : kMetrics) {
            c.metric = metric;
            expectAsFloat64(c, vectors, queries);
        }
    }
}

/// By L2 a center is made of three vectors: of so few that some are the same,
/// and of which one, two and all have components that are odd or far.
TEST_F(DigitPairsKnn, SmallCenters) {
    for (int64_t n : {1, 2, 3, 5, 6, 7, 130}) {
        const CertifiedCase c = of(n, 40, 100, 3);
        auto queries = makeHard(Hard::Mixed, c.q, c.d, 2);
        for (float odd : {std::nanf(""), HUGE_VALF, -HUGE_VALF, 3e38f, 1e5f}) {
            for (int many = 1; many <= 3; ++many) {
                auto vectors = makeHard(Hard::Clusters, c.n, c.d, 1);
                for (int i = 0; i < many; ++i) {
                    const int64_t v = (2 * i + 1) * c.n / 6;
                    for (int j = i; j < c.d; j += 3) {
                        vectors[v * c.d + j] = i == 1 ? -odd : odd;
                    }
                }
                queries[many] = odd;
                expectAsFloat64(c, vectors, queries);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Several launches, of which the last has fewer queries.
TEST_F(DigitPairsKnn, Launches) {
    CertifiedCase c = of(16000, 4000, 100, 9);
    const auto vectors = makeHard(Hard::Clusters, c.n, c.d, 1);
    const auto queries = makeHard(Hard::Mixed, c.q, c.d, 2);
    ASSERT_TRUE(planOf(c).allPairs);
    EXPECT_LT(planOf(c).allPairs->tileQueries, 1700);
    for (Metric metric : kMetrics) {
        c.metric = metric;
        expectAsFloat64(c, vectors, queries);
    }
}

TEST_F(DigitPairsKnn, Small) {
    for (Metric metric : kMetrics) {
        expectByDigits(of(130, 70, 65, 20, metric), Hard::Infinite);
        expectByDigits(of(70, 130, 130, 20, metric), Hard::Mixed);
        expectByDigits(of(40, 20, 9, 50, metric), Hard::Duplicates);
    }
}

/// More vectors than products of float64 take, where they are expected to take
/// less time than limits from a sample.
TEST_F(DigitPairsKnn, LargeKOfMoreVectors) {
    const auto isByDigits =
            [](int64_t n, int64_t q, int d, int k, Metric metric) {
                const auto plan =
                        planOf(caseOf(Direct::WhereItPays, metric, n, q, d, k))
                                .allPairs;
                return plan && plan->byDigits;
            };
    EXPECT_TRUE(isByDigits(52094, 85, 260, 2047, Metric::Cosine));
    EXPECT_TRUE(isByDigits(40721, 1558, 588, 1500, Metric::InnerProduct));
    EXPECT_TRUE(isByDigits(16385, 4096, 1025, 1024, Metric::L2));
    EXPECT_TRUE(isByDigits(16385, 4851, 714, 511, Metric::Cosine));
    EXPECT_FALSE(isByDigits(16385, 4851, 714, 64, Metric::Cosine));
    EXPECT_FALSE(isByDigits(43045, 420, 160, 600, Metric::L2));
    EXPECT_FALSE(isByDigits(30183, 103, 290, 600, Metric::L2));
}

/// Where the images of digits have no room, products are of float64.
TEST_F(DigitPairsKnn, LittleScratch) {
    const FlatKnnProblem p = shapeOf(of(16384, 2048, 2048, 100));
    const auto roomy = planAllPairs(p, kRoomyScratch);
    ASSERT_TRUE(roomy && roomy->byDigits);
    const auto other = planAllPairs(p, kRoomyScratch, PairProducts::Float64);
    ASSERT_TRUE(other);
    EXPECT_FALSE(other->byDigits);
    ASSERT_LT(other->bytes, roomy->bytes);
    const auto little = planAllPairs(p, other->bytes);
    ASSERT_TRUE(little);
    EXPECT_FALSE(little->byDigits);
    EXPECT_LE(little->bytes, other->bytes);
}

} // namespace
} // namespace faiss_bits::test

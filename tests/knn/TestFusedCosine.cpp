/// Certified cosines of vectors in a narrow cone, where float16 of normalised
/// vectors tells no neighbours apart: canonical results, and hardly any query
/// is searched again.

#include "kernels/knn/FlatKnnPlan.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

std::vector<float> uniformAround(
        float offset,
        float spread,
        int64_t rows,
        int d,
        uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> unit(-1, 1);
    std::vector<float> values(rows * d);
    for (float& one : values) {
        one = offset + spread * unit(random);
    }
    return values;
}

class FusedCosine : public FlatKnnCertified {
   protected:
    static CertifiedCase of(int64_t n, int64_t q, int d, int k) {
        return caseOf(Direct::Never, Metric::Cosine, n, q, d, k);
    }

    struct Rows {
        std::vector<float> vectors;
        std::vector<float> queries;
    };

    static Rows around(const CertifiedCase& c, float offset, float spread) {
        Rows rows{
                uniformAround(offset, spread, c.n, c.d, 1),
                uniformAround(offset, spread, c.q, c.d, 2)};
        roundAllTo(c.dataType, rows.vectors);
        roundAllTo(c.dataType, rows.queries);
        return rows;
    }

    Result expectCanonicalOf(const CertifiedCase& c, const Rows& rows) {
        SCOPED_TRACE(c.describe());
        const Result result = search(c, rows.vectors, rows.queries);
        check(c, rows.vectors, rows.queries, result);
        return result;
    }

    /// At most one query in a hundred is searched again, or in `of`.
    void expectProven(const CertifiedCase& c, const Rows& rows, int of = 100) {
        const Result result = expectCanonicalOf(c, rows);
        EXPECT_LE(result.repeated, (unsigned long long)(c.q / of))
                << c.describe();
    }
};

TEST_F(FusedCosine, FarVectorsAreProven) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (int k : {1, 33, 1000}) {
            for (int d : {32, 100}) {
                CertifiedCase c = of(k == 1000 ? 20000 : 8192, 300, d, k);
                c.dataType = type;
                const FlatKnnPlan plan = planOf(c);
                EXPECT_TRUE(plan.fused || plan.nearest) << c.describe();
                expectProven(c, around(c, 100.5f, 0.5f));
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FusedCosine, FarAwayOnOneSide) {
    for (float offset : {-30.0f, 10.0f, 200.0f}) {
        for (int d : {17, 64, 300}) {
            const CertifiedCase c = of(30000, 200, d, 10);
            expectProven(c, around(c, offset, 0.5f));
        }
    }
}

TEST_F(FusedCosine, SecondSampleOfFarVectors) {
    const CertifiedCase c = of(530001, 300, 18, 10);
    expectProven(c, around(c, 50.0f, 0.5f));
}

TEST_F(FusedCosine, FarVectorsWithFilters) {
    for (int allowedOf : {2, 3}) {
        for (int holes : {-1, 2}) {
            CertifiedCase c = of(42003, 200, 40, 20);
            c.allowedOf = allowedOf;
            c.holes = holes;
            expectProven(c, around(c, 100.0f, 0.5f));
        }
    }
}

TEST_F(FusedCosine, NearestOfFarVectors) {
    for (int64_t n : {500, 4000, 65536}) {
        for (int d : {20, 128}) {
            const CertifiedCase c = of(n, 20000, d, 1);
            EXPECT_TRUE(planOf(c).nearest) << c.describe();
            // Strips of one tile let their second four go.
            expectProven(c, around(c, 100.0f, 0.5f), n == 500 ? 20 : 100);
        }
    }
}

/// So far that no cosine is another float32 than 1: the first vectors are the
/// nearest, whatever the approximations say. With one among them that is
/// opposite, the k-th is behind it.
TEST_F(FusedCosine, AllCosinesAreOne) {
    for (DataType type : {DataType::Float32, DataType::BFloat16}) {
        for (int k : {1, 2, 63, 64, 65, 300}) {
            for (int d : {19, 130}) {
                CertifiedCase c = of(k == 300 ? 9000 : 8193, 140, d, k);
                c.dataType = type;
                Rows rows = around(c, 16384.0f, 0.5f);
                EXPECT_EQ(expectCanonicalOf(c, rows).repeated, 0u)
                        << c.describe();
                for (int j = 0; j < d; ++j) {
                    rows.vectors[(k - 1) * d + j] *= -1.0f;
                }
                // And queries that differ, between those that do not.
                std::fill_n(rows.queries.begin() + 7 * d, d / 2, 0.0f);
                std::fill_n(rows.queries.begin() + 8 * d, d, 0.0f);
                rows.queries[9 * d] = NAN;
                expectCanonicalOf(c, rows);
            }
        }
    }
}

TEST_F(FusedCosine, SmallCone) {
    for (int k : {5, 70}) {
        const CertifiedCase c = of(600, 40, 19, k);
        EXPECT_EQ(expectCanonicalOf(c, around(c, 16384.0f, 0.5f)).repeated, 0u);
    }
}

/// Zeros have a cosine of 0 with all: before some and behind others. A few are
/// no reason to search again.
TEST_F(FusedCosine, Zeros) {
    for (float offset : {0.0f, 100.0f}) {
        for (int k : {1, 10}) {
            for (int64_t n : {9000, 70000}) {
                const CertifiedCase c = of(n, 200, 24, k);
                Rows rows = around(c, offset, 1.0f);
                for (int64_t i = 3; i < c.n; i += 100) {
                    std::fill_n(rows.vectors.begin() + i * c.d, c.d, 0.0f);
                }
                expectProven(c, rows);
                // And queries: to these all are alike.
                std::fill_n(rows.queries.begin() + 5 * c.d, 2 * c.d, 0.0f);
                EXPECT_LE(expectCanonicalOf(c, rows).repeated, 4u);
                // Opposite ones: zeros are nearer than all others.
                for (float& one : rows.queries) {
                    one = -one;
                }
                expectCanonicalOf(c, rows);
            }
        }
    }
}

/// Most vectors are zeros: ties of which lists hold too few.
TEST_F(FusedCosine, ZerosAlone) {
    for (int64_t n : {9000, 30000}) {
        for (int k : {1, 10}) {
            const CertifiedCase c = of(n, 40, 24, k);
            Rows rows = around(c, 0.0f, 1.0f);
            std::fill(
                    rows.vectors.begin() + 50 * c.d, rows.vectors.end(), 0.0f);
            expectCanonicalOf(c, rows);
            std::fill(rows.vectors.begin(), rows.vectors.end(), 0.0f);
            expectCanonicalOf(c, rows);
        }
    }
}

/// Vectors that no inverse norm in float32 is for always pass: among a few of
/// them the others are found as before.
TEST_F(FusedCosine, VectorsThatAlwaysPass) {
    for (int64_t n : {9000, 70000}) {
        for (int k : {1, 10}) {
            const CertifiedCase c = of(n, 200, 40, k);
            Rows rows = around(c, 100.0f, 0.5f);
            for (int64_t i = 0; i < c.n; i += 500) {
                const float factor = i % 1000 ? 1e-30f : 1e30f;
                for (int j = 0; j < c.d; ++j) {
                    rows.vectors[i * c.d + j] *= factor;
                }
            }
            // The nearest of a part forgets which of four it is.
            if (planOf(c).nearest) {
                expectCanonicalOf(c, rows);
            } else {
                // 140 more in every list.
                expectProven(c, rows, 20);
            }
            rows.vectors[7 * c.d] = NAN;
            rows.vectors[8 * c.d] = -INFINITY;
            rows.queries[3 * c.d] = NAN;
            rows.queries[4 * c.d] = INFINITY;
            rows.queries[5 * c.d] *= 1e30f;
            expectCanonicalOf(c, rows);
        }
    }
}

/// A cone and its opposite, and a vector far from both: the center is none of
/// theirs.
TEST_F(FusedCosine, TwoCones) {
    const CertifiedCase c = of(40000, 200, 64, 10);
    Rows rows = around(c, 1.0f, 0.5f);
    for (int64_t i = 0; i < c.n; i += 2) {
        for (int j = 0; j < c.d; ++j) {
            rows.vectors[i * c.d + j] *= -1.0f;
        }
    }
    expectProven(c, rows);
    std::fill_n(rows.vectors.begin(), c.d, 0.0f);
    rows.vectors[0] = 1e9f;
    expectProven(c, rows);
}

} // namespace
} // namespace faiss_bits::test

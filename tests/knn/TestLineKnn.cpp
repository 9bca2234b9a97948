/// Cosines of one dimension, which are 1, 0 or -1.

#include "tests/knn/CertifiedHarness.h"
#include "tests/knn/LineNumbers.h"

namespace faiss_bits::test {
namespace {

class LineKnn : public FlatKnnCertified {
   protected:
    static CertifiedCase of(int64_t n, int64_t q, int k) {
        return caseOf(Direct::WhereItPays, Metric::Cosine, n, q, 1, k);
    }

    void expectLine(const CertifiedCase& c, Hard kind) {
        ASSERT_TRUE(planOf(c).line) << c.describe();
        EXPECT_EQ(expectCanonical(c, kind).repeated, 0u);
    }
};

TEST_F(LineKnn, HardData) {
    for (Hard kind : kHard) {
        for (int64_t n : {1, 31, 32, 1023, 1024, 1025, 5000}) {
            for (int k : {1, 7, 1024, 6000}) {
                expectLine(of(n, 20, k), kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(LineKnn, ZerosAndNoNumbers) {
    for (int64_t n : {5, 1000, 70000}) {
        for (int k : {3, 900, 2500}) {
            for (IdType type : {IdType::Int32, IdType::Int64}) {
                CertifiedCase c = of(n, 40, k);
                c.idType = type;
                const std::vector<float> vectors =
                        lineNumbers(n, uint32_t(n + k));
                const std::vector<float> queries = lineNumbers(c.q, 3);
                check(c, vectors, queries, search(c, vectors, queries), 40);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Chunks of more than one step, and a kind of which only the last ones are.
TEST_F(LineKnn, ManyVectors) {
    const CertifiedCase c = of(1100003, 9, 300);
    std::vector<float> vectors(c.n, 2.5f);
    for (int64_t i = c.n - 200; i < c.n; ++i) {
        vectors[i] = -1;
    }
    vectors[c.n / 2] = 0;
    const std::vector<float> queries = {1, -1, 0, 3, -3, 1e-40f, -1e38f, 5, -2};
    check(c, vectors, queries, search(c, vectors, queries));
}

TEST_F(LineKnn, Filters) {
    for (int holes : {-1, 0, 5}) {
        CertifiedCase c = of(9000, 30, 100);
        c.allowedOf = 7;
        c.holes = holes;
        expectLine(c, Hard::Mixed);
        c.allowedOf = 8999;
        expectLine(c, Hard::Infinite);
    }
}

TEST_F(LineKnn, SixteenBits) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (int64_t n : {3000, 70000}) {
            CertifiedCase c = of(n, 50, 40);
            c.dataType = type;
            expectLine(c, Hard::Mixed);
            expectLine(c, Hard::Infinite);
        }
    }
}

TEST_F(LineKnn, OthersGoOtherWays) {
    CertifiedCase c = of(3000, 50, 40);
    EXPECT_TRUE(planOf(c).line);
    c.mode = SearchMode::Plain;
    EXPECT_FALSE(planOf(c).line);
    c = of(3000, 50, 40);
    c.metric = Metric::InnerProduct;
    EXPECT_FALSE(planOf(c).line);
    c = of(3000, 50, 40);
    c.d = 2;
    EXPECT_FALSE(planOf(c).line);
}

} // namespace
} // namespace faiss_bits::test

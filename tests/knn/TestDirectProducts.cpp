/// Searches by the canonical distances of all pairs, of several queries that
/// share what is read of the vectors (DirectProducts.cuh).

#include <limits>

#include "kernels/knn/direct/DirectParams.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class DirectProducts : public FlatKnnCertified {
   protected:
    static CertifiedCase of(int64_t n, int64_t q, int d, int k) {
        return caseOf(Direct::Always, Metric::Cosine, n, q, d, k);
    }

    static bool byProducts(const CertifiedCase& c) {
        const FlatKnnPlan plan = planOf(c);
        return plan.direct && plan.direct->shape == DirectShape::Products;
    }

    void expectProducts(const CertifiedCase& c, Hard kind) {
        ASSERT_TRUE(byProducts(c)) << c.describe();
        EXPECT_EQ(expectCanonical(c, kind).repeated, 0u);
    }
};

TEST_F(DirectProducts, HardData) {
    for (Hard kind : kHard) {
        for (int64_t q : {2, 4, 5, 8, 9}) {
            for (int d : {17, 33, 60}) {
                expectProducts(of(2005, q, d, 10), kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Lanes and steps that end before the last component, and shared memory that
/// has room for eight queries, for four, for none.
TEST_F(DirectProducts, EveryDimension) {
    for (int d : {17,  24,  25,  31,   32,   33,   39,   40,   41,  56,
                  57,  63,  64,  65,   95,   96,   97,   127,  128, 129,
                  255, 768, 769, 1025, 1407, 1408, 1409, 2815, 2816}) {
        for (int64_t q : {4, 7}) {
            // More pairs than have eight lanes each.
            const int64_t n = d < 64 ? 333 : 32768 / q + 1;
            expectProducts(of(n, q, d, 7), Hard::Mixed);
            if (HasFailure()) {
                return;
            }
        }
    }
    EXPECT_FALSE(byProducts(of(333, 7, 16, 7)));
    EXPECT_FALSE(byProducts(of(4096, 8, 64, 7)));
    EXPECT_TRUE(byProducts(of(4097, 8, 64, 7)));
    const auto isOfProducts = [](int64_t n, int64_t q, int d) {
        return byProducts(
                caseOf(Direct::Always, Metric::InnerProduct, n, q, d, 7));
    };
    EXPECT_FALSE(isOfProducts(10000, 8, 63));
    EXPECT_TRUE(isOfProducts(10000, 8, 64));
    EXPECT_FALSE(isOfProducts(10000, 4, 64));
    EXPECT_TRUE(isOfProducts(10000, 4, 65));
    EXPECT_TRUE(isOfProducts(10000, 5, 64));
    EXPECT_FALSE(isOfProducts(10000, 4, 256));
    EXPECT_TRUE(isOfProducts(10000, 4, 264));
    EXPECT_FALSE(byProducts(of(10000, 8, 2817, 7)));
    EXPECT_FALSE(byProducts(of(33000, 1, 128, 7)));
    EXPECT_TRUE(byProducts(of(33000, 2, 128, 7)));
    EXPECT_TRUE(byProducts(of(33000, 16, 128, 7)));
    EXPECT_FALSE(byProducts(of(33000, 17, 128, 7)));
    for (Metric metric : {Metric::L2, Metric::L1, Metric::Linf}) {
        EXPECT_FALSE(
                byProducts(caseOf(Direct::Always, metric, 10000, 8, 100, 7)));
    }
}

TEST_F(DirectProducts, SharesOfSharedMemory) {
    EXPECT_EQ(directProductQueries(4, 128), 4);
    EXPECT_EQ(directProductQueries(5, 128), 8);
    EXPECT_EQ(directProductQueries(1024, 1408), 8);
    EXPECT_EQ(directProductQueries(1024, 1409), 4);
    EXPECT_EQ(directProductQueries(5, 2816), 4);
    EXPECT_EQ(directProductQueries(5, 2817), 0);
}

/// Units, halves of them, and groups of several.
TEST_F(DirectProducts, BothSidesOfEveryNumberOfVectors) {
    for (int64_t n :
         {1,    2,     15,    16,    17,    31,     32,    33,   63,
          64,   65,    127,   128,   129,   1023,   1024,  4095, 4096,
          4097, 16895, 16896, 16897, 65537, 262145, 600000}) {
        for (int64_t q : {2, 6}) {
            for (int k : {1, 10, 300}) {
                expectProducts(of(n, q, 18, k), Hard::Bytes);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(DirectProducts, SeveralBlocksOfQueries) {
    for (int64_t q : {8, 9, 12, 13, 15, 16}) {
        expectProducts(of(300, q, 26, 12), Hard::Clusters);
        expectProducts(of(300, q, 26, 200), Hard::Offset);
    }
}

TEST_F(DirectProducts, LargeK) {
    for (Hard kind : {Hard::Offset, Hard::Duplicates, Hard::Infinite}) {
        for (int k : {129, 512, 513, 1024, 2048}) {
            for (int64_t n : {50, 2000, 70001}) {
                CertifiedCase c = of(n, 7, 20, k);
                c.idType = k % 2 ? IdType::Int32 : IdType::Int64;
                expectProducts(c, kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Rows that begin on no more than two bytes.
TEST_F(DirectProducts, SixteenBits) {
    for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Mixed, Hard::Infinite}) {
        for (DataType type : {DataType::Float16, DataType::BFloat16}) {
            for (int d : {37, 40, 129}) {
                for (int64_t q : {3, 5}) {
                    CertifiedCase c = of(11000, q, d, 20);
                    c.dataType = type;
                    expectProducts(c, kind);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(DirectProducts, Filters) {
    for (Hard kind : {Hard::Bytes, Hard::Duplicates, Hard::Infinite}) {
        for (int allowedOf : {1, 2, 7, 100, 5000}) {
            for (int holes : {-1, 0, 1, 77}) {
                for (int64_t q : {3, 6}) {
                    CertifiedCase c =
                            of(20011, q, 19, allowedOf > 2 ? 10 : 300);
                    c.allowedOf = allowedOf;
                    c.holes = holes;
                    expectProducts(c, kind);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Zeros, whose cosines are 0, and components that are no numbers, beside
/// others in the lanes of a warp.
TEST_F(DirectProducts, OddVectors) {
    const float nan = std::nanf("");
    const float infinity = std::numeric_limits<float>::infinity();
    for (int64_t q : {4, 8}) {
        for (int d : {17, 32, 47}) {
            const CertifiedCase c = of(777, q, d, 50);
            ASSERT_TRUE(byProducts(c)) << c.describe();
            std::vector<float> vectors = makeHard(Hard::Mixed, c.n, d, 1);
            std::vector<float> queries = makeHard(Hard::Mixed, q, d, 2);
            for (int64_t i = 0; i < c.n; ++i) {
                float* x = vectors.data() + i * d;
                if (i % 5 == 0) {
                    std::fill_n(x, d, 0.0f);
                } else if (i % 7 == 0) {
                    x[i % d] = i % 2 ? nan : infinity;
                }
            }
            std::fill_n(queries.data(), d, 0.0f);
            queries[2 * d + d - 1] = nan;
            queries[3 * d] = infinity;
            check(c, vectors, queries, search(c, vectors, queries));
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(DirectProducts, CountsWhatItComputes) {
    for (int64_t q : {3, 6, 11}) {
        CertifiedCase c = of(1000, q, 21, 12);
        const auto vectors = makeHard(Hard::Bytes, c.n, c.d, 1);
        const auto queries = makeHard(Hard::Bytes, c.q, c.d, 2);
        EXPECT_EQ(search(c, vectors, queries).rescored, unsigned(1000 * q));
        c.allowedOf = 10;
        EXPECT_EQ(search(c, vectors, queries).rescored, unsigned(100 * q));
        c.holes = 50;
        EXPECT_EQ(search(c, vectors, queries).rescored, unsigned(100 * q));
    }
}

TEST_F(DirectProducts, InnerProducts) {
    for (Hard kind : kHard) {
        for (int64_t q : {4, 5, 16}) {
            for (int d : {q == 4 ? 65 : 64, 97, 130}) {
                CertifiedCase c = of(32768 / q + 40, q, d, 40);
                c.metric = Metric::InnerProduct;
                expectProducts(c, kind);
                c.dataType = DataType::BFloat16;
                c.exactQueries = d == 97;
                c.allowedOf = q == 5 ? 2 : 0;
                c.n = c.allowedOf ? 2 * c.n : c.n;
                expectProducts(c, kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// For tools that watch each access.
TEST_F(DirectProducts, SmallOfEveryKind) {
    for (int64_t q : {2, 5}) {
        expectProducts(of(700, q, 19, 12), Hard::Duplicates);
        expectProducts(of(700, q, 36, 150), Hard::Mixed);
        CertifiedCase c = of(700, q, 43, 12);
        c.dataType = DataType::Float16;
        expectProducts(c, Hard::Bytes);
        c.allowedOf = 7;
        c.holes = 3;
        expectProducts(c, Hard::Infinite);
    }
}

} // namespace
} // namespace faiss_bits::test

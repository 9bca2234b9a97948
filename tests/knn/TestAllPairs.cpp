/// Searches of few vectors by a matrix of canonical distances.

#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class AllPairsKnn : public FlatKnnCertified {
   protected:
    static CertifiedCase of(Metric metric, int64_t n, int64_t q, int d, int k) {
        return caseOf(Direct::AllPairs, metric, n, q, d, k);
    }

    void expectAllPairs(const CertifiedCase& c, Hard kind) {
        ASSERT_TRUE(planOf(c).allPairs) << c.describe();
        EXPECT_EQ(expectCanonical(c, kind).repeated, 0u);
    }
};

TEST_F(AllPairsKnn, HardData) {
    for (Hard kind : kHard) {
        for (Metric metric : kDirectMetrics) {
            for (int d : {1, 7, 8, 33, 130}) {
                expectAllPairs(of(metric, 1005, 90, d, 10), kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Of queries, vectors and components, and of rows of the matrix.
TEST_F(AllPairsKnn, BothSidesOfEveryTile) {
    for (Metric metric : {Metric::L2, Metric::L1, Metric::Cosine}) {
        for (int64_t n : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65}) {
            for (int64_t q : {17, 31, 32, 33, 63, 64, 65, 129}) {
                for (int d : {3, 32, 65}) {
                    expectAllPairs(of(metric, n, q, d, 5), Hard::Mixed);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
    // Of more vectors while all of the matrix stays in L2.
    expectAllPairs(of(Metric::L2, 16384, 384, 4, 5), Hard::Bytes);
    expectAllPairs(of(Metric::L2, 16385, 383, 4, 5), Hard::Bytes);
    EXPECT_FALSE(planOf(of(Metric::L2, 16385, 384, 4, 5)).allPairs);
    expectAllPairs(of(Metric::L2, 131072, 20, 4, 5), Hard::Bytes);
    EXPECT_FALSE(planOf(of(Metric::L2, 131073, 20, 4, 5)).allPairs);
    expectAllPairs(of(Metric::L2, 100, 20, 2048, 5), Hard::Bytes);
    EXPECT_FALSE(planOf(of(Metric::L2, 100, 20, 2049, 5)).allPairs);
    EXPECT_FALSE(planOf(of(Metric::L2, 100, 16, 10, 5)).allPairs);
    EXPECT_FALSE(planOf(of(Metric::Canberra, 100, 20, 10, 5)).allPairs);
}

/// Metrics whose terms are long, where all vectors are candidates, and not
/// where they are one fewer.
TEST_F(AllPairsKnn, LongTerms) {
    for (Metric metric :
         {Metric::Lp,
          Metric::Canberra,
          Metric::BrayCurtis,
          Metric::JensenShannon,
          Metric::Jaccard}) {
        for (Hard kind : kHard) {
            for (int64_t n : {1, 31, 32, 33, 300}) {
                for (int d : {1, 7, 8, 9, 40}) {
                    expectAllPairs(of(metric, n, 40, d, int(n)), kind);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
        expectAllPairs(of(metric, 500, 90, 5, 700), Hard::Duplicates);
        CertifiedCase halves = of(metric, 300, 40, 9, 280);
        halves.dataType = DataType::Float16;
        expectAllPairs(halves, Hard::Mixed);
        EXPECT_TRUE(planOf(of(metric, 300, 40, 10, 250)).allPairs);
        EXPECT_FALSE(planOf(of(metric, 300, 40, 10, 230)).allPairs);
    }
    // Two launches.
    expectAllPairs(of(Metric::Canberra, 9000, 700, 3, 8000), Hard::Duplicates);
}

/// Of numbers of columns that selections of short rows treat alike, with keys
/// that are equal, far apart, infinite or no numbers.
TEST_F(AllPairsKnn, ShortRows) {
    for (int64_t n :
         {31, 33, 127, 128, 129, 256, 257, 512, 513, 1023, 1024, 1025}) {
        for (int k : {1, 2, 31, 32, 33}) {
            for (Hard kind : kHard) {
                const bool isEven = (n + k + int(kind)) % 2 == 0;
                CertifiedCase c =
                        of(isEven ? Metric::L2 : Metric::InnerProduct,
                           n,
                           40,
                           11,
                           k);
                c.idType = k == 31 ? IdType::Int32 : IdType::Int64;
                expectAllPairs(c, kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// All keys are as near as the k-th.
TEST_F(AllPairsKnn, AllEqual) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int64_t n : {20, 60, 64, 65, 300, 1024}) {
            const CertifiedCase c = of(metric, n, 40, 5, 32);
            const std::vector<float> vectors(c.n * c.d, 0.75f);
            const std::vector<float> queries(c.q * c.d, 0.5f);
            check(c, vectors, queries, search(c, vectors, queries));
        }
    }
}

/// A large k, cosines of many vectors, long vectors; and what is none of these.
TEST_F(AllPairsKnn, FewQueries) {
    for (Hard kind : {Hard::Mixed, Hard::Duplicates, Hard::Infinite}) {
        for (int64_t q : {1, 4, 16, 17, 64}) {
            expectAllPairs(of(Metric::InnerProduct, 6400, q, 20, 200), kind);
            if (q >= 5) {
                expectAllPairs(of(Metric::Cosine, 40001, q, 18, 10), kind);
            }
        }
        expectAllPairs(of(Metric::Cosine, 140000, 33, 18, 3), kind);
        expectAllPairs(of(Metric::L2, 2100, 5, 256, 3), kind);
    }
    EXPECT_FALSE(planOf(of(Metric::InnerProduct, 6433, 16, 20, 200)).allPairs);
    EXPECT_FALSE(planOf(of(Metric::InnerProduct, 2048, 16, 20, 200)).allPairs);
    EXPECT_FALSE(planOf(of(Metric::Cosine, 40001, 4, 18, 10)).allPairs);
    EXPECT_FALSE(planOf(of(Metric::Cosine, 140000, 65, 18, 10)).allPairs);
    EXPECT_FALSE(planOf(of(Metric::L2, 2100, 4, 256, 3)).allPairs);
    EXPECT_FALSE(planOf(of(Metric::L2, 2100, 5, 255, 3)).allPairs);
}

TEST_F(AllPairsKnn, SmallManyRows) {
    expectAllPairs(of(Metric::L2, 300, 12000, 6, 20), Hard::Mixed);
    expectAllPairs(of(Metric::InnerProduct, 70, 9000, 3, 32), Hard::Bytes);
}

/// Up to all vectors and beyond.
TEST_F(AllPairsKnn, EveryK) {
    for (Metric metric : kDirectMetrics) {
        for (int64_t n : {50, 1000, 3000, 9000}) {
            for (int k : {1, 2, 10, 49, 50, 51, 500, 1000, 1001, 2999, 3005}) {
                CertifiedCase c = of(metric, n, 30, 4, k);
                c.idType = k % 2 ? IdType::Int32 : IdType::Int64;
                expectAllPairs(c, k % 3 ? Hard::Duplicates : Hard::Infinite);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// More vectors, of so large a k that a sample makes no limits.
TEST_F(AllPairsKnn, NoSample) {
    for (Hard kind : {Hard::Offset, Hard::Mixed}) {
        for (Metric metric :
             {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
            for (auto [n, k] : std::vector<std::pair<int64_t, int>>{
                         {16385, 1025}, {20046, 2048}, {32767, 2048}}) {
                // More queries than stay in L2.
                const int64_t q = (int64_t(6) << 20) / n + 9;
                const CertifiedCase c = of(metric, n, q, 3, k);
                ASSERT_TRUE(planOf(c).allPairs) << c.describe();
                expectCanonical(c, kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(AllPairsKnn, SixteenBits) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (bool exactQueries : {false, true}) {
            for (Hard kind : kHard) {
                CertifiedCase c = of(Metric::L2, 700, 70, 19, 12);
                c.dataType = type;
                c.exactQueries = exactQueries;
                expectAllPairs(c, kind);
                c.metric = Metric::InnerProduct;
                expectAllPairs(c, kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Several tiles of queries, or other methods where there is no room: the same
/// bits.
TEST_F(AllPairsKnn, Tiles) {
    CertifiedCase c = of(Metric::L2, 9001, 2000, 17, 9);
    const std::vector<float> vectors = makeHard(Hard::Clusters, c.n, c.d, 1);
    const std::vector<float> queries = makeHard(Hard::Clusters, c.q, c.d, 2);
    ASSERT_TRUE(planOf(c).allPairs);
    EXPECT_LT(planOf(c).allPairs->tileQueries, 700);
    const KnnResult all = search(c, vectors, queries);
    check(c, vectors, queries, all, 200);
    c.maxScratch = size_t(31) << 20;
    EXPECT_FALSE(planOf(c).allPairs);
    c.maxScratch = CertifiedCase().maxScratch;
    c.direct = Direct::Never;
    EXPECT_TRUE(search(c, vectors, queries) == all);
}

/// Launches have so many tiles that hardly a multiprocessor is left without one
/// in the end.
TEST_F(AllPairsKnn, FewTurns) {
    const int64_t sizes[][2] = {
            {1857, 16384},
            {2048, 8192},
            {8192, 10240},
            {600, 100000},
            {16384, 8193}};
    for (const auto& [n, q] : sizes) {
        FlatKnnProblem p = shapeOf(of(Metric::L2, n, q, 512, 257));
        p.device.multiprocessors = 132;
        const auto plan = planAllPairs(
                p, CertifiedCase().maxScratch, PairProducts::Float64);
        ASSERT_TRUE(plan);
        const auto tilesOf = [n = n](int64_t rows) {
            return (rows + 63) / 64 * ((n + 255) / 256);
        };
        int64_t turns = 0;
        for (int64_t at = 0; at < q; at += plan->tileQueries) {
            const int64_t rows = std::min(plan->tileQueries, q - at);
            turns += (tilesOf(rows) + 131) / 132;
        }
        EXPECT_LE(turns, 1.05 * tilesOf(q) / 132 + 1) << n << " " << q;
    }
}

TEST_F(AllPairsKnn, Small) {
    for (Metric metric : kDirectMetrics) {
        expectAllPairs(of(metric, 130, 70, 35, 20), Hard::Infinite);
        expectAllPairs(of(metric, 40, 20, 9, 50), Hard::Duplicates);
    }
}

} // namespace
} // namespace faiss_bits::test

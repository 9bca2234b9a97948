/// All pairs from products of float64 rows by cuBLAS.

#include "kernels/common/Error.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class StoredPairs : public FlatKnnCertified {
   protected:
    const std::vector<Metric> metrics = {
            Metric::L2,
            Metric::InnerProduct,
            Metric::Cosine};

    static CertifiedCase of(Metric metric, int64_t n, int64_t q, int d, int k) {
        return caseOf(Direct::Products, metric, n, q, d, k);
    }

    void expectStored(const CertifiedCase& c, Hard kind) {
        const auto plan = planOf(c).allPairs;
        ASSERT_TRUE(plan && plan->by == AllPairsBy::Products) << c.describe();
        EXPECT_EQ(expectCanonical(c, kind).repeated, 0u);
    }
};

TEST_F(StoredPairs, HardData) {
    for (Hard kind : kHard) {
        for (Metric metric : metrics) {
            for (int d : {1, 7, 8, 33, 130}) {
                expectStored(of(metric, 1005, 90, d, 10), kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Of queries and vectors, and of rows of the matrix.
TEST_F(StoredPairs, BothSidesOfEveryTile) {
    for (Metric metric : metrics) {
        for (int64_t n : {1, 7, 8, 9, 31, 33, 255, 256, 257}) {
            for (int64_t q : {17, 63, 64, 65, 129}) {
                for (int d : {3, 32, 65}) {
                    expectStored(of(metric, n, q, d, 5), Hard::Mixed);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(StoredPairs, EveryK) {
    for (Metric metric : metrics) {
        for (int k : {1, 2, 49, 500, 1000, 2999, 3005}) {
            CertifiedCase c = of(metric, 3000, 30, 9, k);
            c.idType = k % 2 ? IdType::Int32 : IdType::Int64;
            expectStored(c, k % 3 ? Hard::Duplicates : Hard::Infinite);
        }
    }
}

TEST_F(StoredPairs, SixteenBits) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (bool exactQueries : {false, true}) {
            for (Hard kind : kHard) {
                for (Metric metric : metrics) {
                    CertifiedCase c = of(metric, 700, 70, 19, 12);
                    c.dataType = type;
                    c.exactQueries = exactQueries;
                    expectStored(c, kind);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// In several pieces, in one, and by tiles of ours: the same bits.
TEST_F(StoredPairs, Pieces) {
    for (Metric metric : metrics) {
        CertifiedCase c = of(metric, 20001, 1500, 37, 100);
        const std::vector<float> vectors =
                makeHard(Hard::Clusters, c.n, c.d, 1);
        const std::vector<float> queries =
                makeHard(Hard::Clusters, c.q, c.d, 2);
        c.maxScratch = size_t(1) << 30;
        ASSERT_TRUE(planOf(c).allPairs);
        const KnnResult all = search(c, vectors, queries);
        check(c, vectors, queries, all, 100);
        c.maxScratch = size_t(80) << 20;
        ASSERT_TRUE(planOf(c).allPairs);
        EXPECT_LT(planOf(c).allPairs->tileQueries, 700);
        EXPECT_TRUE(search(c, vectors, queries) == all);
        c.maxScratch = size_t(1) << 20;
        EXPECT_FALSE(planOf(c).allPairs);
    }
}

TEST_F(StoredPairs, NoHandle) {
    const CertifiedCase c = of(Metric::L2, 100, 20, 8, 5);
    const FlatKnnProblem p = shapeOf(c);
    const FlatKnnPlan plan = planOf(c);
    DeviceBuffer<uint8_t> scratch(plan.bytes);
    EXPECT_THROW(
            runAllPairs(
                    *plan.allPairs,
                    p,
                    {scratch.data(), scratch.size()},
                    nullptr,
                    nullptr),
            Error);
}

} // namespace
} // namespace faiss_bits::test

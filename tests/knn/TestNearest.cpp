/// Searches for the one nearest of few vectors: results
/// against canonical distances.

#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/fused/tensor/TensorScan.h"
#include "tests/common/ExpectError.h"
#include "tests/knn/NearestHarness.h"

namespace faiss_bits::test {
namespace {

constexpr Metric kProducts[] = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine};

TEST_F(NearestKnn, HardData) {
    for (Hard kind : kHard) {
        for (Metric metric : kProducts) {
            for (int d : {20, 32, 300}) {
                CertifiedCase c = of(metric, 2005, d);
                c.keptImage = d == 32;
                c.imageInOrder = metric == Metric::L2;
                EXPECT_TRUE(planOf(c).nearest) << c.describe();
                expectCanonical(c, kind);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(NearestKnn, BothSidesOfEveryEdge) {
    for (int64_t n :
         {63, 64, 65, 127, 128, 129, 1000, 4096, 16385, 65535, 65536, 65537}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            for (int d : {12, 130}) {
                CertifiedCase c = of(metric, n, d);
                c.idType = d == 12 ? IdType::Int32 : IdType::Int64;
                EXPECT_EQ(planOf(c).nearest.has_value(), n >= 64 && n <= 65536);
                expectCanonical(c, n % 2 ? Hard::Bytes : Hard::Clusters);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(NearestKnn, SixteenBits) {
    for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Mixed, Hard::Infinite}) {
        for (DataType type : {DataType::Float16, DataType::BFloat16}) {
            for (bool exactQueries : {false, true}) {
                CertifiedCase c = of(Metric::L2, 1000, 140);
                c.dataType = type;
                c.exactQueries = exactQueries;
                expectCanonical(c, kind);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// Vectors that float16 makes infinite do not hide those beside them.
TEST_F(NearestKnn, InfinitiesHideNoOther) {
    for (Hard kind : {Hard::Infinite, Hard::Mixed}) {
        for (int d : {3, 140}) {
            CertifiedCase c = of(Metric::L2, 1140, d);
            c.q = std::max<int64_t>(c.q, 4000);
            c.dataType = DataType::Float16;
            std::vector<float> vectors = makeHard(kind, c.n, c.d, 1);
            std::vector<float> queries = makeHard(kind, c.q, c.d, 2);
            roundAllTo(c.dataType, vectors);
            roundAllTo(c.dataType, queries);
            const Result result = search(c, vectors, queries);
            check(c, vectors, queries, result, c.q);
        }
    }
}

/// Any number of queries a scan, the last of them fewer: the same bits.
TEST_F(NearestKnn, LittleScratch) {
    CertifiedCase c = of(Metric::L2, 500, 32);
    c.q = 140001;
    const std::vector<float> vectors = makeHard(Hard::Clusters, c.n, c.d, 1);
    const std::vector<float> queries = makeHard(Hard::Clusters, c.q, c.d, 2);
    const KnnResult all = search(c, vectors, queries);
    check(c, vectors, queries, all, 200);
    const idx_t roomy = planOf(c).nearest->tileQueries;
    c.maxScratch = size_t(6) << 20;
    ASSERT_TRUE(planOf(c).nearest);
    EXPECT_LT(planOf(c).nearest->tileQueries, roomy / 4);
    EXPECT_TRUE(search(c, vectors, queries) == all);
    c.maxScratch = 0;
    EXPECT_FALSE(planOf(c).nearest);
    EXPECT_TRUE(search(c, vectors, queries) == all);
}

/// The proof succeeds for nearly all queries of ordinary data.
TEST_F(NearestKnn, HardlyAnyIsRepeated) {
    for (Metric metric : kProducts) {
        for (int d : {16, 128}) {
            CertifiedCase c = of(metric, 4000, d);
            c.q = 4000;
            std::mt19937 random(3);
            std::normal_distribution<float> normal;
            std::vector<float> vectors(c.n * c.d);
            std::vector<float> queries(c.q * c.d);
            for (std::vector<float>* rows : {&vectors, &queries}) {
                for (float& one : *rows) {
                    one = normal(random);
                }
            }
            const Result result = search(c, vectors, queries);
            check(c, vectors, queries, result);
            EXPECT_LE(result.repeated, unsigned(c.q / 200)) << c.describe();
        }
    }
}

TEST_F(NearestKnn, Takes) {
    CertifiedCase c = of(Metric::L2, 4096, 128);
    c.q = 1000;
    EXPECT_TRUE(planOf(c).nearest);
    c.k = 2;
    EXPECT_FALSE(planOf(c).nearest);
    c.k = 1;
    c.metric = Metric::L1;
    EXPECT_FALSE(planOf(c).nearest);
    c.metric = Metric::L2;
    c.q = 16;
    EXPECT_FALSE(planOf(c).nearest);
    c.q = 4000;
    for (int64_t n : {2048, 2049}) {
        c.n = n;
        const FlatKnnPlan plan = planOf(c);
        const bool isAtOnce = n == 2048 &&
                hasTensorScan(TensorScanKernel::Wgmma, traitsOf(c));
        EXPECT_EQ(plan.nearest.has_value(), !isAtOnce);
        EXPECT_EQ(plan.fused && plan.fused->atOnce, isAtOnce);
    }
}

TEST_F(NearestKnn, Small) {
    for (Metric metric : kProducts) {
        for (Hard kind : {Hard::Bytes, Hard::Infinite, Hard::Duplicates}) {
            CertifiedCase c = of(metric, 300, 700);
            expectCanonical(c, kind);
        }
    }
}

} // namespace
} // namespace faiss_bits::test

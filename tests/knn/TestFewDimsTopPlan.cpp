/// Which searches for several nearest vectors of few dimensions go by short
/// strips of float32, and what these take.

#include <gtest/gtest.h>

#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/nearest/FewDimsTopKnn.h"

namespace faiss_bits::test {
namespace {

FlatKnnProblem problemOf(Metric metric, int64_t n, int64_t q, int d, int k) {
    FlatKnnProblem p;
    p.metric = metric;
    p.numVectors = n;
    p.numQueries = q;
    p.d = d;
    p.k = k;
    return p;
}

constexpr size_t kRoom = size_t(1) << 32;

bool goesByStrips(const FlatKnnProblem& p) {
    return planFlatKnn(p, kRoom).fewDimsTop.has_value();
}

TEST(FewDimsTopPlan, Takes) {
    FlatKnnProblem p = problemOf(Metric::L2, 2049, 9141, 4, 5);
    EXPECT_TRUE(goesByStrips(p));
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        p.dataType = type;
        EXPECT_TRUE(goesByStrips(p));
    }
    p.dataType = DataType::Float32;
    p.mode = SearchMode::Plain;
    EXPECT_FALSE(planFewDimsTop(p, kRoom));
    p.mode = SearchMode::Fast;
    EXPECT_TRUE(planFewDimsTop(p, kRoom));
    p.mode = SearchMode::Certified;
    for (Metric metric : {Metric::InnerProduct, Metric::Cosine}) {
        p.metric = metric;
        EXPECT_TRUE(goesByStrips(p));
    }
    for (Metric metric : {Metric::L1, Metric::Linf}) {
        p.metric = metric;
        EXPECT_FALSE(planFewDimsTop(p, kRoom));
    }
    p.metric = Metric::L2;
    for (int k : {1, 2, 16, 17}) {
        p.k = k;
        EXPECT_EQ(planFewDimsTop(p, kRoom).has_value(), k <= 16);
        EXPECT_EQ(goesByStrips(p), k > 1 && k <= 16) << k;
    }
    p.k = 5;
    for (int d : {1, 8, 9, 16, 17}) {
        p.d = d;
        EXPECT_EQ(planFewDimsTop(p, kRoom).has_value(), d <= 16);
        EXPECT_EQ(fewDimsTopPays(p), d == 8);
    }
    p.d = 4;
    for (int64_t n : {131072, 131073}) {
        p.numVectors = n;
        EXPECT_EQ(planFewDimsTop(p, kRoom).has_value(), n == 131072);
    }
    p.numVectors = 2049;
    const uint32_t bits = 0;
    p.allowedBits = &bits;
    EXPECT_FALSE(planFewDimsTop(p, kRoom));
    p.allowedBits = nullptr;
    p.device.singleToDouble = 64;
    EXPECT_FALSE(planFewDimsTop(p, kRoom));
    p.device.singleToDouble = 2;
    const float limit = 0;
    p.limits = &limit;
    EXPECT_FALSE(goesByStrips(p));
}

/// The one nearest by cosine too.
TEST(FewDimsTopPlan, NearestCosine) {
    EXPECT_TRUE(goesByStrips(problemOf(Metric::Cosine, 8191, 13141, 4, 1)));
    EXPECT_TRUE(goesByStrips(problemOf(Metric::Cosine, 8191, 13141, 16, 1)));
    EXPECT_FALSE(goesByStrips(problemOf(Metric::Cosine, 8191, 13141, 17, 1)));
    EXPECT_FALSE(goesByStrips(problemOf(Metric::L2, 8191, 13141, 4, 1)));
}

/// A page of a batch goes as the batch.
TEST(FewDimsTopPlan, Pages) {
    FlatKnnProblem page = problemOf(Metric::L2, 8192, 16, 4, 5);
    EXPECT_FALSE(fewDimsTopPays(page));
    page.batchQueries = 4096;
    EXPECT_TRUE(fewDimsTopPays(page));
    page.numQueries = 4096;
    page.batchQueries = 0;
    EXPECT_TRUE(fewDimsTopPays(page));
}

TEST(FewDimsTopPlan, Strips) {
    for (int64_t n : {1, 127, 128, 129, 8192, 8193, 16384, 16385, 131072}) {
        const auto plan =
                planFewDimsTop(problemOf(Metric::L2, n, 1000, 4, 5), kRoom);
        ASSERT_TRUE(plan);
        const int64_t unit = int64_t(4) << plan->logStrip;
        EXPECT_EQ(plan->units, (n + unit - 1) / unit);
        EXPECT_EQ(plan->logStrip, n <= 8192 ? 5u : n <= 16384 ? 6u : 7u);
    }
}

TEST(FewDimsTopPlan, Scratch) {
    for (Metric metric : {Metric::L2, Metric::Cosine}) {
        const FlatKnnProblem p = problemOf(metric, 65536, 1 << 16, 4, 5);
        const auto roomy = planFewDimsTop(p, kRoom);
        ASSERT_TRUE(roomy);
        EXPECT_EQ(roomy->tileQueries, 16384);
        EXPECT_LE(roomy->bytes, size_t(42) << 20);
        // Just these bytes find the same plan.
        EXPECT_EQ(planFewDimsTop(p, roomy->bytes)->tileQueries, 16384);
        const auto half = planFewDimsTop(p, roomy->bytes - 1);
        ASSERT_TRUE(half);
        EXPECT_EQ(half->tileQueries, 8192);
        EXPECT_FALSE(planFewDimsTop(p, 1 << 19));
    }
}

} // namespace
} // namespace faiss_bits::test

/// Which searches for one nearest vector of few dimensions go by strips of
/// float32, and what these take.

#include <gtest/gtest.h>

#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/nearest/FewDimsKernels.h"

namespace faiss_bits::test {
namespace {

FlatKnnProblem problemOf(int64_t n, int64_t q, int d) {
    FlatKnnProblem p;
    p.metric = Metric::InnerProduct;
    p.numVectors = n;
    p.numQueries = q;
    p.d = d;
    p.k = 1;
    return p;
}

constexpr size_t kRoom = size_t(1) << 32;

bool goesByStrips(const FlatKnnProblem& p) {
    return planFlatKnn(p, kRoom).fewDims.has_value();
}

TEST(FewDimsPlan, Takes) {
    FlatKnnProblem p = problemOf(131072, 4095, 4);
    EXPECT_TRUE(goesByStrips(p));
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        p.dataType = type;
        EXPECT_TRUE(goesByStrips(p));
    }
    p.dataType = DataType::Float32;
    p.metric = Metric::L2;
    EXPECT_TRUE(goesByStrips(p));
    p.mode = SearchMode::Plain;
    EXPECT_FALSE(planFewDims(p, kRoom));
    p.mode = SearchMode::Fast;
    EXPECT_TRUE(planFewDims(p, kRoom));
    p.mode = SearchMode::Certified;
    for (Metric metric : {Metric::Cosine, Metric::L1, Metric::Linf}) {
        p.metric = metric;
        EXPECT_FALSE(planFewDims(p, kRoom));
    }
    p.metric = Metric::L2;
    p.k = 2;
    EXPECT_FALSE(planFewDims(p, kRoom));
    p.k = 1;
    for (int d : {1, 8, 9}) {
        p.d = d;
        EXPECT_EQ(planFewDims(p, kRoom).has_value(), d <= 8);
    }
    p.d = 4;
    const uint32_t bits = 0;
    p.allowedBits = &bits;
    EXPECT_FALSE(planFewDims(p, kRoom));
    p.allowedBits = nullptr;
    p.device.singleToDouble = 64;
    EXPECT_FALSE(planFewDims(p, kRoom));
    p.device.singleToDouble = 2;
    const float limit = 0;
    p.limits = &limit;
    EXPECT_FALSE(goesByStrips(p));
}

/// Both sides of the edges of the choice.
TEST(FewDimsPlan, Choice) {
    EXPECT_FALSE(goesByStrips(problemOf(65536, 4095, 4)));
    EXPECT_TRUE(goesByStrips(problemOf(65537, 4095, 4)));
    EXPECT_FALSE(goesByStrips(problemOf(1 << 20, 16, 4)));
    // Many pairs of many components are for tensor cores.
    EXPECT_TRUE(goesByStrips(problemOf(131072, 1024, 8)));
    EXPECT_FALSE(goesByStrips(problemOf(1 << 20, 10240, 8)));
    EXPECT_TRUE(goesByStrips(problemOf(1 << 20, 1024, 4)));
    // A page of a batch goes as the batch.
    FlatKnnProblem page = problemOf(131072, 16, 4);
    EXPECT_FALSE(fewDimsPays(page));
    page.batchQueries = 4096;
    EXPECT_TRUE(fewDimsPays(page));
}

TEST(FewDimsPlan, Strips) {
    for (int64_t n :
         {1, 255, 256, 257, 1 << 20, (1 << 20) + 1, (1 << 21) + 1}) {
        const auto plan = planFewDims(problemOf(n, 1000, 4), kRoom);
        ASSERT_TRUE(plan);
        const int64_t width = int64_t(kFewDimsUnit) << plan->logUnits;
        EXPECT_EQ(plan->strips, (n + width - 1) / width);
        EXPECT_LE(plan->strips, 4096);
        EXPECT_EQ(plan->logUnits, n <= 1 << 20 ? 0u : n <= 1 << 21 ? 1u : 2u);
    }
}

/// Queries that fill the threads of whole blocks.
TEST(FewDimsPlan, QueriesOfAThread) {
    EXPECT_EQ(
            planFewDims(problemOf(99999, 4095, 4), kRoom)->queriesOfThread, 8);
    EXPECT_EQ(planFewDims(problemOf(99999, 512, 4), kRoom)->queriesOfThread, 4);
    EXPECT_EQ(planFewDims(problemOf(99999, 513, 4), kRoom)->queriesOfThread, 8);
    EXPECT_EQ(
            planFewDims(problemOf(99999, 1100, 4), kRoom)->queriesOfThread, 4);
}

TEST(FewDimsPlan, Scratch) {
    FlatKnnProblem p = problemOf(131072, 1 << 18, 4);
    p.metric = Metric::L2;
    const auto roomy = planFewDims(p, kRoom);
    ASSERT_TRUE(roomy);
    EXPECT_EQ(roomy->tileQueries, 32768);
    EXPECT_LE(roomy->bytes, size_t(66) << 20);
    // Just these bytes find the same plan.
    EXPECT_EQ(planFewDims(p, roomy->bytes)->tileQueries, 32768);
    const auto half = planFewDims(p, roomy->bytes - 1);
    ASSERT_TRUE(half);
    EXPECT_EQ(half->tileQueries, 16384);
    EXPECT_LT(half->bytes, roomy->bytes);
    EXPECT_EQ(planFewDims(p, half->bytes)->tileQueries, 16384);
    EXPECT_FALSE(planFewDims(p, 1 << 19));
}

} // namespace
} // namespace faiss_bits::test

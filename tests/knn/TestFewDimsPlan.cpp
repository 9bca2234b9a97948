/// Which searches for one nearest vector of few dimensions go by strips of
/// float32, and what these take.

#include <gtest/gtest.h>

#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/nearest/FewDimsKnn.h"

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
    EXPECT_FALSE(goesByStrips(problemOf(1 << 20, 16, 4)));
    EXPECT_TRUE(goesByStrips(problemOf(65536, 100, 4)));
    // Few pairs are for the matrix of all.
    EXPECT_FALSE(goesByStrips(problemOf(1024, 4096, 4)));
    EXPECT_TRUE(goesByStrips(problemOf(1024, 8192, 4)));
    EXPECT_FALSE(goesByStrips(problemOf(4096, 1000, 8)));
    EXPECT_TRUE(goesByStrips(problemOf(4096, 4096, 2)));
    EXPECT_FALSE(goesByStrips(problemOf(100, 32768, 2)));
    // Many pairs of many components are for tensor cores.
    EXPECT_TRUE(goesByStrips(problemOf(65537, 32768, 5)));
    EXPECT_FALSE(goesByStrips(problemOf(65537, 32768, 7)));
    for (int64_t n : {16384, 65536, 131072}) {
        EXPECT_TRUE(goesByStrips(problemOf(n, 32768, 4))) << n;
        // Of more than 65,536 hard data take three times as long by lists.
        EXPECT_EQ(goesByStrips(problemOf(n, 32768, 5)), n > 65536) << n;
        EXPECT_FALSE(goesByStrips(problemOf(n, 32768, 8))) << n;
    }
    EXPECT_TRUE(goesByStrips(problemOf(16384, 1000, 8)));
    EXPECT_FALSE(goesByStrips(problemOf(16384, 4096, 8)));
    EXPECT_TRUE(goesByStrips(problemOf(65536, 100, 8)));
    EXPECT_FALSE(goesByStrips(problemOf(65536, 4096, 6)));
    EXPECT_TRUE(goesByStrips(problemOf(65537, 4096, 6)));
    EXPECT_TRUE(goesByStrips(problemOf(131072, 4096, 6)));
    EXPECT_FALSE(goesByStrips(problemOf(131072, 4096, 8)));
    EXPECT_TRUE(goesByStrips(problemOf(131072, 1000, 8)));
    EXPECT_TRUE(goesByStrips(problemOf(1 << 20, 4096, 3)));
    EXPECT_FALSE(goesByStrips(problemOf(1 << 20, 1000, 4)));
    EXPECT_FALSE(goesByStrips(problemOf(1 << 20, 1000, 8)));
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

/// Queries that fill the threads of whole blocks, which are many.
TEST(FewDimsPlan, QueriesOfAThread) {
    EXPECT_EQ(
            planFewDims(problemOf(99999, 4095, 4), kRoom)->queriesOfThread, 8);
    EXPECT_EQ(planFewDims(problemOf(99999, 512, 4), kRoom)->queriesOfThread, 4);
    EXPECT_EQ(planFewDims(problemOf(99999, 513, 4), kRoom)->queriesOfThread, 8);
    EXPECT_EQ(
            planFewDims(problemOf(99999, 1100, 4), kRoom)->queriesOfThread, 4);
    // Two blocks for each of 132 multiprocessors.
    FlatKnnProblem p = problemOf(264 * 256, 1024, 4);
    p.device.multiprocessors = 132;
    EXPECT_EQ(planFewDims(p, kRoom)->queriesOfThread, 8);
    p.numVectors = 263 * 256;
    EXPECT_EQ(planFewDims(p, kRoom)->queriesOfThread, 4);
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

/// Which certified searches have it as their second search.
TEST(FewDimsPlan, Again) {
    FlatKnnProblem p = problemOf(16384, 32768, 8);
    EXPECT_TRUE(searchesFewDimsAgain(p));
    p.numQueries = 16;
    EXPECT_FALSE(searchesFewDimsAgain(p));
    p.numQueries = 17;
    EXPECT_TRUE(searchesFewDimsAgain(p));
    p.d = 16;
    EXPECT_TRUE(searchesFewDimsAgain(p));
    EXPECT_FALSE(planFewDims(p, kRoom));
    p.d = 17;
    EXPECT_FALSE(searchesFewDimsAgain(p));
    p.d = 8;
    p.k = 2;
    EXPECT_FALSE(searchesFewDimsAgain(p));
    p.k = 1;
    p.metric = Metric::Cosine;
    EXPECT_FALSE(searchesFewDimsAgain(p));
    p.metric = Metric::L2;
    p.device.singleToDouble = 64;
    EXPECT_FALSE(searchesFewDimsAgain(p));
    p.device.singleToDouble = 2;
    const float limit = 0;
    p.limits = &limit;
    EXPECT_FALSE(searchesFewDimsAgain(p));
}

/// Strips so long that all queries of a tile may be searched again at once.
TEST(FewDimsPlan, AgainScratch) {
    const auto stripsOf = [](int64_t n, int64_t q) {
        WorkspaceSlices slices;
        const FewDimsParams params =
                takeFewDimsAgain(problemOf(n, q, 8), q, slices);
        EXPECT_LE(slices.used(), (size_t(64) << 20) + 16 * q + 4096);
        EXPECT_GE(
                (int64_t(kFewDimsUnit) << params.logUnits) * params.strips, n);
        return params.strips;
    };
    EXPECT_EQ(stripsOf(1, 1), 1u);
    EXPECT_EQ(stripsOf(257, 1000), 2u);
    EXPECT_EQ(stripsOf(65536, 65536), 256u);
    EXPECT_EQ(stripsOf(65536, 65537), 128u);
    EXPECT_EQ(stripsOf(65536, 131072), 128u);
    EXPECT_EQ(stripsOf(1 << 20, 4096), 4096u);
    EXPECT_EQ(stripsOf((1 << 20) + 1, 4096), 2049u);
    EXPECT_EQ(stripsOf(65536, (1 << 24) + 1), 1u);
}

} // namespace
} // namespace faiss_bits::test

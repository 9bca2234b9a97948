/// Plans of range searches: host only.

#include <gtest/gtest.h>

#include "kernels/range/FlatRangePlan.h"
#include "tests/common/ExpectError.h"

namespace faiss_bits::test {
namespace {

FlatKnnProblem problemOf(Metric metric, idx_t n, idx_t q, int d) {
    FlatKnnProblem p;
    p.metric = metric;
    p.metricArg = metric == Metric::Lp ? 3 : 0;
    p.numVectors = n;
    p.numQueries = q;
    p.d = d;
    return p;
}

constexpr Metric kMetrics[] = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::L1,
        Metric::Linf,
        Metric::Lp,
        Metric::Cosine,
        Metric::Canberra,
        Metric::BrayCurtis,
        Metric::JensenShannon,
        Metric::Jaccard};

TEST(FlatRangePlan, KeepsWithinItsBytes) {
    for (const Metric metric : kMetrics) {
        for (const idx_t n : {idx_t(1), idx_t(5000), idx_t(1) << 20}) {
            for (const idx_t q : {1, 16, 17, 1024, 10240}) {
                for (const int d : {2, 128, 768}) {
                    const FlatKnnProblem p = problemOf(metric, n, q, d);
                    const size_t least = planFlatRange(p, 0).bytes;
                    size_t before = 0;
                    for (size_t most = least; most < size_t(1) << 33;
                         most *= 3) {
                        const FlatRangePlan plan = planFlatRange(p, most);
                        EXPECT_LE(plan.bytes, most) << plan.toString();
                        EXPECT_GE(plan.tileQueries, 1);
                        EXPECT_LE(plan.tileQueries, q);
                        EXPECT_EQ(plan.itemWords % 32, 0u);
                        EXPECT_GE(plan.capacity, plan.itemWords * 32);
                        EXPECT_GE(plan.bytes, before / 2);
                        before = plan.bytes;
                    }
                }
            }
        }
    }
}

TEST(FlatRangePlan, TakesTensorCoresForProductsOfManyQueries) {
    const size_t roomy = size_t(4) << 30;
    const auto methodFor = [&](Metric metric, idx_t q, int d) {
        const FlatKnnProblem p = problemOf(metric, 1 << 20, q, d);
        return std::string(planFlatRange(p, roomy).method->name);
    };
    EXPECT_EQ(methodFor(Metric::L2, 1024, 128), "tensor");
    EXPECT_EQ(methodFor(Metric::InnerProduct, 17, 128), "tensor");
    EXPECT_EQ(methodFor(Metric::Cosine, 1024, 128), "tensor");
    EXPECT_EQ(methodFor(Metric::L2, 16, 128), "pairwise");
    EXPECT_EQ(methodFor(Metric::L2, 1024, 3), "pairwise");
    EXPECT_EQ(methodFor(Metric::L1, 1024, 128), "pairwise");
    // Where no image fits.
    FlatKnnProblem p = problemOf(Metric::L2, 1 << 20, 1024, 128);
    EXPECT_STREQ(planFlatRange(p, size_t(200) << 20).method->name, "pairwise");
}

TEST(FlatRangePlan, TilesOfAllPairsAreForManyCandidates) {
    const size_t roomy = size_t(4) << 30;
    for (const Metric metric : kMetrics) {
        const FlatRangePlan plan =
                planFlatRange(problemOf(metric, 1 << 20, 1024, 128), roomy);
        const bool has = metric == Metric::L2 ||
                metric == Metric::InnerProduct || metric == Metric::Cosine ||
                metric == Metric::L1 || metric == Metric::Linf;
        EXPECT_EQ(plan.matrixQueries > 0, has) << plan.toString();
        if (has) {
            EXPECT_GT(plan.matrixShare, 0.01);
            EXPECT_LT(plan.matrixShare, 1);
            EXPECT_LE(
                    plan.matrixQueries * rangeStride(1 << 20),
                    2 * plan.capacity);
        }
    }
    // Slow float64.
    FlatKnnProblem p = problemOf(Metric::L2, 1 << 20, 1024, 128);
    p.device.singleToDouble = 64;
    EXPECT_EQ(planFlatRange(p, roomy).matrixQueries, 0);
}

TEST(FlatRangePlan, CoversEveryVector) {
    for (const idx_t n : {1, 31, 32, 33, 1024, 1025, 32768, 32769}) {
        for (const uint32_t words : {32u, 96u, 256u}) {
            EXPECT_GE(idx_t(rangeItems(n, words)) * words * 32, n);
            EXPECT_LT((idx_t(rangeItems(n, words)) - 1) * words * 32, n);
        }
        EXPECT_GE(rangeStride(n), n);
    }
    EXPECT_EQ(rangeItems(0, 32), 1u);
    const FlatRangePlan plan =
            planFlatRange(problemOf(Metric::L1, INT32_MAX, 3, 1), 0);
    EXPECT_GE(plan.tileQueries, 1);
    EXPECT_LT(plan.bytes, size_t(2) << 30);
}

TEST(FlatRangePlan, BadShapesAreNamed) {
    EXPECT_TRUE(throwsNaming(
            [] { planFlatRange(problemOf(Metric::L2, -1, 1, 4), 0); },
            "numVectors",
            "-1"));
    EXPECT_TRUE(throwsNaming(
            [] { planFlatRange(problemOf(Metric::L2, 1LL << 31, 1, 4), 0); },
            "numVectors",
            "2147483648"));
    EXPECT_TRUE(throwsNaming(
            [] { planFlatRange(problemOf(Metric::L2, 1, 1, 0), 0); },
            "d",
            "0"));
    EXPECT_TRUE(throwsNaming(
            [] { planFlatRange(problemOf(Metric(77), 1, 1, 4), 0); },
            "metric",
            "77"));
}

} // namespace
} // namespace faiss_bits::test

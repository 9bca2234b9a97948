/// The part of kernels/knn that the drop-in library has: what plans and refuses
/// with FAISS_BITS_PRODUCTS_ONLY. Needs no device; linked with that part alone.

#include <gtest/gtest.h>

#include "kernels/knn/FlatKnnPlan.h"
#include "tests/common/ExpectError.h"

namespace faiss_bits::test {
namespace {

FlatKnnProblem problemOf(Metric metric, idx_t n, idx_t queries) {
    FlatKnnProblem p;
    p.metric = metric;
    p.numVectors = n;
    p.numQueries = queries;
    p.d = 32;
    p.k = 10;
    p.device.singleToDouble = 32;
    return p;
}

TEST(ProductsOnly, PlansProducts) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (idx_t queries : {1, 16, 65, 10000}) {
            const FlatKnnPlan fused =
                    planFlatKnn(problemOf(metric, 8192, queries), SIZE_MAX);
            ASSERT_TRUE(fused.fused) << queries;
            // What needs no sample needs no handle of cuBLAS: few queries, and
            // limits from strips.
            const bool byStrips = fused.fused->strips.perRow > 0;
            EXPECT_EQ(byStrips, queries == 10000);
            EXPECT_EQ(
                    fused.fused->sampling != nullptr,
                    queries > 16 && !byStrips);
            // Too few for a sample.
            const FlatKnnPlan few =
                    planFlatKnn(problemOf(metric, 8191, queries), SIZE_MAX);
            EXPECT_EQ(few.fused.has_value(), queries == 10000);
        }
    }
}

/// Which has no distances of differences but the scan's.
TEST(ProductsOnly, SamplesOfFewDimensionsAreProducts) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        FlatKnnProblem p = problemOf(metric, 32769, 4096);
        p.d = 3;
        const FlatKnnPlan plan = planFlatKnn(p, SIZE_MAX);
        ASSERT_TRUE(plan.fused && plan.fused->sampling);
        EXPECT_STREQ(plan.fused->sampling->name, "gemm");
    }
}

TEST(ProductsOnly, PlansTheNearestOfFewVectors) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        FlatKnnProblem p = problemOf(metric, 4096, 1000);
        p.k = 1;
        EXPECT_TRUE(planFlatKnn(p, SIZE_MAX).nearest);
    }
}

TEST(ProductsOnly, PlansAllPairsWhereTheyAreFew) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        FlatKnnProblem p = problemOf(metric, 100000, 1);
        p.device.singleToDouble = 2;
        EXPECT_TRUE(planFlatKnn(p, SIZE_MAX).direct);
        p.numQueries = 1000;
        EXPECT_FALSE(planFlatKnn(p, SIZE_MAX).direct);
    }
}

TEST(ProductsOnly, RefusesOtherMetrics) {
    for (Metric metric :
         {Metric::L1,
          Metric::Linf,
          Metric::Lp,
          Metric::Cosine,
          Metric::Canberra,
          Metric::BrayCurtis,
          Metric::JensenShannon,
          Metric::Jaccard}) {
        FlatKnnProblem p = problemOf(metric, 10000, 20);
        p.metricArg = 3;
        EXPECT_TRUE(throwsNaming(
                [&] { planFlatKnn(p, SIZE_MAX); },
                "metric",
                std::to_string(int(metric))));
    }
}

} // namespace
} // namespace faiss_bits::test

/// Which searches of one dimension go by sorted numbers.

#include <gtest/gtest.h>

#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/FlatKnnSummary.h"

namespace faiss_bits::test {
namespace {

constexpr size_t kRoom = size_t(1) << 32;

FlatKnnProblem problemOf(Metric metric, int64_t n, int64_t q, int k) {
    FlatKnnProblem p;
    p.metric = metric;
    p.numVectors = n;
    p.numQueries = q;
    p.d = 1;
    p.k = k;
    return p;
}

bool isSorted(const FlatKnnProblem& p, size_t room = kRoom) {
    return planFlatKnn(p, room).sortedLine.has_value();
}

/// Both sides of the edges of the choice.
TEST(SortedLinePlan, Choice) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (DataType type :
             {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
            const auto sorts = [&](int64_t n, int64_t q, int k) {
                FlatKnnProblem p = problemOf(metric, n, q, k);
                p.dataType = type;
                return isSorted(p);
            };
            EXPECT_TRUE(sorts(32769, 4096, 17));
            EXPECT_TRUE(sorts(16384, 32768, 64));
            EXPECT_TRUE(sorts(65536, 8191, 16));
            EXPECT_TRUE(sorts(1 << 20, 1000, 100));
            EXPECT_TRUE(sorts(1 << 20, 1000, 2048));
            EXPECT_FALSE(sorts(1 << 20, 1000, 2049));
            EXPECT_FALSE(sorts(1 << 20, 16, 10));
            // Few pairs.
            EXPECT_FALSE(sorts(33038, 64, 23));
            EXPECT_FALSE(sorts(64, 10000, 10));
            EXPECT_FALSE(sorts(1000, 300, 10));
            EXPECT_TRUE(sorts(1000, 65536, 10));
            EXPECT_FALSE(sorts(4096, 1000, 10));
            EXPECT_TRUE(sorts(4096, 10000, 10));
            // The nearest one by strips.
            EXPECT_FALSE(sorts(65536, 1000, 1));
            EXPECT_TRUE(sorts(65536, 10000, 1));
        }
    }
    EXPECT_TRUE(isSorted(problemOf(Metric::L2, 1 << 26, 1000, 10)));
    EXPECT_FALSE(isSorted(problemOf(Metric::L2, (1 << 26) + 1, 1000, 10)));
}

TEST(SortedLinePlan, Scratch) {
    const FlatKnnProblem p = problemOf(Metric::L2, 100000, 5000, 10);
    const FlatKnnPlan plan = planFlatKnn(p, kRoom);
    ASSERT_TRUE(plan.sortedLine);
    EXPECT_LT(plan.bytes, 17u * 100000 + (64 << 10));
    EXPECT_TRUE(isSorted(p, plan.bytes));
    EXPECT_FALSE(isSorted(p, plan.bytes - 1));
}

TEST(SortedLinePlan, SaysSo) {
    const FlatKnnProblem p = problemOf(Metric::L2, 100000, 5000, 10);
    const FlatKnnPlan plan = planFlatKnn(p, kRoom);
    const FlatKnnSummary summary = summaryOf(plan, p);
    EXPECT_EQ(summary.method, "sorted_line");
    EXPECT_EQ(summary.tileQueries, 5000);
    EXPECT_GT(summary.microseconds, 0);
    EXPECT_EQ(summary.details.find("sorted_line: 32 threads"), 0u);
}

} // namespace
} // namespace faiss_bits::test

/// Where searches go by all pairs: without a device.

#include <gtest/gtest.h>

#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/FlatKnnPlan.h"

namespace faiss_bits::test {
namespace {

/// More vectors than 16,384 have all pairs where so few queries want so many
/// that a scan takes longer.
TEST(AllPairsPlan, MoreVectors) {
    FlatKnnProblem p;
    const auto isAllPairs = [&](idx_t n, int d, idx_t q, int k) {
        p.numVectors = n;
        p.d = d;
        p.numQueries = q;
        p.k = k;
        return bool(planFlatKnn(p, size_t(1) << 30).allPairs);
    };
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        p.metric = metric;
        // Not null, and never read.
        p.searchImage = reinterpret_cast<const void*>(uintptr_t(256));
        EXPECT_TRUE(isAllPairs(19251, 11, 272, 155));
        EXPECT_TRUE(isAllPairs(22720, 15, 192, 100));
        EXPECT_TRUE(isAllPairs(17000, 8, 370, 500));
        EXPECT_FALSE(isAllPairs(17000, 8, 400, 500)) << "not at once";
        EXPECT_FALSE(isAllPairs(16500, 74, 209, 36));
        EXPECT_FALSE(isAllPairs(22086, 74, 74, 18));
        EXPECT_FALSE(isAllPairs(131073, 4, 47, 500));
        EXPECT_TRUE(isAllPairs(18000, 32, 300, 1000));
        EXPECT_FALSE(isAllPairs(18000, 33, 300, 1000));
        EXPECT_FALSE(isAllPairs(18000, 32, 300, 1001));
        EXPECT_TRUE(isAllPairs(18000, 4, 300, 1000));
        EXPECT_FALSE(isAllPairs(18000, 3, 300, 1000));
        p.searchImage = nullptr;
        EXPECT_FALSE(isAllPairs(19251, 11, 272, 155));
    }
}

} // namespace
} // namespace faiss_bits::test

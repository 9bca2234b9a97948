/// How many sets of equal vectors a second search looks for: without a device.

#include <gtest/gtest.h>

#include "kernels/common/Workspace.h"
#include "kernels/knn/certified/Certified.h"

namespace faiss_bits::test {
namespace {

uint32_t mostSets(Metric metric, idx_t n, int d, int k) {
    FlatKnnProblem p;
    p.metric = metric;
    p.numVectors = n;
    p.numQueries = 2000;
    p.d = d;
    p.k = k;
    WorkspaceSlices slices;
    CertifiedScratch scratch;
    scratch.takeAgain(p, p.numQueries, slices);
    return scratch.groups.most;
}

/// Where tiles of products take longer, by the model.
TEST(EqualSetsPlan, ByProductsWhereTheyAreWorthIt) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
        EXPECT_EQ(mostSets(metric, 16384, 24, 1), 184u);
        EXPECT_EQ(mostSets(metric, 16384, 64, 1), 302u);
        EXPECT_EQ(mostSets(metric, 16384, 6, 2), 728u);
        EXPECT_EQ(mostSets(metric, 65536, 256, 10), 2637u);
        EXPECT_EQ(mostSets(metric, 1500, 17, 1), 0u) << "never";
        EXPECT_EQ(mostSets(metric, 400, 6, 2), 100u) << "of four vectors";
        EXPECT_EQ(mostSets(metric, 12000, 64, 1024), 626u);
        EXPECT_EQ(mostSets(metric, 12000, 64, 1025), 3000u) << "many lists";
    }
}

TEST(EqualSetsPlan, ByOthersOfFourVectors) {
    EXPECT_EQ(mostSets(Metric::L1, 12000, 6, 1), 3000u);
    EXPECT_EQ(mostSets(Metric::L1, 4, 6, 1), 1u);
    EXPECT_EQ(mostSets(Metric::L1, 3, 6, 1), 0u);
}

/// FewDimsKnn.h searches again there.
TEST(EqualSetsPlan, NoneOfTheNearestOfFewDimensions) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        EXPECT_EQ(mostSets(metric, 16384, 16, 1), 0u);
        EXPECT_GT(mostSets(metric, 16384, 17, 1), 0u);
        EXPECT_GT(mostSets(metric, 16384, 16, 2), 0u);
    }
    EXPECT_GT(mostSets(Metric::Cosine, 16384, 8, 1), 0u);
}

TEST(EqualSetsPlan, Bounds) {
    EXPECT_EQ(mostSets(Metric::L2, 1 << 25, 17, 1), kMostGroups);
    EXPECT_EQ(mostSets(Metric::L2, (1 << 25) + 1, 17, 1), 0u) << "too many";
}

} // namespace
} // namespace faiss_bits::test

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
    for (int k : {1, 2, 16, 17, 128, 129}) {
        p.k = k;
        EXPECT_EQ(planFewDimsTop(p, kRoom).has_value(), k <= 128);
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

/// More than sixteen of two and three dimensions, which have no other way but
/// component by component, where there are strips enough.
TEST(FewDimsTopPlan, LongLists) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
        for (int k : {17, 65, 128, 129}) {
            EXPECT_EQ(
                    goesByStrips(problemOf(metric, 92341, 65536, 2, k)),
                    k <= 128);
            EXPECT_EQ(
                    goesByStrips(problemOf(metric, 92341, 65536, 3, k)),
                    k <= 128 && metric != Metric::InnerProduct);
            EXPECT_FALSE(goesByStrips(problemOf(metric, 92341, 65536, 4, k)));
            EXPECT_FALSE(goesByStrips(problemOf(metric, 92341, 65536, 5, k)));
            EXPECT_FALSE(goesByStrips(problemOf(metric, 92341, 16, 2, k)));
        }
        EXPECT_FALSE(goesByStrips(problemOf(metric, 131073, 65536, 2, 65)));
        EXPECT_FALSE(goesByStrips(problemOf(metric, 4096, 8192, 2, 65)));
    }
    EXPECT_FALSE(planFewDimsTop(problemOf(Metric::L2, 9000, 99, 5, 17), kRoom));
}

/// The one nearest by cosine too.
TEST(FewDimsTopPlan, NearestCosine) {
    EXPECT_TRUE(goesByStrips(problemOf(Metric::Cosine, 8191, 13141, 4, 1)));
    EXPECT_TRUE(goesByStrips(problemOf(Metric::Cosine, 8191, 13141, 16, 1)));
    EXPECT_FALSE(goesByStrips(problemOf(Metric::Cosine, 8191, 13141, 17, 1)));
    EXPECT_FALSE(goesByStrips(problemOf(Metric::L2, 8191, 13141, 4, 1)));
}

/// Cells of an H200 with what the other way takes of ordinary data in times of
/// this one's.
TEST(FewDimsTopPlan, MeasuredCells) {
    struct Cell {
        Metric metric;
        int64_t n;
        int64_t q;
        int d;
        int k;
        double gain;
        bool pays;
    };
    constexpr Metric kL2 = Metric::L2;
    constexpr Metric kProduct = Metric::InnerProduct;
    constexpr Metric kCosine = Metric::Cosine;
    constexpr Cell kCells[] = {
            {kL2, 2049, 9141, 2, 5, 3.97, true},
            {kL2, 2049, 9141, 4, 5, 1.91, true},
            {kL2, 2049, 9141, 8, 16, 1.06, false},
            {kL2, 8191, 13141, 2, 16, 5.39, true},
            {kL2, 8191, 13141, 4, 5, 1.44, true},
            {kL2, 8191, 13141, 8, 5, 0.98, false},
            {kL2, 1024, 65536, 2, 5, 3.41, true},
            {kL2, 1024, 65536, 8, 16, 0.74, false},
            {kL2, 1024, 4096, 8, 16, 0.75, false},
            {kL2, 4096, 1024, 4, 2, 1.74, true},
            {kL2, 65536, 1000, 4, 2, 1.70, true},
            {kL2, 65536, 1000, 8, 16, 0.85, false},
            {kL2, 65536, 8192, 2, 16, 9.45, true},
            {kL2, 65536, 8192, 8, 5, 0.66, false},
            {kL2, 131072, 4096, 8, 5, 0.74, false},
            {kProduct, 32768, 65536, 2, 5, 6.74, true},
            {kProduct, 2049, 9141, 4, 5, 1.73, true},
            {kProduct, 16384, 1000, 4, 5, 1.97, true},
            // Where all are equal, each pair has its canonical distance.
            {kProduct, 4096, 1024, 4, 5, 1.56, false},
            {kProduct, 16384, 4096, 8, 5, 0.95, false},
            {kProduct, 65536, 1000, 4, 16, 0.97, false},
            {kCosine, 2049, 9141, 4, 5, 2.91, true},
            {kCosine, 2049, 9141, 8, 5, 2.04, true},
            {kCosine, 8191, 13141, 4, 16, 1.64, true},
            {kCosine, 8191, 13141, 8, 16, 1.04, false},
            {kCosine, 32768, 65536, 8, 5, 0.70, false},
            {kCosine, 32768, 65536, 2, 1, 15.33, true},
            {kCosine, 16384, 16384, 4, 1, 1.48, true},
            {kCosine, 16384, 16384, 8, 1, 0.67, false},
            {kCosine, 65536, 1000, 8, 1, 0.83, false},
            {kCosine, 4096, 32768, 16, 1, 2.53, true},
            {kCosine, 4096, 1024, 16, 1, 0.88, false},
    };
    for (const Cell& c : kCells) {
        EXPECT_EQ(
                fewDimsTopPays(problemOf(c.metric, c.n, c.q, c.d, c.k)), c.pays)
                << c.n << " x " << c.d << ", " << c.q << ", k = " << c.k
                << ", gain " << c.gain;
        EXPECT_TRUE(!c.pays || c.gain > 1);
    }
}

/// Between two of the kernels it is as of the longer vectors.
TEST(FewDimsTopPlan, Dimensions) {
    for (int d : {3, 5, 7, 9, 10, 11, 13, 14, 15}) {
        const int longer = d <= 8 ? d + 1 : d <= 12 ? 12 : 16;
        EXPECT_EQ(
                fewDimsTopMicroseconds(problemOf(Metric::L2, 4096, 999, d, 3)),
                fewDimsTopMicroseconds(
                        problemOf(Metric::L2, 4096, 999, longer, 3)));
    }
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

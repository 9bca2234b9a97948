/// Limits of fused searches, given or from samples, in plans. No CUDA call is
/// made.

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "kernels/knn/FlatKnnPlan.h"

namespace faiss_bits::test {
namespace {

/// Limits that are given take the place of samples and strips, where a fused
/// search is planned at all.
TEST(LimitsPlan, GivenLimits) {
    const float limits[] = {0}; // never read
    FlatKnnProblem p;
    p.numVectors = 100000;
    p.numQueries = 1000;
    p.d = 64;
    p.k = 10;
    p.device.singleToDouble = 32;
    p.limits = limits;
    for (Metric metric : {Metric::L2, Metric::InnerProduct, Metric::L1}) {
        p.metric = metric;
        for (idx_t within : {0, 100, 20000}) {
            p.numWithin = within;
            const FlatKnnPlan plan = planFlatKnn(p, size_t(1) << 30);
            ASSERT_TRUE(plan.fused) << int(metric);
            EXPECT_TRUE(plan.fused->givenLimits);
            EXPECT_EQ(plan.fused->sampling, nullptr);
            EXPECT_EQ(plan.fused->samples, 0u);
            EXPECT_EQ(plan.fused->strips.perRow, 0u);
            EXPECT_GE(plan.fused->capacity, 1.2 * double(within));
            EXPECT_LE(plan.bytes, size_t(1) << 30);
            EXPECT_NE(
                    plan.toString().find("limits are given"),
                    std::string::npos);
        }
    }
    const auto isIgnored = [](const FlatKnnProblem& given) {
        const FlatKnnPlan plan = planFlatKnn(given, size_t(1) << 30);
        return !plan.fused || !plan.fused->givenLimits;
    };
    for (int k : {2049, 10000}) {
        p.k = k;
        EXPECT_TRUE(isIgnored(p)) << k;
    }
    p.k = 10;
    p.numVectors = 1000;
    EXPECT_TRUE(isIgnored(p));
    p.numVectors = 100000;
    p.mode = SearchMode::Plain;
    EXPECT_TRUE(isIgnored(p));
}

/// The definition, summed up from its terms.
TEST(LimitsPlan, RanksOfSamples) {
    for (double k : {1., 2., 10., 100., 2000., 5000.}) {
        for (double share : {1. / 4, 1. / 16, 1. / 128, 1. / 4096}) {
            const uint32_t rank = sampleRank(k, share);
            ASSERT_GE(rank, 1u);
            // Probability that the sample has `rank` or more of k.
            const auto tail = [&](double least) {
                double sum = 0;
                for (double m = least; m <= k; ++m) {
                    sum += std::exp(
                            std::lgamma(k + 1) - std::lgamma(m + 1) -
                            std::lgamma(k - m + 1) + m * std::log(share) +
                            (k - m) * std::log1p(-share));
                }
                return sum;
            };
            if (rank < k) {
                EXPECT_LT(tail(rank), 1.001e-6) << k << " " << share;
                EXPECT_GT(tail(std::max(0., std::floor(0.75 * rank) - 4)), 1e-6)
                        << k << " " << share;
            }
            EXPECT_LE(rank, k);
        }
    }
}

} // namespace
} // namespace faiss_bits::test

/// Certified searches among vectors that are stored cluster by cluster: every
/// place is the canonical one, and no query is searched again that would not be
/// where they are shuffled.

#include <random>

#include "kernels/knn/FlatKnnPlan.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class FusedClusters : public FlatKnnCertified {
   protected:
    /// Vectors of so many clusters in their order, and queries of some of them.
    static void fill(
            const CertifiedCase& c,
            int64_t clusters,
            std::vector<float>& vectors,
            std::vector<float>& queries) {
        std::mt19937 random(unsigned(c.n + c.d + clusters));
        std::uniform_real_distribution<float> uniform(0, 1);
        std::vector<float> centers(clusters * c.d);
        for (float& value : centers) {
            value = uniform(random);
        }
        const auto near = [&](float* to, int64_t cluster) {
            for (int i = 0; i < c.d; ++i) {
                to[i] = centers[cluster * c.d + i] +
                        0.2f * (uniform(random) - 0.5f);
            }
        };
        vectors.resize(c.n * c.d);
        for (int64_t v = 0; v < c.n; ++v) {
            near(&vectors[v * c.d], v * clusters / c.n);
        }
        queries.resize(c.q * c.d);
        for (int64_t i = 0; i < c.q; ++i) {
            near(&queries[i * c.d], i * 7 % clusters);
        }
    }

    void expectClusters(const CertifiedCase& c, int64_t clusters) {
        SCOPED_TRACE(c.describe() + " clusters " + std::to_string(clusters));
        std::vector<float> vectors;
        std::vector<float> queries;
        fill(c, clusters, vectors, queries);
        roundAllTo(c.dataType, vectors);
        roundAllTo(c.dataType, queries);
        const Result result = search(c, vectors, queries);
        check(c, vectors, queries, result, 4);
        // One in a million fails by its limit.
        EXPECT_EQ(result.repeated, 0u);
    }
};

TEST_F(FusedClusters, BySamples) {
    for (Metric metric :
         {Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::L1}) {
        for (int64_t q : {1, 16, 300}) {
            for (int64_t clusters : {5, 100}) {
                for (int d : {20, 70, 300}) {
                    CertifiedCase c =
                            caseOf(CertifiedCase::Direct::Never,
                                   metric,
                                   30001,
                                   q,
                                   d,
                                   50);
                    c.keptImage = true;
                    c.imageInOrder = d == 70;
                    ASSERT_TRUE(planOf(c).fused) << c.describe();
                    expectClusters(c, clusters);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(FusedClusters, ByStrips) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
        for (int k : {10, 100}) {
            for (int64_t n : {2001, 20001}) {
                CertifiedCase c = caseOf(
                        CertifiedCase::Direct::Strips, metric, n, 1200, 40, k);
                ASSERT_TRUE(planOf(c).fused) << c.describe();
                expectClusters(c, 20);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Limits from strips let little more through than k vectors, if the clusters
/// are as small as that, too.
TEST_F(FusedClusters, LimitsOfStripsAreClose) {
    for (int64_t clusters : {16, 64, 256}) {
        CertifiedCase c = caseOf(
                CertifiedCase::Direct::Strips, Metric::L2, 16384, 2000, 64, 32);
        std::vector<float> vectors;
        std::vector<float> queries;
        fill(c, clusters, vectors, queries);
        const Result result = search(c, vectors, queries);
        EXPECT_EQ(result.repeated, 0u);
        EXPECT_LE(result.rescored, 2u * c.k * c.q);
    }
}

/// So do those from strips of a second sample, whose image has the members of a
/// cluster in strips of their own.
TEST_F(FusedClusters, BySecondSample) {
    for (int64_t clusters : {1, 50, 1000}) {
        for (int k : {10, 200}) {
            CertifiedCase c =
                    caseOf(CertifiedCase::Direct::Never,
                           k == 10 ? Metric::L2 : Metric::InnerProduct,
                           530001,
                           600,
                           64,
                           k);
            c.keptImage = true;
            c.imageInOrder = true;
            const FlatKnnPlan plan = planOf(c);
            ASSERT_TRUE(plan.fused) << c.describe();
            ASSERT_GT(plan.fused->secondStrips.perRow, 0u) << c.describe();
            SCOPED_TRACE(
                    c.describe() + " clusters " + std::to_string(clusters));
            std::vector<float> vectors;
            std::vector<float> queries;
            fill(c, clusters, vectors, queries);
            const Result result = search(c, vectors, queries);
            check(c, vectors, queries, result, 2);
            EXPECT_EQ(result.repeated, 0u);
            EXPECT_LE(
                    result.rescored,
                    2u * 16 * plan.fused->secondRank * uint64_t(c.q));
        }
    }
}

TEST_F(FusedClusters, Nearest) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
        for (int64_t n : {3000, 40001}) {
            CertifiedCase c = caseOf(
                    CertifiedCase::Direct::Never, metric, n, 2000, 64, 1);
            ASSERT_TRUE(planOf(c).nearest) << c.describe();
            SCOPED_TRACE(c.describe());
            std::vector<float> vectors;
            std::vector<float> queries;
            fill(c, 30, vectors, queries);
            check(c, vectors, queries, search(c, vectors, queries), 30);
        }
    }
}

TEST_F(FusedClusters, FiltersAndLists) {
    for (int64_t q : {1, 40}) {
        for (int holes : {-1, 3}) {
            CertifiedCase c = caseOf(
                    CertifiedCase::Direct::Never, Metric::L2, 40000, q, 64, 20);
            c.keptImage = true;
            c.imageInOrder = q == 1;
            c.allowedOf = 4;
            c.holes = holes;
            SCOPED_TRACE(c.describe());
            std::vector<float> vectors;
            std::vector<float> queries;
            fill(c, 50, vectors, queries);
            check(c, vectors, queries, search(c, vectors, queries), 8);
        }
    }
}

} // namespace
} // namespace faiss_bits::test

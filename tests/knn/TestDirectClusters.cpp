/// Searches by the canonical distances of all pairs among vectors that are
/// stored cluster by cluster, and the runs that deal these to all groups.

#include <optional>
#include <random>

#include "kernels/knn/direct/DirectSpread.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class DirectClusters : public FlatKnnCertified {
   protected:
    static CertifiedCase of(Metric metric, int64_t n, int64_t q, int d, int k) {
        return caseOf(Direct::Always, metric, n, q, d, k);
    }
};

/// Every place has a number of its own.
TEST(DirectNumbers, AreOfOnePlaceEach) {
    for (uint32_t groups : {1u, 2u, 3u, 33u, 100u}) {
        for (uint32_t logUnits = 0; logUnits <= kDirectLogUnit; ++logUnits) {
            for (uint32_t logRun = 0; logRun <= kDirectLogUnit; ++logRun) {
                DirectKeys keys;
                keys.groups = groups;
                keys.logUnits = logUnits;
                keys.logRun = logRun;
                const uint32_t units = groups << logUnits;
                const uint32_t places = units * kDirectUnit;
                std::vector<bool> seen(places);
                for (uint32_t place = 0; place < places; ++place) {
                    const uint32_t number = directNumber(keys, place);
                    ASSERT_LT(number, places);
                    EXPECT_FALSE(seen[number]);
                    seen[number] = true;
                    if (logRun == kDirectLogUnit) {
                        ASSERT_EQ(number, place);
                        continue;
                    }
                    // Runs of so many, one from each part of the vectors; and
                    // units of a group from each part of the units.
                    const uint32_t unit = (number >> logRun) % units;
                    EXPECT_EQ(unit % groups, place / kDirectUnit >> logUnits);
                    EXPECT_EQ(number % (1u << logRun), place % (1u << logRun));
                }
            }
        }
    }
}

/// Vectors stored cluster by cluster, so that the best of a query are side by
/// side.
TEST_F(DirectClusters, OfEverySize) {
    constexpr int64_t kVectors = 100003;
    for (auto [d, k] : std::vector<std::pair<int, int>>{
                 {3, 10},
                 {7, 600},
                 {16, 100},
                 {16, 1500},
                 {33, 1000},
                 {48, 2048},
                 {70, 600}}) {
        for (DataType type : {DataType::Float32, DataType::Float16}) {
            for (int64_t clusters : {3, 60, 2500}) {
                const int64_t q = clusters == 60 ? 2 : 1;
                CertifiedCase c = of(Metric::L2, kVectors, q, d, k);
                c.dataType = type;
                std::vector<float> vectors(c.n * c.d);
                std::mt19937 random(unsigned(d * clusters));
                // What float16 holds.
                std::uniform_int_distribution<int> center(0, 200);
                std::uniform_int_distribution<int> off(-9, 9);
                std::vector<float> centers(clusters * d);
                for (float& value : centers) {
                    value = float(center(random));
                }
                const auto fill = [&](float* to, int64_t cluster) {
                    for (int i = 0; i < d; ++i) {
                        to[i] = centers[cluster * d + i] + float(off(random));
                    }
                };
                for (int64_t v = 0; v < c.n; ++v) {
                    fill(&vectors[v * d], v * clusters / c.n);
                }
                std::vector<float> queries(c.q * d);
                for (int64_t i = 0; i < c.q; ++i) {
                    fill(&queries[i * d], clusters / (2 + i));
                }
                ASSERT_TRUE(planOf(c).direct) << c.describe();
                check(c, vectors, queries, search(c, vectors, queries));
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Several blocks finish a query of which each finds more than it keeps: all
/// have as many of the best, or one has them all.
TEST_F(DirectClusters, SmallOfSeveralBlocks) {
    const int k = 520;
    CertifiedCase c = of(Metric::L2, 70000, 1, 16, k);
    const std::optional<DirectPlan> plan = planOf(c).direct;
    if (!plan || !plan->spread) {
        GTEST_SKIP() << "one block finishes a query of a GPU as small as this";
    }
    const int64_t units = int64_t(plan->groups) << plan->logUnits;
    const std::vector<float> queries(c.d, 0.0f);
    std::vector<float> vectors(c.n * c.d);
    for (bool inOneBlock : {false, true}) {
        for (int64_t v = 0; v < c.n; ++v) {
            const int64_t unit = (v >> plan->logRun) % units;
            const bool isNear = inOneBlock ? unit % kSpreadBlocks == 7
                                           : v >= 30000 && v < 32500;
            std::fill_n(
                    vectors.begin() + v * c.d,
                    c.d,
                    (isNear ? 1.0f : 50.0f) + float(v * 7919 % 1000) / 1000);
        }
        check(c, vectors, queries, search(c, vectors, queries));
    }
}

} // namespace
} // namespace faiss_bits::test

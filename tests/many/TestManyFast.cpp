/// Fast mode over several parts: what it promises of one index.

#include <algorithm>
#include <cmath>

#include "kernels/common/DeviceTraits.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/many/ManyHarness.h"

namespace faiss_bits::test {
namespace {

constexpr int kDim = 64;
/// Of each of two parts: so many that a pass answers by itself.
constexpr int64_t kPart = 40000;
constexpr int64_t kQueries = 200;
constexpr int kNearest = 20;

/// Components in [0, 1).
std::vector<float> unitVectors(int64_t n, uint32_t seed) {
    auto values = makeVectors(n, kDim, seed);
    for (float& value : values) {
        value = std::abs(value);
    }
    return values;
}

class ManyFast : public GpuTest {
   protected:
    /// Twice what roundings to float16 can make of uniform vectors: for L2 both
    /// factors of a product are within the root of d / 2 (a center is taken
    /// off), for inner products one is twice as long.
    static constexpr double kBound = 2 * 0x1p-9 * kDim / 4;

    static double distance(
            faiss::MetricType metric,
            const float* query,
            const float* vector) {
        return canonicalDistance64(
                metric == faiss::METRIC_L2 ? Metric::L2 : Metric::InnerProduct,
                0,
                query,
                vector,
                kDim);
    }

    /// Distances, places and the i-th distances are near the true ones, and
    /// some are not canonical where a pass answers by itself. ofPart: queries
    /// that a part searches for.
    static void expectFast(
            const gpu::GpuIndexBitsMany& index,
            const std::vector<float>& vectors,
            const std::vector<float>& queries,
            int64_t ofPart) {
        const int64_t n = index.ntotal;
        const double sign = index.metric_type == faiss::METRIC_L2 ? 1 : -1;
        const auto out = searchOnHost(index, queries, kNearest);
        const auto* part = dynamic_cast<const GpuIndexBitsFlat*>(index.at(0));
        ASSERT_TRUE(part);
        const gpu::GpuSearchPlan plan = part->plan(ofPart, kNearest);
        const bool isByPass =
                plan.method == "fused_tensor" && plan.candidates == 0;
        EXPECT_EQ(isByPass, deviceTraits().computeCapability == 90)
                << plan.toString();
        bool isCanonical = true;
        for (int64_t q = 0; q < kQueries; q += 19) {
            std::vector<double> keys(n);
            for (int64_t v = 0; v < n; ++v) {
                keys[v] = sign *
                        distance(index.metric_type,
                                 &queries[q * kDim],
                                 &vectors[v * kDim]);
            }
            std::vector<double> nearest = keys;
            std::partial_sort(
                    nearest.begin(), nearest.begin() + kNearest, nearest.end());
            std::vector<bool> in(n);
            for (int place = 0; place < kNearest; ++place) {
                const int64_t at = q * kNearest + place;
                const int64_t id = out.labels[at];
                ASSERT_TRUE(id >= 0 && id < n && !in[id])
                        << "query " << q << " place " << place << ": " << id;
                in[id] = true;
                const double key = sign * double(out.distances[at]);
                EXPECT_NEAR(key, keys[id], kBound) << "query " << q;
                EXPECT_NEAR(key, nearest[place], kBound) << "query " << q;
                isCanonical &= float(key) == float(keys[id]);
                if (place > 0) {
                    const double before = sign * double(out.distances[at - 1]);
                    EXPECT_TRUE(
                            before < key ||
                            (before == key && out.labels[at - 1] < id))
                            << "query " << q << " place " << place;
                }
            }
        }
        EXPECT_EQ(isCanonical, !isByPass);
    }
};

TEST_F(ManyFast, Shards) {
    const auto vectors = unitVectors(2 * kPart, 1);
    const auto queries = unitVectors(kQueries, 2);
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (const auto& config : waysOf()) {
            SCOPED_TRACE(
                    ::testing::Message()
                    << "metric " << int(metric) << ", " << nameOfWay(config));
            GpuIndexBitsShards shards(placesOf(2), kDim, metric, config);
            shards.search_mode = SearchMode::Fast;
            shards.add(2 * kPart, vectors.data());
            expectFast(shards, vectors, queries, kQueries);
        }
    }
}

TEST_F(ManyFast, Replicas) {
    const auto vectors = unitVectors(kPart, 1);
    const auto queries = unitVectors(kQueries, 2);
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (const auto& config : waysOf()) {
            SCOPED_TRACE(
                    ::testing::Message()
                    << "metric " << int(metric) << ", " << nameOfWay(config));
            GpuIndexBitsReplicas replicas(placesOf(2), kDim, metric, config);
            replicas.search_mode = SearchMode::Fast;
            replicas.add(kPart, vectors.data());
            expectFast(replicas, vectors, queries, kQueries / 2);
        }
    }
}

/// Fifteen queries for each of two replicas: fewer than a pass answers.
TEST_F(ManyFast, FewQueriesOfAReplica) {
    const auto vectors = unitVectors(kPart, 1);
    const auto queries = unitVectors(30, 2);
    auto config = smallConfig();
    config.joinSameDevice = false;
    ReplicasCase c(placesOf(2), kDim, faiss::METRIC_L2, vectors, config);
    c.many.search_mode = SearchMode::Fast;
    c.expectSame(queries, kNearest);
}

} // namespace
} // namespace faiss_bits::test

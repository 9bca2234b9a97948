/// Shards that share one limit a query: the bits of one index, whatever the
/// sample says that the limits are made of.

#include <algorithm>
#include <cmath>

#include <faiss/impl/IDSelector.h>

#include "faiss_bits/flat/SearchWithin.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "tests/many/ManyHarness.h"

namespace faiss_bits::test {
namespace {

constexpr int kDims = 16;
constexpr int64_t kShard = 9000; // enough for limits
constexpr int64_t kQueries = 600;
/// From so many on limits serve shards that are together, and those of which
/// each is apart or on a device of its own.
constexpr int64_t kLeastTogether = 512;
constexpr int64_t kLeastApart = 2048;

class ManyLimits : public GpuTest {
   protected:
    /// Candidates that all shards have scored since they were asked last.
    static int64_t rescored(const ShardsCase& c) {
        int64_t sum = 0;
        for (int i = 0; i < c.many.count(); ++i) {
            auto& shard = const_cast<GpuIndexBitsFlat&>(
                    dynamic_cast<const GpuIndexBitsFlat&>(*c.many.at(i)));
            sum += shard.stats().rescored;
            shard.reset_stats();
        }
        return sum;
    }

    /// Components of the first dimension in the order of the vectors.
    static std::vector<float> inOrder(int64_t n, uint32_t seed) {
        auto vectors = makeVectors(n, kDims, seed);
        for (int64_t i = 0; i < n; ++i) {
            vectors[i * kDims] = 30.f * float(i) / float(n);
        }
        return vectors;
    }
};

TEST_F(ManyLimits, AreUsed) {
    const int64_t n = 8 * 16384;
    ShardsCase c(placesOf(8), 32, faiss::METRIC_L2, makeVectors(n, 32, 1));
    const auto queries = makeVectors(kQueries, 32, 2);
    for (int64_t k : {10, 100}) {
        rescored(c);
        searchOnDevice(c.many, queries, k);
        const double expected = sampleRank(double(k), 1. / 16) * 16.;
        const double perQuery = double(rescored(c)) / kQueries;
        EXPECT_GT(perQuery, k) << k;
        EXPECT_LT(perQuery, 1.5 * expected) << k;
    }
    // Too few queries, and k beyond what limits are for.
    searchOnDevice(c.many, makeVectors(100, 32, 2), 100);
    EXPECT_GT(double(rescored(c)) / 100, 1.5 * sampleRank(100, 1. / 16) * 16);
}

/// Queries of 16 bits are cut into pages on the device, too.
TEST_F(ManyLimits, QueriesOfEveryPageHaveTheirOwn) {
    constexpr int d = 4096;
    constexpr int64_t q = 8200; // one page has 8,192
    constexpr int64_t k = 5;
    constexpr int64_t last = 8;
    GpuIndexBitsFlat index(
            sharedResources(),
            d,
            faiss::METRIC_L2,
            configOf(DataType::Float16));
    index.add(kShard, makeVectors(kShard, d, 1).data());
    const auto queries = makeVectors(q, d, 2);
    std::vector<float> limits(q, 0.f); // nothing is so near
    std::fill(limits.end() - last, limits.end(), HUGE_VALF);

    const DeviceBuffer<float> x(queries);
    const DeviceBuffer<float> limitsThere(limits);
    const DeviceBuffer<float> distances(q * k);
    const DeviceBuffer<int64_t> labels(q * k);
    gpu::detail::SearchWithin within;
    within.limits = limitsThere.data();
    index.search(q, x.data(), k, distances.data(), labels.data(), &within);
    const std::vector<int64_t> found = labels.download();
    for (int64_t i = 0; i < (q - last) * k; ++i) {
        ASSERT_EQ(found[i], -1) << "query " << i / k;
    }
    const SearchOutput want = searchOnHost(
            index,
            std::vector<float>(queries.end() - last * d, queries.end()),
            k);
    EXPECT_EQ(
            std::vector<int64_t>(found.end() - last * k, found.end()),
            want.labels);
}

TEST_F(ManyLimits, EveryMetricIsOneIndex) {
    for (const ManyMetric& metric : manyMetrics<faiss::MetricType>()) {
        SCOPED_TRACE(::testing::Message() << "metric " << int(metric.type));
        const ShardsCase c(
                placesOf(2),
                kDims,
                metric.type,
                positiveVectors(2 * kShard, kDims, 1),
                smallConfig(),
                metric.arg);
        c.expectSame(positiveVectors(kQueries, kDims, 2), 10);
    }
}

TEST_F(ManyLimits, EveryWayAndK) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (const auto& config : waysOf()) {
            SCOPED_TRACE(
                    ::testing::Message()
                    << "metric " << int(metric) << " " << nameOfWay(config));
            const ShardsCase c(
                    placesOf(5),
                    kDims,
                    metric,
                    makeVectors(5 * kShard, kDims, 1),
                    config);
            const int64_t least =
                    config.joinSameDevice ? kLeastTogether : kLeastApart;
            for (int64_t k : {1, 10, 300, 2000, 2049}) {
                c.expectSame(makeVectors(least, kDims, 2), k);
            }
            c.expectSame(makeVectors(least - 1, kDims, 2), 10);
        }
    }
}

TEST_F(ManyLimits, EveryStorage) {
    for (DataType storage : kStorages) {
        const ShardsCase c(
                placesOf(3),
                kDims,
                faiss::METRIC_L2,
                makeVectors(3 * kShard, kDims, 1),
                smallConfig(storage));
        c.expectSame(makeVectors(kQueries, kDims, 2), 100);
    }
    auto config = smallConfig();
    config.keepSearchImage = false;
    const ShardsCase c(
            placesOf(3),
            kDims,
            faiss::METRIC_L2,
            makeVectors(3 * kShard, kDims, 1),
            config);
    c.expectSame(makeVectors(kQueries, kDims, 2), 100);
}

TEST_F(ManyLimits, HardVectors) {
    for (Hard kind : kHard) {
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            SCOPED_TRACE(
                    ::testing::Message()
                    << "kind " << int(kind) << " metric " << int(metric));
            const ShardsCase c(
                    placesOf(2),
                    kDims,
                    metric,
                    makeHard(kind, 2 * kShard, kDims, 5));
            c.expectSame(makeHard(kind, kQueries, kDims, 6), 10);
            c.expectSame(makeHard(kind, kQueries, kDims, 6), 120);
        }
    }
}

TEST_F(ManyLimits, TiesOverTheBorders) {
    const int d = 2; // 81 different vectors
    const ShardsCase c(
            placesOf(3),
            d,
            faiss::METRIC_L2,
            makeVectors(3 * kShard, d, 3, Fill::Integers));
    const auto queries = makeVectors(kQueries, d, 4, Fill::Integers);
    c.expectSame(queries, 1);
    c.expectSame(queries, 500);
    const ShardsCase equal(
            placesOf(2), 4, faiss::METRIC_L2, std::vector<float>(80000, 1.5f));
    equal.expectSame(makeVectors(kQueries, 4, 1), 20);
}

/// The best of a query are in one shard: its lists hold them all.
TEST_F(ManyLimits, VectorsInOrder) {
    const ShardsCase c(
            placesOf(8), kDims, faiss::METRIC_L2, inOrder(8 * kShard, 1));
    const auto queries = inOrder(kQueries, 2);
    for (int run = 0; run < 3; ++run) {
        c.expectSame(queries, 10);
        c.expectSame(queries, 300);
    }
}

/// Vectors near the queries of which the sample has none, or hardly any others:
/// limits too far, and too close, for a few queries and for all.
TEST_F(ManyLimits, SamplesThatMislead) {
    for (int64_t odd : {1, 64, 65, 600}) {
        auto queries = makeVectors(kQueries, kDims, 2);
        auto vectors = makeVectors(3 * kShard, kDims, 1);
        for (int64_t i = 0; i < odd; ++i) {
            // Of each of these, five vectors are near, and no others.
            for (int j = 0; j < kDims; ++j) {
                float& x = queries[i * kDims + j];
                x = 100 + 10 * x + float(i);
                for (int64_t near = 0; near < 5; ++near) {
                    vectors[(17 + 40 * i + near) * kDims + j] =
                            x + 1e-2f * float(near);
                }
            }
        }
        const ShardsCase c(placesOf(3), kDims, faiss::METRIC_L2, vectors);
        for (int64_t k : {5, 6, 200}) {
            c.expectSame(queries, k);
        }
    }
}

TEST_F(ManyLimits, QueriesThatAreNoNumbers) {
    auto queries = makeVectors(kQueries, kDims, 2);
    queries[3] = std::nanf("");
    queries[5 * kDims] = HUGE_VALF;
    queries[7 * kDims] = -HUGE_VALF;
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const ShardsCase c(
                placesOf(2), kDims, metric, makeVectors(2 * kShard, kDims, 1));
        c.expectSame(queries, 10);
    }
}

/// Fewer numbers than k in all shards, and in some.
TEST_F(ManyLimits, FewNumbers) {
    for (int64_t numbers : {3, 5000}) {
        auto vectors = makeVectors(2 * kShard, kDims, 1);
        for (int64_t i = numbers; i < 2 * kShard; ++i) {
            vectors[i * kDims + i % kDims] = std::nanf("");
        }
        const ShardsCase c(placesOf(2), kDims, faiss::METRIC_L2, vectors);
        c.expectSame(makeVectors(kQueries, kDims, 2), 40);
    }
}

/// The sample is of the vectors that were there, and is drawn again when they
/// are many more, or others.
TEST_F(ManyLimits, VectorsThatCome) {
    ShardsCase c(
            placesOf(3),
            kDims,
            faiss::METRIC_L2,
            makeVectors(3 * kShard, kDims, 1));
    const auto queries = makeVectors(kQueries, kDims, 2);
    c.expectSame(queries, 50);
    for (int64_t more : {100, 2000, 9000}) {
        // Nearer to all queries than the others.
        auto vectors = makeVectors(more, kDims, uint32_t(more));
        for (float& x : vectors) {
            x *= 0.1f;
        }
        c.add(vectors);
        c.expectSame(queries, 50);
    }
    c.many.reset();
    c.one.reset();
    c.expectSame(queries, 5);
    auto vectors = makeVectors(c.many.count() * kShard, kDims, 8);
    for (float& x : vectors) {
        x += 100;
    }
    c.add(vectors);
    c.expectSame(queries, 50);
}

TEST_F(ManyLimits, FiltersAndPlainSearchesGoWithout) {
    ShardsCase c(
            placesOf(2),
            kDims,
            faiss::METRIC_L2,
            makeVectors(2 * kShard, kDims, 1, Fill::Integers));
    const auto queries = makeVectors(kQueries, kDims, 2, Fill::Integers);
    c.expectSame(queries, 10);
    faiss::IDSelectorRange some(5, 12000);
    faiss::SearchParameters params;
    params.sel = &some;
    c.expectSame(queries, 10, &params);
    c.many.search_mode = SearchMode::Plain;
    c.one.search_mode = SearchMode::Plain;
    c.expectSame(queries, 10);
}

TEST_F(ManyLimits, MetricArgumentsThatChange) {
    ShardsCase c(
            placesOf(2),
            kDims,
            faiss::METRIC_Lp,
            makeVectors(2 * kShard, kDims, 1),
            smallConfig(),
            3);
    const auto queries = makeVectors(kQueries, kDims, 2);
    c.expectSame(queries, 10);
    c.many.metric_arg = c.one.metric_arg = 1.5f;
    c.expectSame(queries, 10);
}

TEST_F(ManyLimits, OverSeveralDevices) {
    if (numDevices() < 2) {
        GTEST_SKIP() << "one CUDA device";
    }
    for (bool peers : {true, false}) {
        auto config = smallConfig();
        config.usePeerAccess = peers;
        for (int devices : severalDevices()) {
            for (int shards : {devices, devices + 1, 8}) {
                SCOPED_TRACE(
                        ::testing::Message() << shards << " shards, " << devices
                                             << " devices, peers " << peers);
                const ShardsCase c(
                        placesOf(shards, devices),
                        kDims,
                        faiss::METRIC_L2,
                        inOrder(shards * kShard, 1),
                        config);
                const auto queries = inOrder(kLeastApart + 1, 2);
                for (int run = 0; run < 3; ++run) {
                    c.expectSame(queries, 10);
                    c.expectSame(queries, 300);
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test

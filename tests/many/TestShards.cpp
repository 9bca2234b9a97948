/// GpuIndexBitsShards: the bits of one index, whatever the number of shards.

#include "tests/many/ManyHarness.h"

namespace faiss_bits::test {
namespace {

constexpr int kCounts[] = {1, 2, 3, 8};

class Shards : public GpuTest {};

TEST_F(Shards, SmallEveryMetricIsOneIndexAndTheOracle) {
    const int d = 9;
    const int64_t n = 203;
    const auto vectors = positiveVectors(n, d, 1);
    for (const ManyMetric& metric : manyMetrics<faiss::MetricType>()) {
        for (int count : kCounts) {
            const ShardsCase c(
                    placesOf(count),
                    d,
                    metric.type,
                    vectors,
                    smallConfig(),
                    metric.arg);
            for (int64_t q : {1, 20}) {
                const auto queries = positiveVectors(q, d, 2);
                for (int64_t k : {1, 40, 250}) { // beyond a shard, beyond all
                    SCOPED_TRACE(
                            ::testing::Message()
                            << "metric " << int(metric.type) << " shards "
                            << count << " q " << q << " k " << k);
                    c.expectSame(queries, k);
                    const auto out = searchOnHost(c.many, queries, k);
                    const bool largest = isSimilarity(metric.ours);
                    for (int64_t i = 0; i < q; ++i) {
                        ASSERT_TRUE(isCanonical(
                                canonicalTopK(
                                        metric.ours,
                                        metric.arg,
                                        queries.data() + i * d,
                                        vectors.data(),
                                        n,
                                        d,
                                        k),
                                largest,
                                out.distances.data() + i * k,
                                out.labels.data() + i * k,
                                k));
                    }
                }
            }
        }
    }
}

TEST_F(Shards, SmallTiesOverTheBorders) {
    const int d = 2; // 81 different vectors
    const auto vectors = makeVectors(1000, d, 3, Fill::Integers);
    const auto queries = makeVectors(30, d, 4, Fill::Integers);
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (int count : kCounts) {
            for (const auto& config : waysOf()) {
                SCOPED_TRACE(
                        ::testing::Message()
                        << count << " " << nameOfWay(config));
                const ShardsCase c(placesOf(count), d, metric, vectors, config);
                c.expectSame(queries, 1);
                c.expectSame(queries, 150);
                c.expectSame(queries, 1200);
            }
        }
    }
}

TEST_F(Shards, SmallAllEqual) {
    const std::vector<float> vectors(300 * 4, 1.5f);
    const ShardsCase c(placesOf(3), 4, faiss::METRIC_L2, vectors);
    c.expectSame(makeVectors(5, 4, 1), 120);
}

TEST_F(Shards, SmallHardVectors) {
    const int d = 12;
    for (Hard kind : kHard) {
        const auto vectors = makeHard(kind, 500, d, 5);
        auto queries = makeHard(kind, 20, d, 6);
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            for (int count : {3, 8}) {
                SCOPED_TRACE(
                        ::testing::Message()
                        << "kind " << int(kind) << " shards " << count
                        << " metric " << int(metric));
                const ShardsCase c(placesOf(count), d, metric, vectors);
                c.expectSame(queries, 10);
                c.expectSame(queries, 600);
            }
        }
    }
}

/// A shard that is shorter than k must not put empty places before infinities
/// of another.
TEST_F(Shards, SmallInfinitiesAreBeforeEmptyPlaces) {
    const int d = 3;
    std::vector<float> vectors(12 * d, 0.f);
    for (int i = 6; i < 12; ++i) {
        vectors[i * d] = HUGE_VALF;
    }
    vectors[3 * d + 1] = std::nanf("");
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (int count : kCounts) {
            const ShardsCase c(placesOf(count), d, metric, vectors);
            c.expectSame(std::vector<float>(d, 1.f), 12);
            c.expectSame(std::vector<float>(d, -1.f), 12);
        }
    }
}

TEST_F(Shards, SmallEveryStorage) {
    const int d = 24;
    const auto vectors = makeVectors(400, d, 7);
    for (DataType storage : kStorages) {
        for (const auto& config : waysOf(smallConfig(storage))) {
            const ShardsCase c(
                    placesOf(3), d, faiss::METRIC_L2, vectors, config);
            c.expectSame(makeVectors(20, d, 8), 30);
        }
    }
}

TEST_F(Shards, SmallEmptyShardsAndEmptyIndex) {
    const int d = 5;
    ShardsCase c(placesOf(8), d, faiss::METRIC_L2, {});
    const auto queries = makeVectors(4, d, 1);
    c.expectSame(queries, 3);
    c.add(makeVectors(2, d, 2));
    c.expectSame(queries, 3);
    EXPECT_EQ(c.many.shardSize(7), 0);
}

TEST_F(Shards, SmallManyAdditions) {
    const int d = 6;
    for (int least : {1, 16}) {
        for (auto config : waysOf()) {
            config.leastPiece = least;
            ShardsCase c(placesOf(3), d, faiss::METRIC_L2, {}, config);
            int seed = 0;
            for (int64_t n : {50, 1, 1, 7, 120, 2, 33}) {
                c.add(makeVectors(n, d, ++seed, Fill::Integers));
            }
            EXPECT_FALSE(::testing::Test::HasFatalFailure());
            const auto queries = makeVectors(25, d, 99, Fill::Integers);
            c.expectSame(queries, 1);
            c.expectSame(queries, 100);
            for (idx_t key = 0; key < c.many.ntotal; key += 5) {
                std::vector<float> got(d), want(d);
                c.many.reconstruct(key, got.data());
                c.one.reconstruct(key, want.data());
                ASSERT_EQ(got, want) << key;
            }
            std::vector<float> got(100 * d), want(100 * d);
            c.many.reconstruct_n(30, 100, got.data());
            c.one.reconstruct_n(30, 100, want.data());
            EXPECT_EQ(got, want);

            faiss::IndexFlat cpu(1);
            c.many.copyTo(&cpu);
            ASSERT_EQ(cpu.ntotal, c.many.ntotal);
            std::vector<float> all(cpu.ntotal * d);
            c.one.reconstruct_n(0, cpu.ntotal, all.data());
            EXPECT_EQ(
                    std::vector<float>(cpu.get_xb(), cpu.get_xb() + all.size()),
                    all);

            c.many.reset();
            c.one.reset();
            EXPECT_EQ(c.many.ntotal, 0);
            c.add(makeVectors(90, d, 50));
            c.expectSame(queries, 10);
        }
    }
}

/// Plain searches: where the arithmetic is exact they are one index's too.
TEST_F(Shards, SmallPlainOfIntegers) {
    const int d = 8;
    ShardsCase c(
            placesOf(3),
            d,
            faiss::METRIC_L2,
            makeVectors(500, d, 1, Fill::Integers));
    c.many.search_mode = SearchMode::Plain;
    c.one.search_mode = SearchMode::Plain;
    for (int64_t q : {1, 40}) {
        c.expectSame(makeVectors(q, d, 2, Fill::Integers), 50);
    }
}

/// So few results are merged on one device, and one more a query on each.
TEST_F(Shards, SmallEdgesOfOnePlace) {
    const int d = 5;
    const auto queries = makeVectors(512, d, 2, Fill::Integers);
    for (const auto& config : waysOf()) {
        SCOPED_TRACE(nameOfWay(config));
        ShardsCase c(
                placesOf(3),
                d,
                faiss::METRIC_L2,
                makeVectors(700, d, 1, Fill::Integers),
                config);
        for (int64_t k : {511, 512, 513}) {
            c.expectSame(queries, k);
        }
        c.add(makeVectors(100, d, 3, Fill::Integers)); // several segments
        c.expectSame(queries, 512);
    }
}

/// Several pages of host arrays, batches of queries, and fewer queries than
/// devices.
TEST_F(Shards, LargerShapes) {
    const int d = 32;
    const auto vectors = makeVectors(20000, d, 1);
    for (const auto& config : waysOf()) {
        const ShardsCase c(placesOf(3), d, faiss::METRIC_L2, vectors, config);
        for (int64_t q : {1, 2, 17, 5000}) {
            SCOPED_TRACE(::testing::Message() << q << nameOfWay(config));
            c.expectSame(makeVectors(q, d, 2), 100);
        }
        c.expectSame(makeVectors(2500, d, 3), 2000);
        c.expectSame(makeVectors(3, d, 4), 15000);
    }
}

/// Shards that are asked for little more than their share of the best have all
/// of them, for every query.
TEST_F(Shards, BestOfOneShardAreFound) {
    const int d = 16;
    const int64_t n = 8000;
    auto vectors = makeVectors(n, d, 1);
    for (int64_t i = 0; i < n; ++i) {
        vectors[i * d] = 30.f * float(i) / float(n); // neighbours by number
    }
    auto queries = makeVectors(600, d, 2);
    for (int64_t i = 0; i < 600; ++i) {
        queries[i * d] = 30.f * float(i) / 600.f;
    }
    for (const auto& config : waysOf()) {
        const ShardsCase c(placesOf(8), d, faiss::METRIC_L2, vectors, config);
        ASSERT_LT(c.many.shardK(0, 600, 300), 100);
        for (int run = 0; run < 3; ++run) { // the next ones know
            c.expectSame(queries, 300);
        }
        c.expectSame(queries, 2000);
    }
}

/// The same for a few queries among many, which are searched again alone.
TEST_F(Shards, BestOfOneShardAreFoundForAFewQueries) {
    const int d = 16;
    const int64_t n = 8000;
    for (int odd : {1, 40, 64, 65}) {
        auto vectors = makeVectors(n, d, 1);
        auto queries = makeVectors(1200, d, 2);
        for (int i = 0; i < odd; ++i) { // all near one place, in one shard
            std::fill_n(
                    queries.begin() + (i * 13 + 5) * d, d, 40.f + i * 1e-3f);
        }
        for (int64_t i = 2100; i < 2700; ++i) {
            for (int j = 0; j < d; ++j) {
                vectors[i * d + j] += 40;
            }
        }
        for (const auto& config : waysOf()) {
            const ShardsCase c(
                    placesOf(8), d, faiss::METRIC_L2, vectors, config);
            ASSERT_LT(c.many.shardK(3, 1200, 250), 100);
            EXPECT_EQ(c.many.shardK(3, 100, 250), 250);
            c.expectSame(queries, 250);
            c.expectSame(queries, 250);
        }
    }
}

TEST_F(Shards, SmallAddFromTheDevice) {
    const int d = 7;
    const auto vectors = makeVectors(100, d, 1);
    const DeviceBuffer<float> onDevice(vectors);
    for (const auto& config : waysOf()) {
        ShardsCase c(placesOf(3), d, faiss::METRIC_L2, {}, config);
        c.many.add(100, onDevice.data());
        c.one.add(100, vectors.data());
        c.expectSame(makeVectors(9, d, 2), 20);
    }
}

TEST_F(Shards, SmallOfACpuIndex) {
    faiss::IndexFlat cpu(5, faiss::METRIC_Lp);
    cpu.metric_arg = 3;
    const auto vectors = makeVectors(80, 5, 1);
    cpu.add(80, vectors.data());
    const GpuIndexBitsShards many(placesOf(3), &cpu, smallConfig());
    const GpuIndexBitsFlat one(sharedResources(), &cpu);
    EXPECT_EQ(many.metric_arg, 3);
    EXPECT_EQ(many.count(), 3);
    EXPECT_EQ(many.shardSize(0) + many.shardSize(1) + many.shardSize(2), 80);
    EXPECT_EQ(many.shardDevice(1), 0);
    const auto queries = makeVectors(6, 5, 2);
    EXPECT_TRUE(sameOutput(
            searchOnHost(many, queries, 9), searchOnHost(one, queries, 9)));
}

} // namespace
} // namespace faiss_bits::test

/// GpuIndexBitsMetricSpaceShards: the answers of brute force and of one device,
/// whatever the devices and the stages.

#include "faiss_bits/many/GpuIndexBitsMetricSpaceShards.h"
#include "faiss_bits/metric_space/GpuIndexBitsListOfClusters.h"
#include "faiss_bits/metric_space/GpuIndexBitsSSS.h"
#include "faiss_bits/metric_space/IndexListOfClusters.h"
#include "faiss_bits/metric_space/IndexSSS.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/many/ManyHarness.h"
#include "tests/metric_space/MetricIndexSuite.h"

namespace faiss_bits::test {
namespace {

using gpu::GpuIndexBitsListOfClusters;
using gpu::GpuIndexBitsMetricSpace;
using gpu::GpuIndexBitsMetricSpaceShards;
using gpu::GpuIndexBitsSSS;
using gpu::RangeStages;

constexpr RangeStages kStages[] = {
        RangeStages::One,
        RangeStages::OneAndAHalf,
        RangeStages::Two};

class GpuMetricSpaceShards : public GpuTest {};

class SeveralDevicesMetricSpaceShards : public SeveralDevicesTest {};

/// One of each kind, with the vectors of a case.
std::vector<std::unique_ptr<GpuIndexBitsMetricSpace>> indexesOf(
        const MetricCase& c,
        int bucketSize = 16) {
    const auto metric = faissMetric(c.metric);
    std::vector<std::unique_ptr<GpuIndexBitsMetricSpace>> indexes;
    indexes.push_back(std::make_unique<GpuIndexBitsListOfClusters>(
            sharedResources(), c.d, metric, bucketSize));
    indexes.push_back(std::make_unique<GpuIndexBitsSSS>(
            sharedResources(), c.d, metric, 0.3));
    for (auto& index : indexes) {
        index->add(c.n(), c.vectors.data());
    }
    return indexes;
}

void expectShards(
        const MetricCase& c,
        const DeviceList& places,
        const GpuIndexBitsManyConfig& config = {}) {
    for (const auto& index : indexesOf(c)) {
        GpuIndexBitsMetricSpaceShards shards(places, index.get(), config);
        for (const RangeStages stages : kStages) {
            SCOPED_TRACE(
                    ::testing::Message()
                    << "stages " << int(stages) << ", " << places.size()
                    << " shards " << nameOfWay(config));
            shards.stages = stages;
            for (const float radius : radiiOf(c)) {
                EXPECT_TRUE(isSame(
                        rangeOfIndex(shards, c, radius), plainRange(c, radius)))
                        << c.name << ", radius " << radius;
            }
        }
        for (const idx_t k : {idx_t(1), idx_t(7), c.n() + 2}) {
            KnnAnswer got(c, k);
            shards.search(
                    c.numQueries(),
                    c.queries.data(),
                    k,
                    got.distances.data(),
                    got.ids.data());
            EXPECT_TRUE(isSameKnn(c, k, got)) << c.name << ", k = " << k;
        }
    }
}

TEST_F(GpuMetricSpaceShards, AnswersAreThoseOfBruteForce) {
    for (const Metric metric : kTrueMetrics) {
        for (const MetricCase& c : metricCases(metric, 300, 5)) {
            expectShards(c, placesOf(3));
        }
    }
}

/// More slices of queries than one, and devices that are apart.
TEST_F(GpuMetricSpaceShards, EveryWayAndNumberOfShards) {
    for (const int kind : {2, 3, 8}) {
        const MetricCase c =
                withQueries(metricCases(Metric::L2, 400, 4)[kind], 70);
        for (const int parts : {1, 2, 8, 13}) {
            for (const auto& config : waysOf({})) {
                expectShards(c, placesOf(parts), config);
            }
        }
    }
}

TEST_F(GpuMetricSpaceShards, FewVectors) {
    for (const idx_t n : {0, 1, 2, 17, 66}) {
        for (const int kind : {1, 8}) {
            MetricCase c = metricCases(Metric::L2, 66, 3)[kind];
            c.vectors.resize(n * c.d);
            c.forget();
            expectShards(c, placesOf(4));
        }
    }
}

/// Bits of one device on more than a page of bits and of results.
void expectAsOneDevice(const DeviceList& places, idx_t n, idx_t numQueries) {
    MetricCase c;
    c.metric = Metric::L2;
    c.d = 3;
    c.vectors = makeVectors(n, c.d, 1);
    c.queries = makeVectors(numQueries, c.d, 2);
    for (const auto& index : indexesOf(c, 64)) {
        for (const auto& config : waysOf({})) {
            GpuIndexBitsMetricSpaceShards shards(places, index.get(), config);
            for (const float radius : {1e-3f, 0.3f}) {
                const RangeAnswer want = rangeOfIndex(*index, c, radius);
                EXPECT_GT(want.ids.size(), 0u);
                for (const RangeStages stages : kStages) {
                    shards.stages = stages;
                    EXPECT_TRUE(isSame(rangeOfIndex(shards, c, radius), want))
                            << "stages " << int(stages) << ", radius " << radius
                            << ", " << nameOfWay(config);
                }
            }
        }
    }
}

TEST_F(GpuMetricSpaceShards, LargerShapesAreOneDevice) {
    expectAsOneDevice(placesOf(4), 20000, 3000);
}

/// One stage ends its lists later; one and a half computes the distances to the
/// centers on every device. In more dimensions than GroupWay::Warps takes,
/// which ends no list on one device.
TEST_F(GpuMetricSpaceShards, StagesComputeWhatThePaperSays) {
    const int d = 17;
    const MetricCase c =
            withQueries(metricCases(Metric::L2, 3000, d)[3], 100); // clusters
    GpuIndexBitsListOfClusters index(
            sharedResources(), d, faiss::METRIC_L2, 32);
    index.add(c.n(), c.vectors.data());
    index.build();
    index.resetDistances();
    rangeOfIndex(index, c, 0.01f);
    const uint64_t one = index.numDistances();
    const uint64_t centers = uint64_t(index.numClusters()) * c.numQueries();
    GpuIndexBitsMetricSpaceShards shards(placesOf(3), &index);
    const auto count = [&](RangeStages stages) {
        shards.stages = stages;
        shards.resetDistances();
        EXPECT_EQ(shards.numDistances(), 0u);
        rangeOfIndex(shards, c, 0.01f);
        return shards.numDistances();
    };
    EXPECT_EQ(count(RangeStages::Two), one);
    EXPECT_EQ(count(RangeStages::OneAndAHalf), one + 2 * centers);
    EXPECT_GE(count(RangeStages::One), one);
}

TEST_F(GpuMetricSpaceShards, OfAnIndexOnTheCpu) {
    const MetricCase c = metricCases(Metric::Linf, 200, 4)[1];
    IndexListOfClusters list(4, faiss::METRIC_Linf, 9);
    IndexSSS sss(4, faiss::METRIC_Linf, 0.3);
    for (IndexMetricSpace* index :
         std::initializer_list<IndexMetricSpace*>{&list, &sss}) {
        index->add(c.n(), c.vectors.data());
        GpuIndexBitsMetricSpaceShards shards(placesOf(2), index);
        EXPECT_TRUE(index->isBuilt());
        for (const RangeStages stages : kStages) {
            shards.stages = stages;
            expectIndexAnswers(shards, c);
        }
    }
}

TEST_F(GpuMetricSpaceShards, ArraysOnTheDevice) {
    const MetricCase c = metricCases(Metric::L2, 200, 4)[1];
    const auto index = std::move(indexesOf(c)[0]);
    const GpuIndexBitsMetricSpaceShards shards(placesOf(3), index.get());
    const DeviceBuffer<float> queries(c.queries);
    const DeviceBuffer<float> distances(c.numQueries() * 5);
    const DeviceBuffer<idx_t> labels(c.numQueries() * 5);
    shards.search(
            c.numQueries(), queries.data(), 5, distances.data(), labels.data());
    KnnAnswer got(c, 5);
    got.distances = distances.download();
    got.ids = labels.download();
    EXPECT_TRUE(isSameKnn(c, 5, got));
    faiss::RangeSearchResult result(c.numQueries());
    shards.range_search(c.numQueries(), queries.data(), 1e7f, &result);
    EXPECT_EQ(
            idx_t(result.lims[c.numQueries()]),
            plainRange(c, 1e7f).limits.back());
}

TEST_F(GpuMetricSpaceShards, BadArgumentsAreNamed) {
    const MetricCase c = metricCases(Metric::L2, 50, 4)[0];
    const auto index = std::move(indexesOf(c)[0]);
    expectFaissError(
            [&] { GpuIndexBitsMetricSpaceShards(DeviceList(), index.get()); },
            "devices.size() = 0");
    expectFaissError(
            [&] {
                GpuIndexBitsMetricSpaceShards(
                        placesOf(2),
                        static_cast<const GpuIndexBitsMetricSpace*>(nullptr));
            },
            "index is a null");
    GpuIndexBitsManyConfig config;
    config.useFloat16 = true;
    expectFaissError(
            [&] {
                GpuIndexBitsMetricSpaceShards(placesOf(2), index.get(), config);
            },
            "useFloat16");
    GpuIndexBitsMetricSpaceShards shards(placesOf(2), index.get());
    EXPECT_EQ(shards.count(), 2);
    EXPECT_EQ(shards.getDevice(), 0);
    EXPECT_EQ(shards.shardDevice(1), 0);
    EXPECT_EQ(shards.shardSize(0) + shards.shardSize(1), c.n());
    expectFaissError([&] { shards.shardSize(2); }, "shard = 2");
    expectFaissError([&] { shards.add(1, c.vectors.data()); }, "add");
    expectFaissError([&] { shards.reset(); }, "reset");
    const float* x = c.queries.data();
    float distance = 0;
    idx_t label = 0;
    const auto search = [&](idx_t n, const float* queries, idx_t k) {
        shards.search(n, queries, k, &distance, &label);
    };
    expectFaissError([&] { search(1, x, 0); }, "k = 0");
    expectFaissError([&] { search(-1, x, 1); }, "n = -1");
    expectFaissError([&] { search(1, nullptr, 1); }, "x is a");
    expectFaissError(
            [&] { shards.search(1, x, 1, nullptr, &label); }, "distances");
    faiss::SearchParameters params;
    faiss::IDSelectorRange range(0, 5);
    params.sel = &range;
    expectFaissError(
            [&] { shards.search(1, x, 1, &distance, &label, &params); },
            "params->sel");
    faiss::RangeSearchResult result(1);
    const auto ranges = [&](idx_t n, float radius) {
        shards.range_search(n, x, radius, &result);
    };
    expectFaissError([&] { ranges(1, std::nanf("")); }, "radius = NaN");
    expectFaissError([&] { ranges(2, 1); }, "result->nq = 1");
    shards.stages = RangeStages(3);
    expectFaissError([&] { ranges(1, 1); }, "stages = 3");
    shards.stages = RangeStages::One;
    expectFaissError([&] { shards.range_search(1, x, 1, nullptr); }, "result");
    expectFaissError(
            [&] { shards.range_search(1, x, 1, &result, &params); },
            "params->sel");
    expectIndexAnswers(shards, c); // as it was
    faiss::RangeSearchResult none(0);
    shards.range_search(0, nullptr, 1, &none);
    EXPECT_EQ(none.lims[0], 0u);
}

/// A few of all, for compute-sanitizer.
TEST_F(GpuMetricSpaceShards, SmallStages) {
    const MetricCase c =
            withQueries(metricCases(Metric::L2, 90, 5)[8], 40); // infinities
    for (const auto& index : indexesOf(c, 10)) {
        for (const auto& config : waysOf({})) {
            GpuIndexBitsMetricSpaceShards shards(
                    placesOf(2), index.get(), config);
            for (const RangeStages stages : kStages) {
                shards.stages = stages;
                EXPECT_TRUE(
                        isSame(rangeOfIndex(shards, c, 30), plainRange(c, 30)));
            }
        }
    }
}

TEST_F(SeveralDevicesMetricSpaceShards, AnswersAreThoseOfBruteForce) {
    for (const auto& config : waysOf({})) {
        for (const int devices : severalDevices()) {
            for (const int parts : {devices, 5}) {
                for (const int kind : {2, 3, 8}) {
                    expectShards(
                            withQueries(
                                    metricCases(Metric::L2, 300, 4)[kind], 70),
                            placesOf(parts, devices),
                            config);
                }
            }
        }
    }
}

TEST_F(SeveralDevicesMetricSpaceShards, LargerShapesAreOneDevice) {
    for (const int devices : severalDevices()) {
        expectAsOneDevice(placesOf(devices, devices), 100000, 3000);
    }
}

} // namespace
} // namespace faiss_bits::test

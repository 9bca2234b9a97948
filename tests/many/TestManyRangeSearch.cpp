/// Range search over several devices: the results of one index, bit by bit.

#include <limits>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>

#include "tests/many/ManyHarness.h"

namespace faiss_bits::test {
namespace {

template <class Many>
class ManyRangeSearch : public GpuTest {};

TYPED_TEST_SUITE(ManyRangeSearch, ManyKinds);

constexpr int kCounts[] = {1, 2, 3, 8};

struct Ranges {
    std::vector<size_t> lims;
    std::vector<idx_t> labels;
    std::vector<float> distances;
};

Ranges rangesOf(
        const faiss::Index& index,
        const std::vector<float>& queries,
        float radius,
        const faiss::SearchParameters* params = nullptr) {
    const idx_t n = idx_t(queries.size()) / index.d;
    faiss::RangeSearchResult found(n);
    index.range_search(n, queries.data(), radius, &found, params);
    const size_t total = found.lims[n];
    return {{found.lims, found.lims + n + 1},
            {found.labels, found.labels + total},
            {found.distances, found.distances + total}};
}

void expectEqual(const Ranges& got, const Ranges& want) {
    ASSERT_EQ(got.lims, want.lims);
    ASSERT_EQ(got.labels, want.labels);
    for (size_t i = 0; i < want.labels.size(); ++i) {
        ASSERT_TRUE(sameBits(got.distances[i], want.distances[i])) << i;
    }
}

template <class Case>
void expectSameRanges(
        const Case& c,
        const std::vector<float>& queries,
        float radius,
        const faiss::SearchParameters* params = nullptr) {
    SCOPED_TRACE(::testing::Message() << "radius " << radius);
    expectEqual(
            rangesOf(c.many, queries, radius, params),
            rangesOf(c.one, queries, radius, params));
}

TYPED_TEST(ManyRangeSearch, SmallEveryMetric) {
    const int d = 9;
    for (const ManyMetric& metric : manyMetrics<faiss::MetricType>()) {
        for (int count : kCounts) {
            const ManyCase<TypeParam> c(
                    placesOf(count),
                    d,
                    metric.type,
                    positiveVectors(203, d, 1),
                    smallConfig(),
                    metric.arg);
            const auto queries = positiveVectors(20, d, 2);
            const auto near = searchOnHost(c.one, queries, 30);
            SCOPED_TRACE(
                    ::testing::Message()
                    << "metric " << int(metric.type) << " parts " << count);
            // Some results, and all but the last of the first query.
            expectSameRanges(c, queries, near.distances[15]);
            expectSameRanges(c, queries, near.distances[29]);
        }
    }
}

/// Vectors at the radius itself are out, whatever the shard that has them, and
/// equal ones come by id. Against float64.
TYPED_TEST(ManyRangeSearch, SmallTiesOverTheBorders) {
    const int d = 2; // 81 different vectors
    const int n = 1000;
    const auto vectors = makeVectors(n, d, 3, Fill::Integers);
    const auto queries = makeVectors(30, d, 4, Fill::Integers);
    for (int count : kCounts) {
        for (const auto& config : waysOf()) {
            SCOPED_TRACE(
                    ::testing::Message() << count << " " << nameOfWay(config));
            ManyCase<TypeParam> c(
                    placesOf(count), d, faiss::METRIC_L2, vectors, config);
            for (float radius : {1.f, 5.f, 20.f}) {
                expectSameRanges(c, queries, radius);
                const Ranges got = rangesOf(c.many, queries, radius);
                size_t at = 0;
                for (int q = 0; q < 30; ++q) {
                    ASSERT_EQ(got.lims[q], at);
                    for (int id = 0; id < n; ++id) {
                        const double dx = queries[q * d] - vectors[id * d];
                        const double dy =
                                queries[q * d + 1] - vectors[id * d + 1];
                        const double distance = dx * dx + dy * dy;
                        if (distance < radius) {
                            ASSERT_EQ(got.labels.at(at), id);
                            ASSERT_EQ(got.distances.at(at), float(distance));
                            ++at;
                        }
                    }
                }
                ASSERT_EQ(got.lims[30], at);
            }
            // In pieces of several additions, too.
            c.add(makeVectors(77, d, 5, Fill::Integers));
            c.add(makeVectors(1, d, 6, Fill::Integers));
            expectSameRanges(c, queries, 5.f);
        }
    }
}

TYPED_TEST(ManyRangeSearch, SmallHardVectorsAndRadii) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const int d = 12;
    for (Hard kind : kHard) {
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            const ManyCase<TypeParam> c(
                    placesOf(3), d, metric, makeHard(kind, 300, d, 5));
            const auto queries = makeHard(kind, 20, d, 6);
            const auto near = searchOnHost(c.one, queries, 50);
            for (float radius :
                 {near.distances[49], 0.f, kInfinity, -kInfinity}) {
                SCOPED_TRACE(
                        ::testing::Message()
                        << "kind " << int(kind) << " metric " << int(metric));
                expectSameRanges(c, queries, radius);
            }
        }
    }
}

/// So many results that they wait on their devices, of one addition and of
/// several, whose ids come from all shards in turn. On as many devices as there
/// are parts, where there are so many.
TYPED_TEST(ManyRangeSearch, ManyResults) {
    const int d = 3;
    for (const auto& config : waysOf()) {
        for (int count : {2, 3, 4}) {
            ManyCase<TypeParam> c(
                    placesOf(count, std::min(count, numDevices())),
                    d,
                    faiss::METRIC_L2,
                    makeVectors(20001, d, 1, Fill::Integers),
                    config);
            const auto queries = makeVectors(100, d, 2, Fill::Integers);
            SCOPED_TRACE(
                    ::testing::Message() << count << " " << nameOfWay(config));
            for (float radius :
                 {30.f, std::numeric_limits<float>::infinity()}) {
                expectSameRanges(c, queries, radius);
            }
            c.add(makeVectors(7001, d, 3, Fill::Integers));
            expectSameRanges(
                    c, queries, std::numeric_limits<float>::infinity());
        }
    }
}

/// The same with pinned memory, which both devices' results go through.
TYPED_TEST(ManyRangeSearch, ManyResultsThroughPinnedMemory) {
    const int d = 3;
    const int devices = std::min(numDevices(), 2);
    for (const bool isShared : {false, true}) {
        faiss::gpu::StandardGpuResources resources[2];
        DeviceList places;
        for (int part = 0; part < 2; ++part) {
            resources[part].setPinnedMemory(size_t(64) << 20);
            resources[part].setTempMemory(size_t(128) << 20);
        }
        for (int part = 0; part < 2; ++part) {
            places.add(&resources[isShared ? 0 : part], part % devices);
        }
        const ManyCase<TypeParam> c(
                places,
                d,
                faiss::METRIC_L2,
                makeVectors(20001, d, 1, Fill::Integers));
        const auto queries = makeVectors(200, d, 2, Fill::Integers);
        for (float radius : {30.f, std::numeric_limits<float>::infinity()}) {
            expectSameRanges(c, queries, radius);
        }
    }
}

TYPED_TEST(ManyRangeSearch, SmallEmptyShardsAndFewQueries) {
    const int d = 4;
    for (const auto& config : waysOf()) {
        for (int n : {0, 1, 3}) {
            const ManyCase<TypeParam> c(
                    placesOf(8),
                    d,
                    faiss::METRIC_L2,
                    makeVectors(n, d, 1),
                    config);
            for (int q : {0, 1, 2, 9}) {
                expectSameRanges(c, makeVectors(q, d, 2), 3.f);
            }
        }
    }
}

TYPED_TEST(ManyRangeSearch, SmallFilters) {
    const int d = 6;
    const std::vector<idx_t> ids = {0, 3, 64, 65, 99, 150, 151, 299, 5000};
    const faiss::IDSelectorRange range(40, 220);
    const faiss::IDSelectorBatch batch(ids.size(), ids.data());
    ManyCase<TypeParam> c(
            placesOf(3), d, faiss::METRIC_L2, makeVectors(200, d, 1));
    c.add(makeVectors(100, d, 2));
    for (const faiss::IDSelector* selector :
         std::initializer_list<const faiss::IDSelector*>{&range, &batch}) {
        faiss::SearchParameters params;
        params.sel = const_cast<faiss::IDSelector*>(selector);
        expectSameRanges(c, makeVectors(30, d, 3), 3.f, &params);
    }
}

/// Every allocation of one part fails, one after the other: the error names the
/// part, nothing of the result is there, and the next call works.
TYPED_TEST(ManyRangeSearch, SmallMemoryShortInOnePart) {
    const int d = 9;
    const auto vectors = makeVectors(300, d, 1, Fill::Integers);
    const auto queries = makeVectors(40, d, 3, Fill::Integers);
    for (const auto& config : waysOf()) {
        SCOPED_TRACE(nameOfWay(config));
        const auto resources = std::make_shared<FailingResources>();
        faiss::gpu::GpuResourcesProviderFromInstance failing(resources);
        DeviceList places;
        places.add(partResources(0), 0);
        places.add(&failing, 0);
        places.add(partResources(2), 0);
        const ManyCase<TypeParam> c(
                places, d, faiss::METRIC_L2, vectors, config);
        int failures = 0;
        for (bool failed = true; failed; failures += failed) {
            ASSERT_LT(failures, 100);
            resources->failAfter(failures);
            failed = false;
            try {
                rangesOf(c.many, queries, 60.f);
            } catch (const faiss::FaissException& error) {
                failed = true;
                const std::string text = error.what();
                EXPECT_NE(text.find("says the test"), std::string::npos)
                        << text;
                EXPECT_NE(text.find(" 1 of 3"), std::string::npos) << text;
            }
            resources->failNever();
            expectSameRanges(c, queries, 60.f);
        }
        EXPECT_GT(failures, 0) << "the search allocates nothing";
    }
}

} // namespace
} // namespace faiss_bits::test

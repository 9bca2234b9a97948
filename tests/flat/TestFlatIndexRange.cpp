/// Range searches of GpuIndexBitsFlat, in FAISS's manners.

#include <faiss/impl/IDSelector.h>

#include "faiss_bits/flat/DeviceSelector.h"
#include "tests/common/MetricNames.h"
#include "tests/flat/IndexRangeHarness.h"

namespace faiss_bits::test {
namespace {

class FlatIndexRange : public GpuTest {};

TEST_F(FlatIndexRange, RangesOfEveryStorage) {
    for (const FlatCase& c : kindsOf(smallCase())) {
        const FlatData data(c);
        const auto index = data.makeIndex();
        for (const double part : {0.0, 0.01, 0.3, 1.0}) {
            const float radius = someRadius(data, part);
            const Wanted wanted = wantedOf(data, radius);
            faiss::RangeSearchResult result(c.q);
            index->range_search(c.q, data.queries.data(), radius, &result);
            expectSame(wanted, result, c);

            // Queries on the device.
            const DeviceBuffer<float> x(data.queries);
            faiss::RangeSearchResult again(c.q);
            index->range_search(c.q, x.data(), radius, &again);
            expectSame(wanted, again, c);
        }
    }
}

TEST_F(FlatIndexRange, ResultsOnTheDevice) {
    for (const FlatCase& c : kindsOf(smallCase())) {
        const FlatData data(c);
        const auto index = data.makeIndex();
        const DeviceBuffer<float> x(data.queries);
        for (const double part : {0.0, 0.05, 1.0}) {
            const float radius = someRadius(data, part);
            const Wanted wanted = wantedOf(data, radius);
            gpu::GpuRangeResult result;
            index->rangeSearchOnDevice(c.q, x.data(), radius, result);
            ASSERT_EQ(
                    std::vector<size_t>(result.lims.begin(), result.lims.end()),
                    wanted.lims);
            const size_t total = wanted.labels.size();
            const DeviceBuffer<float> distances(total);
            const DeviceBuffer<int64_t> labels(total);
            result.copyTo(
                    distances.data(),
                    labels.data(),
                    index->getResources()->getDefaultStreamCurrentDevice());
            EXPECT_EQ(distances.download(), wanted.distances);
            EXPECT_EQ(labels.download(), wanted.labels);
        }
    }
}

TEST_F(FlatIndexRange, FewQueriesBeforeAndBehindTheImage) {
    FlatCase c = smallCase();
    c.n = 20000;
    c.d = 64;
    c.q = 3;
    const FlatData data(c);
    const auto index = data.makeIndex();
    const float radius = someRadius(data, 0.01);
    const Wanted wanted = wantedOf(data, radius);
    for (int i = 0; i < 8; ++i) {
        faiss::RangeSearchResult result(c.q);
        index->range_search(c.q, data.queries.data(), radius, &result);
        expectSame(wanted, result, c);
    }
}

TEST_F(FlatIndexRange, SmallRangesByOtherMetrics) {
    for (const auto& [type, metric] :
         {std::pair{faiss::METRIC_L1, Metric::L1},
          std::pair{faiss::METRIC_Linf, Metric::Linf},
          std::pair{faiss::METRIC_Canberra, Metric::Canberra},
          std::pair{faiss::METRIC_BrayCurtis, Metric::BrayCurtis},
          std::pair{faiss::METRIC_JensenShannon, Metric::JensenShannon},
          std::pair{faiss::METRIC_Lp, Metric::Lp}}) {
        const FlatCase c = smallCase();
        FlatData data(c);
        for (float& one : data.vectors) {
            one = std::abs(one);
        }
        for (float& one : data.queries) {
            one = std::abs(one);
        }
        GpuIndexBitsFlat index(sharedResources(), c.d, type);
        index.metric_arg = 3;
        index.add(c.n, data.vectors.data());
        std::vector<float> all;
        for (int64_t v = 0; v < c.n; ++v) {
            all.push_back(canonicalDistance(
                    metric,
                    3,
                    data.queries.data(),
                    data.vectors.data() + v * c.d,
                    c.d));
        }
        std::vector<float> sorted = all;
        std::sort(sorted.begin(), sorted.end());
        const float radius = sorted[100];
        std::vector<int64_t> wanted;
        for (int64_t v = 0; v < c.n; ++v) {
            if (all[v] < radius) {
                wanted.push_back(v);
            }
        }
        faiss::RangeSearchResult result(1);
        index.range_search(1, data.queries.data(), radius, &result);
        ASSERT_EQ(result.lims[1], wanted.size()) << metricName(metric);
        EXPECT_EQ(
                std::vector<int64_t>(
                        result.labels, result.labels + wanted.size()),
                wanted)
                << metricName(metric);
    }
}

TEST_F(FlatIndexRange, Filters) {
    const FlatData data(smallCase());
    const auto index = data.makeIndex();
    const float radius = someRadius(data, 0.2);
    faiss::IDSelectorRange range(100, 900);
    const auto selects = [](int64_t id) { return id >= 100 && id < 900; };
    const Wanted wanted = wantedOf(data, radius, selects);
    faiss::SearchParameters params;
    params.sel = &range;
    faiss::RangeSearchResult result(data.c.q);
    index->range_search(
            data.c.q, data.queries.data(), radius, &result, &params);
    expectSame(wanted, result, data.c);

    gpu::DeviceSelector selector(&range, data.c.n);
    gpu::SearchParametersBitsFlat ours;
    ours.sel = &selector;
    faiss::RangeSearchResult again(data.c.q);
    index->range_search(data.c.q, data.queries.data(), radius, &again, &ours);
    expectSame(wanted, again, data.c);
}

} // namespace
} // namespace faiss_bits::test

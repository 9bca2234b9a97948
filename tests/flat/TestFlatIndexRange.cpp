/// Range searches of GpuIndexBitsFlat, in FAISS's manners.

#include <limits>
#include <thread>

#include <faiss/IndexIVF.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>

#include "faiss_bits/flat/DeviceSelector.h"
#include "tests/common/MetricNames.h"
#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

class FlatIndexRange : public GpuTest {};

struct Wanted {
    std::vector<size_t> lims = {0};
    std::vector<float> distances;
    std::vector<int64_t> labels;
};

/// By canonical distances of vectors as they are stored.
Wanted wantedOf(
        const FlatData& data,
        float radius,
        const std::function<bool(int64_t)>& selects = {}) {
    std::vector<float> stored = data.vectors;
    roundAllTo(data.type(), stored);
    Wanted wanted;
    for (int64_t q = 0; q < data.c.q; ++q) {
        for (int64_t v = 0; v < data.c.n; ++v) {
            const float distance = canonicalDistance(
                    data.isIP() ? Metric::InnerProduct : Metric::L2,
                    0,
                    data.queries.data() + q * data.c.d,
                    stored.data() + v * data.c.d,
                    data.c.d);
            if ((data.isIP() ? distance > radius : distance < radius) &&
                (!selects || selects(v))) {
                wanted.distances.push_back(distance);
                wanted.labels.push_back(v);
            }
        }
        wanted.lims.push_back(wanted.labels.size());
    }
    return wanted;
}

void expectSame(
        const Wanted& wanted,
        const faiss::RangeSearchResult& result,
        const FlatCase& c) {
    ASSERT_EQ(
            std::vector<size_t>(result.lims, result.lims + c.q + 1),
            wanted.lims)
            << c;
    const size_t total = wanted.labels.size();
    EXPECT_EQ(
            std::vector<int64_t>(result.labels, result.labels + total),
            wanted.labels)
            << c;
    EXPECT_EQ(
            std::vector<float>(result.distances, result.distances + total),
            wanted.distances)
            << c;
}

/// A distance of the first query, which leaves its vector out.
float someRadius(const FlatData& data, double part) {
    const float all = data.isIP() ? -INFINITY : INFINITY;
    FlatCase c = data.c;
    FlatData first(c);
    first.c.q = 1;
    std::vector<float> distances = wantedOf(first, all).distances;
    std::sort(distances.begin(), distances.end());
    if (data.isIP()) {
        std::reverse(distances.begin(), distances.end());
    }
    return distances[size_t(part * double(distances.size() - 1))];
}

FlatCase smallCase() {
    FlatCase c;
    c.n = 3000;
    c.q = 40;
    return c;
}

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

TEST_F(FlatIndexRange, LimitOfResultsTellsTheTotal) {
    const FlatData data(smallCase());
    const auto index = data.makeIndex();
    const float radius = someRadius(data, 0.2);
    const Wanted wanted = wantedOf(data, radius);
    const int64_t total = int64_t(wanted.labels.size());
    gpu::SearchParametersBitsFlat params;
    params.max_results = total;
    faiss::RangeSearchResult result(data.c.q);
    index->range_search(
            data.c.q, data.queries.data(), radius, &result, &params);
    expectSame(wanted, result, data.c);

    params.max_results = total - 1;
    faiss::RangeSearchResult none(data.c.q);
    gpu::GpuRangeResult device;
    for (const bool onDevice : {false, true}) {
        try {
            onDevice ? index->rangeSearchOnDevice(
                               data.c.q,
                               data.queries.data(),
                               radius,
                               device,
                               &params)
                     : index->range_search(
                               data.c.q,
                               data.queries.data(),
                               radius,
                               &none,
                               &params);
            ADD_FAILURE() << "no exception";
        } catch (const faiss::FaissException& error) {
            EXPECT_NE(error.msg.find(std::to_string(total)), std::string::npos)
                    << error.msg;
            EXPECT_NE(error.msg.find("max_results"), std::string::npos);
        }
    }
    EXPECT_EQ(none.labels, nullptr);
    std::vector<float> distances(data.c.q);
    std::vector<int64_t> labels(data.c.q);
    EXPECT_THROW(
            index->search(
                    data.c.q,
                    data.queries.data(),
                    1,
                    distances.data(),
                    labels.data(),
                    &params),
            faiss::FaissException);
}

TEST_F(FlatIndexRange, NothingToSearch) {
    GpuIndexBitsFlatL2 index(sharedResources(), 8);
    const std::vector<float> x(2 * 8);
    faiss::RangeSearchResult empty(2);
    index.range_search(2, x.data(), 1, &empty);
    EXPECT_EQ(empty.lims[2], 0u);
    index.add(2, x.data());
    faiss::RangeSearchResult none(0);
    index.range_search(0, nullptr, 1, &none);
    EXPECT_EQ(none.lims[0], 0u);
    faiss::RangeSearchResult negative(2);
    index.range_search(2, x.data(), -1, &negative);
    EXPECT_EQ(negative.lims[2], 0u);
}

TEST_F(FlatIndexRange, BadArgumentsAreNamed) {
    GpuIndexBitsFlatL2 index(sharedResources(), 8);
    const std::vector<float> x(2 * 8);
    index.add(2, x.data());
    faiss::RangeSearchResult result(2);
    faiss::RangeSearchResult other(3);
    faiss::SearchParametersIVF ivf;
    gpu::SearchParametersBitsFlat negative;
    negative.max_results = -1;
    const auto expectNamed = [&](auto&& call, const char* text) {
        try {
            call();
            ADD_FAILURE() << "no exception for " << text;
        } catch (const faiss::FaissException& error) {
            EXPECT_NE(error.msg.find(text), std::string::npos) << error.msg;
        }
    };
    expectNamed(
            [&] { index.range_search(2, x.data(), NAN, &result); }, "radius");
    expectNamed([&] { index.range_search(2, nullptr, 1, &result); }, "x");
    expectNamed([&] { index.range_search(2, x.data(), 1, nullptr); }, "result");
    expectNamed([&] { index.range_search(2, x.data(), 1, &other); }, "nq = 3");
    expectNamed([&] { index.range_search(-2, x.data(), 1, &other); }, "n = -2");
    expectNamed(
            [&] { index.range_search(2, x.data(), 1, &result, &ivf); },
            "params");
    expectNamed(
            [&] { index.range_search(2, x.data(), 1, &result, &negative); },
            "max_results = -1");
    EXPECT_EQ(result.labels, nullptr);
    index.range_search(2, x.data(), 1, &result);
    EXPECT_EQ(result.lims[2], 4u);
}

TEST_F(FlatIndexRange, LittleMemoryMakesParts) {
    auto resources = std::make_shared<FailingResources>();
    FlatCase c = smallCase();
    c.n = 50000;
    c.d = 8;
    c.q = 600;
    const FlatData data(c);
    GpuIndexBitsFlat index(resources, c.d, c.metric);
    index.add(c.n, data.vectors.data());
    const float radius = someRadius(data, 0.1);
    faiss::RangeSearchResult result(c.q);
    index.range_search(c.q, data.queries.data(), radius, &result);
    const auto large = data.makeIndex();
    faiss::RangeSearchResult other(c.q);
    large->range_search(c.q, data.queries.data(), radius, &other);
    ASSERT_EQ(result.lims[c.q], other.lims[c.q]);
    EXPECT_TRUE(std::equal(
            result.labels, result.labels + result.lims[c.q], other.labels));
    EXPECT_TRUE(std::equal(
            result.distances,
            result.distances + result.lims[c.q],
            other.distances));

    // A failure at any allocation leaves index and result as they were.
    for (int i = 0; i < 4; ++i) {
        faiss::RangeSearchResult failed(c.q);
        resources->failAfter(i);
        EXPECT_THROW(
                index.range_search(c.q, data.queries.data(), radius, &failed),
                faiss::FaissException)
                << i;
        resources->failNever();
        EXPECT_EQ(failed.labels, nullptr);
        faiss::RangeSearchResult again(c.q);
        index.range_search(c.q, data.queries.data(), radius, &again);
        EXPECT_EQ(again.lims[c.q], result.lims[c.q]);
    }
}

TEST_F(FlatIndexRange, ThreadsWithResourcesOfTheirOwn) {
    const FlatData data(smallCase());
    const auto index = data.makeIndex();
    const float radius = someRadius(data, 0.1);
    const Wanted wanted = wantedOf(data, radius);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            OwnResources resources;
            const gpu::SearchParametersBitsFlat params(&resources);
            for (int i = 0; i < 3; ++i) {
                faiss::RangeSearchResult result(data.c.q);
                index->range_search(
                        data.c.q,
                        data.queries.data(),
                        radius,
                        &result,
                        &params);
                expectSame(wanted, result, data.c);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

TEST_F(FlatIndexRange, InterruptsEndIt) {
    struct Interrupt : faiss::InterruptCallback {
        bool want_interrupt() override {
            return true;
        }
    };
    const FlatData data(smallCase());
    const auto index = data.makeIndex();
    faiss::InterruptCallback::instance = std::make_unique<Interrupt>();
    faiss::RangeSearchResult result(data.c.q);
    std::string text;
    try {
        index->range_search(data.c.q, data.queries.data(), INFINITY, &result);
    } catch (const faiss::FaissException& error) {
        text = error.msg;
    }
    faiss::InterruptCallback::clear_instance();
    EXPECT_NE(text.find("interrupted"), std::string::npos) << text;
    EXPECT_EQ(result.labels, nullptr);
    faiss::RangeSearchResult again(data.c.q);
    index->range_search(data.c.q, data.queries.data(), INFINITY, &again);
    EXPECT_EQ(again.lims[data.c.q], size_t(data.c.q * data.c.n));
}

} // namespace
} // namespace faiss_bits::test

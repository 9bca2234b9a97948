/// Both forms of range_search of inverted lists: limits, parts, and what is
/// refused.

#include <limits>
#include <string>

#include <cuda_runtime_api.h>

#include "tests/common/CapturedGraph.h"
#include "tests/ivf/ListModel.h"

namespace faiss_bits::test {
namespace {

using gpu::GpuRangeResult;
using gpu::SearchParametersBitsFlat;
using gpu::SearchParametersBitsIVF;

class IvfRangeCalls : public GpuTest {};

IvfCase someCase() {
    IvfCase c;
    c.n = 900;
    c.d = 12;
    c.nlist = 11;
    c.q = 30;
    return c;
}

/// More results than the scratch of FailingResources holds at a time.
IvfCase largeCase() {
    IvfCase c;
    c.n = 60000;
    c.d = 8;
    c.nlist = 20;
    c.q = 700;
    return c;
}

/// The text of the exception, or nothing.
template <class Call>
std::string errorOf(const Call& call) {
    try {
        call();
    } catch (const faiss::FaissException& error) {
        return error.msg;
    }
    return "";
}

/// Both forms refuse the call, and name it; nothing is found.
void expectRefused(
        const faiss::Index& index,
        int64_t n,
        const float* x,
        float radius,
        const faiss::SearchParameters* params,
        const std::string& text) {
    faiss::RangeSearchResult onHost(n);
    const std::string host =
            errorOf([&] { index.range_search(n, x, radius, &onHost, params); });
    EXPECT_NE(host.find(text), std::string::npos) << text << ": " << host;
    EXPECT_EQ(onHost.labels, nullptr) << text;
    GpuRangeResult onDevice;
    const std::string device = errorOf([&] {
        searchRangeOnDevice(index, n, x, radius, onDevice, params);
    });
    EXPECT_EQ(device, host);
}

TEST_F(IvfRangeCalls, SmallLimitTellsTheTotal) {
    forEveryKind(someCase(), false, [](ListModel& model) {
        const IvfData& data = model.oracle;
        faiss::gpu::GpuIndexIVF& index = *model.index;
        const float* x = data.queries.data();
        const float radius = listRadius(data, 0.4);
        faiss::SearchParametersIVF plain;
        plain.nprobe = 4;
        const RangeRows all = rangeOnHost(index, data.c.q, x, radius, &plain);
        const int64_t total = int64_t(all.labels.size());
        ASSERT_GT(total, 1);
        SearchParametersBitsIVF limited(plain, total);
        EXPECT_EQ(limited.nprobe, 4u);
        SearchParametersBitsFlat ofIndex;
        index.nprobe = 4;
        for (const bool hasProbes : {true, false}) {
            faiss::SearchParameters& params = hasProbes
                    ? static_cast<faiss::SearchParameters&>(limited)
                    : ofIndex;
            (hasProbes ? limited.max_results : ofIndex.max_results) = total;
            EXPECT_EQ(rangeOnHost(index, data.c.q, x, radius, &params), all);
            GpuRangeResult onDevice;
            searchRangeOnDevice(index, data.c.q, x, radius, onDevice, &params);
            EXPECT_EQ(rowsOf(onDevice), all);

            (hasProbes ? limited.max_results : ofIndex.max_results) = total - 1;
            expectRefused(
                    index,
                    data.c.q,
                    x,
                    radius,
                    &params,
                    "max_results = " + std::to_string(total - 1) + ", but " +
                            std::to_string(total));
        }
    });
}

TEST_F(IvfRangeCalls, SmallLimitAndFilter) {
    IvfData data(someCase());
    const auto index = data.makeIndex();
    const float radius = someRadius(data, 0.5);
    faiss::IDSelectorBatch batch(300, data.ids.data());
    data.selects = [&](int64_t id) { return batch.is_member(id); };
    const int64_t total = int64_t(expectRange(data, *index, radius, 5, &batch));
    ASSERT_GT(total, 1);
    SearchParametersBitsIVF params;
    params.nprobe = 5;
    params.sel = &batch;
    params.max_results = total;
    EXPECT_EQ(
            rangeOnHost(*index, data.c.q, data.queries.data(), radius, &params)
                    .labels.size(),
            size_t(total));
    params.max_results = 1;
    expectRefused(
            *index,
            data.c.q,
            data.queries.data(),
            radius,
            &params,
            "but " + std::to_string(total));
}

TEST_F(IvfRangeCalls, LittleMemoryMakesParts) {
    const IvfData data(largeCase());
    auto resources = std::make_shared<FailingResources>();
    faiss::gpu::GpuResourcesProviderFromInstance provider(resources);
    const auto index = data.makeIndex(&provider);
    const auto large = data.makeIndex();
    const float* x = data.queries.data();
    const float radius = someRadius(data, 0.3);
    SearchParametersBitsIVF params;
    params.nprobe = 15;
    const RangeRows all = rangeOnHost(*large, data.c.q, x, radius, &params);
    EXPECT_GT(all.labels.size(), 1000000u);
    for (int64_t i = 0; i < data.c.q; i += 100) {
        EXPECT_EQ(
                all.lims[i + 1] - all.lims[i],
                inRange(data, i, 15, radius).size());
    }
    EXPECT_EQ(rangeOnHost(*index, data.c.q, x, radius, &params), all);
    GpuRangeResult onDevice;
    searchRangeOnDevice(*index, data.c.q, x, radius, onDevice, &params);
    EXPECT_GT(onDevice.parts.size(), 1u);
    EXPECT_EQ(rowsOf(onDevice), all);

    // Also what does not come back is counted.
    params.max_results = int64_t(all.labels.size()) - 1;
    for (const int64_t most : {params.max_results, int64_t(7)}) {
        params.max_results = most;
        expectRefused(
                *index,
                data.c.q,
                x,
                radius,
                &params,
                "but " + std::to_string(all.labels.size()));
    }
    params.max_results = 0;
    EXPECT_EQ(rangeOnHost(*index, data.c.q, x, radius, &params), all);
}

TEST_F(IvfRangeCalls, SmallNoMemoryLeavesTheIndexAsItWas) {
    for (auto indices : {faiss::gpu::INDICES_64_BIT, faiss::gpu::INDICES_CPU}) {
        IvfCase c = someCase();
        c.indices = indices;
        const IvfData data(c);
        auto resources = std::make_shared<FailingResources>();
        faiss::gpu::GpuResourcesProviderFromInstance provider(resources);
        const auto index = data.makeIndex(&provider);
        const float* x = data.queries.data();
        const float radius = someRadius(data, 0.5);
        const RangeRows all = rangeOnHost(*index, c.q, x, radius);
        int failed = 0;
        for (int i = 0; i < 12; ++i) {
            faiss::RangeSearchResult onHost(c.q);
            resources->failAfter(i);
            const bool isFailure =
                    !errorOf([&] {
                         index->range_search(c.q, x, radius, &onHost);
                     }).empty();
            resources->failNever();
            failed += isFailure;
            if (isFailure) {
                EXPECT_EQ(onHost.labels, nullptr);
            }
            GpuRangeResult onDevice;
            resources->failAfter(i);
            const bool failsToo =
                    !errorOf([&] {
                         index->rangeSearchOnDevice(c.q, x, radius, onDevice);
                     }).empty();
            resources->failNever();
            if (!failsToo) {
                EXPECT_EQ(rowsOf(onDevice), all);
            }
            EXPECT_EQ(rangeOnHost(*index, c.q, x, radius), all);
        }
        EXPECT_GT(failed, 3);
    }
}

TEST_F(IvfRangeCalls, SmallBadArgumentsAreNamed) {
    const IvfData data(someCase());
    const auto index = data.makeIndex();
    const float* x = data.queries.data();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    expectRefused(*index, 3, x, nan, nullptr, "radius is NaN");
    expectRefused(*index, 3, nullptr, 1, nullptr, "x");
    SearchParametersBitsIVF params;
    params.max_results = -3;
    expectRefused(*index, 3, x, 1, &params, "max_results = -3");
    params.max_results = 5;
    params.nprobe = 0;
    expectRefused(*index, 3, x, 1, &params, "nprobe = 0");
    params.nprobe = 1;
    params.max_codes = 9;
    expectRefused(*index, 3, x, 1, &params, "max_codes = 9");
    SearchParametersBitsFlat flat(sharedResources());
    expectRefused(*index, 3, x, 1, &flat, "params->resources");
    GpuRangeResult result;
    EXPECT_NE(
            errorOf([&] {
                index->rangeSearchOnDevice(-2, x, 1, result);
            }).find("n = -2"),
            std::string::npos);
    const GpuIndexBitsIVFFlat untrained(sharedResources(), 4, 2);
    expectRefused(untrained, 3, x, 1, nullptr, "not trained");
}

TEST_F(IvfRangeCalls, SmallNeighboursRefuseALimit) {
    const IvfData data(someCase());
    const auto index = data.makeIndex();
    SearchParametersBitsIVF ivf;
    ivf.nprobe = 3;
    SearchParametersBitsFlat flat;
    index->nprobe = 3;
    for (faiss::SearchParameters* params :
         std::initializer_list<faiss::SearchParameters*>{&ivf, &flat}) {
        SearchOutput found;
        found.distances.resize(data.c.q * 5);
        found.labels.resize(data.c.q * 5);
        const auto search = [&] {
            index->search(
                    data.c.q,
                    data.queries.data(),
                    5,
                    found.distances.data(),
                    found.labels.data(),
                    params);
        };
        search();
        data.expectExact(found, 3, 5);
        (params == &ivf ? ivf.max_results : flat.max_results) = 8;
        EXPECT_NE(errorOf(search).find("max_results = 8"), std::string::npos);
    }
}

TEST_F(IvfRangeCalls, SmallNothingToSearch) {
    IvfCase c = someCase();
    c.n = 0;
    const IvfData data(c);
    const auto index = data.makeIndex();
    GpuRangeResult result;
    index->rangeSearchOnDevice(c.q, data.queries.data(), INFINITY, result);
    EXPECT_EQ(result.lims, std::vector<idx_t>(c.q + 1));
    EXPECT_TRUE(result.parts.empty());
    index->rangeSearchOnDevice(0, nullptr, 1, result);
    EXPECT_EQ(result.lims, std::vector<idx_t>(1));
}

TEST_F(IvfRangeCalls, SmallValuesThatAreNotFinite) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float inf = std::numeric_limits<float>::infinity();
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (int64_t q : {7, 150}) {
            IvfCase c = someCase();
            c.metric = metric;
            c.q = q;
            auto vectors = makeVectors(c.n, c.d, 1, Fill::Uniform);
            auto queries = makeVectors(c.q, c.d, 2, Fill::Uniform);
            for (int64_t i = 0; i < c.n; i += 5) {
                vectors[i * c.d + i % c.d] = i % 3 == 0 ? nan
                        : i % 3 == 1                    ? inf
                                                        : -inf;
            }
            queries[0] = nan;
            queries[size_t(c.d)] = inf;
            std::vector<int64_t> ids(c.n);
            std::iota(ids.begin(), ids.end(), 10);
            const IvfData data(c, vectors, queries, ids);
            const auto index = data.makeIndex();
            for (const float radius : {-inf, 0.0f, 2.5f, inf}) {
                expectRange(data, *index, radius, c.nlist);
            }
        }
    }
}

TEST_F(IvfRangeCalls, SmallInterruptsEndIt) {
    struct Interrupt : faiss::InterruptCallback {
        bool want_interrupt() override {
            return true;
        }
    };
    const IvfData data(someCase());
    const auto index = data.makeIndex();
    faiss::InterruptCallback::instance = std::make_unique<Interrupt>();
    expectRefused(
            *index,
            data.c.q,
            data.queries.data(),
            INFINITY,
            nullptr,
            "interrupted");
    faiss::InterruptCallback::clear_instance();
    expectRange(data, *index, INFINITY, 3);
}

TEST_F(IvfRangeCalls, SmallCapturesAreRefused) {
    const IvfData data(someCase());
    const auto index = data.makeIndex();
    const DeviceBuffer<float> x(data.queries);
    const CapturedGraph graph(
            sharedResources()->getResources()->getDefaultStream(0), [&] {
                expectRefused(
                        *index, data.c.q, x.data(), 1, nullptr, "capture");
            });
    expectRange(data, *index, 1, 3);
}

} // namespace
} // namespace faiss_bits::test

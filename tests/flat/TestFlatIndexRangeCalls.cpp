/// Range searches of GpuIndexBitsFlat: limits, memory, threads, interrupts, and
/// what is refused.

#include <memory>
#include <thread>

#include <faiss/IndexIVF.h>

#include "tests/flat/IndexRangeHarness.h"

namespace faiss_bits::test {
namespace {

class FlatIndexRangeCalls : public GpuTest {};

TEST_F(FlatIndexRangeCalls, LimitOfResultsTellsTheTotal) {
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

TEST_F(FlatIndexRangeCalls, NothingToSearch) {
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

TEST_F(FlatIndexRangeCalls, BadArgumentsAreNamed) {
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

TEST_F(FlatIndexRangeCalls, LittleMemoryMakesParts) {
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
    int failures = 0;
    for (bool isFailing = true; isFailing; failures += isFailing) {
        ASSERT_LT(failures, 100);
        faiss::RangeSearchResult failed(c.q);
        resources->failAfter(failures);
        isFailing = false;
        try {
            index.range_search(c.q, data.queries.data(), radius, &failed);
        } catch (const faiss::FaissException&) {
            isFailing = true;
            EXPECT_EQ(failed.labels, nullptr) << failures;
        }
        resources->failNever();
        faiss::RangeSearchResult again(c.q);
        index.range_search(c.q, data.queries.data(), radius, &again);
        EXPECT_EQ(again.lims[c.q], result.lims[c.q]);
    }
    EXPECT_GE(failures, 3); // queries, scratch, results
}

TEST_F(FlatIndexRangeCalls, ThreadsWithResourcesOfTheirOwn) {
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

TEST_F(FlatIndexRangeCalls, InterruptsEndIt) {
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

/// Searches of one index from several threads at the same time, each on
/// resources of its own (SearchParametersBitsFlat): the bits of one search
/// after another, also where the first ones make what the index keeps.

#include <atomic>
#include <chrono>
#include <thread>

#include <faiss/impl/IDSelector.h>

#include "tests/flat/ThreadHarness.h"

namespace faiss_bits::test {
namespace {

class FlatThreads : public GpuTest {};

TEST_F(FlatThreads, OneIndex) {
    FlatCase c;
    c.n = 60000;
    c.d = 48;
    for (const FlatCase& kind : kindsOf(c)) {
        SCOPED_TRACE(::testing::Message() << kind);
        OwnResources own;
        const auto index = FlatData(kind).makeIndex(&own);
        for (SearchMode mode : {SearchMode::Certified, SearchMode::Plain}) {
            index->search_mode = mode;
            const auto jobs =
                    jobsOf({{1, 10},
                            {3, 1},
                            {16, 100},
                            {100, 5},
                            {2000, 20},
                            {7, 3000}},
                           *index);
            searchInThreads(*index, jobs, 4);
        }
    }
}

/// Of each of several indexes, for the first time: they make the image.
TEST_F(FlatThreads, FirstSearches) {
    const int d = 64;
    const int64_t n = 1 << 18;
    const auto x = makeVectors(n, d, 1);
    for (faiss::MetricType metric :
         {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        GpuIndexBitsFlatConfig config;
        config.keepSearchImage = false;
        GpuIndexBitsFlat without(sharedResources(), d, metric, config);
        without.add(n, x.data());
        for (const std::vector<Shape>& shapes :
             {std::vector<Shape>{{1000, 10}, {300, 100}},
              std::vector<Shape>{{4, 10}, {8, 10}, {1, 20}},
              std::vector<Shape>{{4, 10}, {2, 10}, {1, 20}}}) {
            const auto jobs = jobsOf(shapes, without);
            for (int again = 0; again < 5; ++again) {
                OwnResources own;
                GpuIndexBitsFlat index(&own, d, metric);
                index.add(n, x.data());
                searchInThreads(index, jobs, 2);
                // Inner products of up to four queries are computed of all
                // vectors.
                const bool isMade = shapes[1].q > 4;
                if (isMade || metric == faiss::METRIC_INNER_PRODUCT) {
                    EXPECT_EQ(
                            index.plan(1000, 10).searchImage,
                            isMade ? "kept" : "make");
                }
            }
        }
    }
}

/// What other metrics keep of the vectors.
TEST_F(FlatThreads, FirstSearchesByOtherMetrics) {
    const int d = 24;
    const int64_t n = 30000;
    auto x = makeVectors(n, d, 1);
    for (float& one : x) {
        one = std::abs(one) + 0.01f;
    }
    for (faiss::MetricType metric :
         {faiss::METRIC_Canberra,
          faiss::METRIC_BrayCurtis,
          faiss::METRIC_JensenShannon,
          faiss::METRIC_L1}) {
        GpuIndexBitsFlat alone(sharedResources(), d, metric);
        alone.add(n, x.data());
        const auto jobs = jobsOf({{20, 10}, {200, 5}}, alone);
        for (int again = 0; again < 3; ++again) {
            OwnResources own;
            GpuIndexBitsFlat index(&own, d, metric);
            index.add(n, x.data());
            searchInThreads(index, jobs, 2);
        }
    }
}

TEST_F(FlatThreads, CountsAllSearches) {
    OwnResources own;
    GpuIndexBitsFlatL2 index(&own, 32);
    index.add(50000, makeVectors(50000, 32, 1).data());
    const auto jobs = jobsOf({{100, 10}, {5, 10}}, index);
    index.reset_stats();
    inThreads([&](int t, const faiss::SearchParameters* params) {
        for (int i = 0; i < 10; ++i) {
            for (const Job& job : jobs[t]) {
                job.enqueue(index, params);
            }
        }
    });
    const SearchStats stats = index.stats();
    EXPECT_EQ(stats.certified + stats.repeated, 105 * 10 * kThreads);
    EXPECT_GE(stats.rescored, 105 * 10 * kThreads * 10);
    index.reset_stats();
    EXPECT_EQ(index.stats().rescored, 0);
}

/// Keeps a stream busy until it goes.
class Hold {
   public:
    explicit Hold(cudaStream_t stream) {
        BITS_CUDA_CHECK(cudaLaunchHostFunc(
                stream,
                [](void* released) {
                    for (int i = 0; i < 500; ++i) {
                        if (*static_cast<std::atomic<bool>*>(released)) {
                            return;
                        }
                        std::this_thread::sleep_for(
                                std::chrono::milliseconds(10));
                    }
                },
                &released_));
    }
    ~Hold() {
        released_ = true;
        (void)cudaDeviceSynchronize();
    }

   private:
    std::atomic<bool> released_{false};
};

/// Vectors and image that are still to be written on the index's stream are
/// there for searches on other streams.
TEST_F(FlatThreads, WhatIsUnderWayIsWaitedFor) {
    const int d = 32, k = 10;
    const int64_t n = 100000;
    for (DataType storage : kStorages) {
        OwnResources own, others;
        others.getResources()->initializeForDevice(0);
        const SearchParametersBitsFlat params(&others);
        const DeviceBuffer<float> x(makeVectors(n, d, 1));
        GpuIndexBitsFlat alone(
                sharedResources(), d, faiss::METRIC_L2, configOf(storage));
        alone.add(n, x.data());
        Job first(makeVectors(200, d, 2), d, k);
        Job second(makeVectors(100, d, 3), d, k);
        first.expect(alone);
        second.expect(alone);

        GpuIndexBitsFlat index(&own, d, faiss::METRIC_L2, configOf(storage));
        index.reserve(n);
        {
            const Hold hold(own.getDefaultStream(0));
            index.add(n, x.data());
            first.enqueue(index, &params);
        }
        EXPECT_TRUE(sameOutput(first.downloaded(), first.expected));

        GpuIndexBitsFlat other(&own, d, faiss::METRIC_L2, configOf(storage));
        other.add(n, x.data());
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        {
            const Hold hold(own.getDefaultStream(0));
            first.enqueue(other, nullptr); // makes the image
            second.enqueue(other, &params);
        }
        EXPECT_TRUE(sameOutput(first.downloaded(), first.expected));
        EXPECT_TRUE(sameOutput(second.downloaded(), second.expected));
    }
}

/// FAISS's copyFrom tells nobody.
TEST_F(FlatThreads, SmallVectorsOfTheBaseClass) {
    const int d = 16;
    OwnResources own, others;
    const SearchParametersBitsFlat params(&others);
    GpuIndexBitsFlatL2 index(&own, d);
    index.add(5000, makeVectors(5000, d, 1).data());
    faiss::IndexFlatL2 cpu(d);
    cpu.add(6000, makeVectors(6000, d, 2).data());
    const GpuIndexBitsFlatL2 alone(sharedResources(), &cpu);
    Job job(makeVectors(50, d, 3), d, 10);
    job.expect(alone);
    EXPECT_TRUE(sameOutput(
            job.onHost(index, &params), searchOnHost(index, job.queries, 10)));
    index.GpuIndexFlat::copyFrom(&cpu);
    EXPECT_TRUE(sameOutput(job.onHost(index, &params), job.expected));
    EXPECT_TRUE(sameOutput(searchOnHost(index, job.queries, 10), job.expected));
    index.copyFrom(&cpu);
    EXPECT_TRUE(sameOutput(job.onHost(index, &params), job.expected));
}

TEST_F(FlatThreads, SmallFiltersPlansAndVectors) {
    const int d = 16, k = 5;
    const int64_t n = 4000, q = 30;
    OwnResources own, others;
    GpuIndexBitsFlatL2 index(&own, d);
    const auto x = makeVectors(n, d, 1);
    index.add(n, x.data());
    faiss::IDSelectorRange range(100, 2000);
    faiss::SearchParameters plain;
    plain.sel = &range;
    SearchParametersBitsFlat params(&others);
    params.sel = &range;
    const Job job(makeVectors(q, d, 2), d, k);
    const SearchOutput expected = job.onHost(index, &plain);
    EXPECT_TRUE(sameOutput(job.onHost(index, &params), expected));
    EXPECT_EQ(
            index.plan(q, k, &params).details,
            index.plan(q, k, &plain).details);

    for (const faiss::SearchParameters* given :
         {static_cast<const faiss::SearchParameters*>(&plain),
          static_cast<const faiss::SearchParameters*>(&params)}) {
        SearchOutput out;
        out.distances.resize(q * k);
        out.labels.resize(q * k);
        std::vector<float> found(q * k * d);
        index.search_and_reconstruct(
                q,
                job.queries.data(),
                k,
                out.distances.data(),
                out.labels.data(),
                found.data(),
                given);
        EXPECT_TRUE(sameOutput(out, expected));
        for (int64_t i = 0; i < q * k; ++i) {
            ASSERT_TRUE(std::equal(
                    found.begin() + i * d,
                    found.begin() + (i + 1) * d,
                    x.begin() + out.labels[i] * d));
        }
    }
    // Plans are of the temporary memory of the resources.
    faiss::gpu::StandardGpuResources small;
    small.setPinnedMemory(0);
    small.setTempMemory(size_t(1) << 20);
    const SearchParametersBitsFlat little(&small);
    const int64_t many = 20000;
    EXPECT_LT(
            index.plan(many, 100, &little, false).scratchBytes,
            index.plan(many, 100, nullptr, false).scratchBytes);
}

TEST_F(FlatThreads, SmallArguments) {
    OwnResources own;
    GpuIndexBitsFlatL2 index(&own, 8);
    index.add(10, makeVectors(10, 8, 1).data());
    const Job job(makeVectors(2, 8, 2), 8, 3);
    const SearchParametersBitsFlat none; // the index's
    EXPECT_TRUE(sameOutput(
            job.onHost(index, &none), searchOnHost(index, job.queries, 3)));
    struct Other : SearchParametersBitsFlat {
    } other;
    EXPECT_TRUE(
            faissThrowsNaming([&] { job.onHost(index, &other); }, "params"));
    faiss::gpu::GpuResourcesProvider* provider = nullptr;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { SearchParametersBitsFlat params(provider); }, "provider"));
    SearchOutput out;
    out.distances.resize(6);
    out.labels.resize(6);
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                index.search_and_reconstruct(
                        2,
                        job.queries.data(),
                        3,
                        out.distances.data(),
                        out.labels.data(),
                        nullptr);
            },
            "recons"));
}

} // namespace
} // namespace faiss_bits::test

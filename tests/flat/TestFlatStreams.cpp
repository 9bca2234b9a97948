/// GpuIndexBitsFlat on streams and from threads.

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

class FlatStreams : public GpuTest {};

/// Host and device memory of one search whose pointers are all on the device.
struct DeviceSearch {
    DeviceSearch(const FlatData& data, int k)
            : x(data.c.q * data.c.d),
              distances(data.c.q * k),
              labels(data.c.q * k) {}

    DeviceBuffer<float> x;
    DeviceBuffer<float> distances;
    DeviceBuffer<int64_t> labels;
};

/// Queries arrive on the stream just before, results leave it just after, and
/// nothing waits in between.
TEST_F(FlatStreams, WorkIsOrderedOnTheUsersStream) {
    FlatCase c;
    c.n = 50000;
    c.d = 64;
    c.fill = Fill::Integers;
    const int k = 100;
    TestStream stream;
    for (int64_t q : {1, 100}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            const FlatData data(kind);
            OwnResources resources;
            resources.setDefaultStream(0, stream);
            const auto index = data.makeIndex(&resources);
            const DeviceSearch search(data, k);
            const DeviceBuffer<float> source(data.queries);
            const DeviceBuffer<float> distances(q * k);
            const DeviceBuffer<int64_t> labels(q * k);
            ASSERT_EQ(
                    cudaMemcpyAsync(
                            search.x.data(),
                            source.data(),
                            sizeof(float) * data.queries.size(),
                            cudaMemcpyDeviceToDevice,
                            stream),
                    cudaSuccess);
            index->search(
                    q,
                    search.x.data(),
                    k,
                    search.distances.data(),
                    search.labels.data());
            ASSERT_EQ(
                    cudaMemcpyAsync(
                            distances.data(),
                            search.distances.data(),
                            sizeof(float) * q * k,
                            cudaMemcpyDeviceToDevice,
                            stream),
                    cudaSuccess);
            ASSERT_EQ(
                    cudaMemcpyAsync(
                            labels.data(),
                            search.labels.data(),
                            sizeof(int64_t) * q * k,
                            cudaMemcpyDeviceToDevice,
                            stream),
                    cudaSuccess);
            data.expectExact({distances.download(), labels.download()}, k);
        }
    }
}

TEST_F(FlatStreams, NullStream) {
    FlatCase c;
    c.fill = Fill::Integers;
    c.q = 40;
    const FlatData data(c);
    OwnResources resources;
    resources.setDefaultNullStreamAllDevices();
    const auto index = data.makeIndex(&resources);
    data.expectExact(searchOnHost(*index, data.queries, 20), 20);
    data.expectExact(searchOnDevice(*index, data.queries, 20), 20);
}

/// A search of device memory returns while the stream is still held up.
TEST_F(FlatStreams, DeviceSearchDoesNotWait) {
    FlatCase c;
    c.n = 20000;
    c.fill = Fill::Integers;
    const int k = 50;
    for (int64_t q : {1, 100}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            const FlatData data(kind);
            TestStream stream;
            OwnResources resources;
            resources.setDefaultStream(0, stream);
            const auto index = data.makeIndex(&resources);
            DeviceSearch search(data, k);
            search.x.upload(data.queries);
            const auto run = [&] {
                index->search(
                        q,
                        search.x.data(),
                        k,
                        search.distances.data(),
                        search.labels.data());
            };
            // Kernels are loaded and cuBLAS is set up by the first call.
            run();
            ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);

            std::atomic<bool> released{false};
            std::atomic<bool> gaveUp{false};
            struct Hold {
                std::atomic<bool>* released;
                std::atomic<bool>* gaveUp;
            } hold{&released, &gaveUp};
            ASSERT_EQ(
                    cudaLaunchHostFunc(
                            stream,
                            [](void* data) {
                                auto* hold = static_cast<Hold*>(data);
                                for (int i = 0; i < 1000; ++i) {
                                    if (*hold->released) {
                                        return;
                                    }
                                    std::this_thread::sleep_for(
                                            std::chrono::milliseconds(10));
                                }
                                *hold->gaveUp = true;
                            },
                            &hold),
                    cudaSuccess);
            run();
            EXPECT_FALSE(gaveUp) << kind << ": the call waited";
            released = true;
            ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
            data.expectExact(
                    {search.distances.download(), search.labels.download()}, k);
        }
    }
}

/// Two threads, each with resources, a stream and an index of its own.
TEST_F(FlatStreams, TwoThreadsAtOnce) {
    struct Worker {
        explicit Worker(const FlatCase& c) : data(c) {
            data.truth();
        }
        void run() {
            OwnResources resources;
            TestStream stream;
            resources.setDefaultStream(0, stream);
            const auto index = data.makeIndex(&resources);
            for (int i = 0; i < 30; ++i) {
                results.push_back(
                        i % 2 ? searchOnHost(*index, data.queries, 60)
                              : searchOnDevice(*index, data.queries, 60));
            }
        }
        FlatData data;
        std::vector<SearchOutput> results;
    };
    FlatCase c;
    c.n = 30000;
    c.d = 48;
    c.q = 80;
    c.fill = Fill::Integers;
    Worker first(c);
    c.metric = faiss::METRIC_INNER_PRODUCT;
    c.q = 4;
    c.seed = 9;
    Worker second(c);
    std::thread thread([&] { first.run(); });
    second.run();
    thread.join();
    for (const Worker* worker : {&first, &second}) {
        ASSERT_EQ(worker->results.size(), 30u);
        worker->data.expectExact(worker->results[0], 60);
        for (const SearchOutput& result : worker->results) {
            ASSERT_TRUE(sameOutput(result, worker->results[0]));
        }
    }
}

/// The caller's current device is left alone.
TEST_F(FlatStreams, SmallCurrentDeviceStays) {
    int count = 0;
    ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
    if (count < 2) {
        GTEST_SKIP() << "needs two CUDA devices";
    }
    FlatCase c;
    c.fill = Fill::Integers;
    const FlatData data(c);
    GpuIndexBitsFlatConfig config;
    config.device = 1;
    OwnResources resources;
    GpuIndexBitsFlatL2 index(&resources, c.d, config);
    index.add(c.n, data.vectors.data());
    data.expectExact(searchOnHost(index, data.queries, 5), 5);
    int device = -1;
    ASSERT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 0);
}

} // namespace
} // namespace faiss_bits::test

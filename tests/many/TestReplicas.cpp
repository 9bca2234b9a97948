/// GpuIndexBitsReplicas: the bits of one index, whatever the number of copies.

#include <algorithm>

#include <faiss/impl/IDSelector.h>

#include "kernels/common/CudaCheck.h"
#include "tests/many/ManyHarness.h"

namespace faiss_bits::test {
namespace {

constexpr int kCounts[] = {1, 2, 3, 8};

class Replicas : public GpuTest {};

TEST_F(Replicas, SmallEveryMetricIsOneIndex) {
    const int d = 9;
    const auto vectors = positiveVectors(203, d, 1);
    for (const ManyMetric& metric : manyMetrics<faiss::MetricType>()) {
        for (int count : kCounts) {
            const ReplicasCase c(
                    placesOf(count),
                    d,
                    metric.type,
                    vectors,
                    smallConfig(),
                    metric.arg);
            for (int64_t q : {1, 7, 50}) {
                SCOPED_TRACE(
                        ::testing::Message()
                        << "metric " << int(metric.type) << " replicas "
                        << count << " q " << q);
                c.expectSame(positiveVectors(q, d, 2), 40);
                c.expectSame(positiveVectors(q, d, 2), 250);
            }
        }
    }
}

TEST_F(Replicas, SmallHardVectors) {
    const int d = 12;
    for (Hard kind : kHard) {
        for (const auto& config : waysOf()) {
            const ReplicasCase c(
                    placesOf(3),
                    d,
                    faiss::METRIC_L2,
                    makeHard(kind, 500, d, 5),
                    config);
            c.expectSame(makeHard(kind, 40, d, 6), 30);
        }
    }
}

TEST_F(Replicas, SmallEveryStorage) {
    const int d = 24;
    for (DataType storage : kStorages) {
        for (const auto& config : waysOf(smallConfig(storage))) {
            const ReplicasCase c(
                    placesOf(2),
                    d,
                    faiss::METRIC_INNER_PRODUCT,
                    makeVectors(400, d, 7),
                    config);
            c.expectSame(makeVectors(50, d, 8), 30);
        }
    }
}

TEST_F(Replicas, LargerShapes) {
    const int d = 32;
    const auto vectors = makeVectors(20000, d, 1);
    for (const auto& config : waysOf()) {
        const ReplicasCase c(placesOf(3), d, faiss::METRIC_L2, vectors, config);
        c.expectSame(makeVectors(5000, d, 2), 100);
        c.expectSame(makeVectors(900, d, 3), 2000);
    }
}

/// So many queries or results on the host that two replicas of a device search
/// at the same time; with resources of one object they do not.
TEST_F(Replicas, TwoAtATime) {
    const int d = 16;
    const auto vectors = makeVectors(5000, d, 1);
    DeviceList shared;
    for (int i = 0; i < 3; ++i) {
        shared.add(partResources(0), 0);
    }
    for (const DeviceList& places : {placesOf(2), placesOf(5), shared}) {
        const ReplicasCase c(places, d, faiss::METRIC_L2, vectors);
        for (int64_t q : {4095, 4096, 4097}) {
            c.expectSame(makeVectors(q, d, 2), 10);
        }
        c.expectSame(makeVectors(2001, d, 3), 2000);
        std::vector<idx_t> got(5000), want(5000);
        const auto queries = makeVectors(5000, d, 4);
        c.many.assign(5000, queries.data(), got.data());
        c.one.assign(5000, queries.data(), want.data());
        EXPECT_EQ(got, want);
        faiss::IDSelectorRange some(10, 3000);
        faiss::SearchParameters params;
        params.sel = &some;
        c.expectSame(queries, 10, &params);
    }
}

/// Another device's results of 64 MB and more go to the first one in pieces; on
/// both sides of where one piece becomes two, and more than two.
TEST_F(Replicas, LargerResultsGoHomeInPieces) {
    const int d = 8;
    const int64_t k = 2000;
    const auto vectors = makeVectors(9000, d, 1, Fill::Integers);
    for (const auto& config : waysOf()) {
        if (config.joinSameDevice && numDevices() < 2) {
            continue; // one group has no copies
        }
        SCOPED_TRACE(
                ::testing::Message()
                << nameOfWay(config) << ", " << numDevices() << " devices");
        faiss::gpu::StandardGpuResources resources[2];
        DeviceList places;
        for (int i = 0; i < 2; ++i) {
            resources[i].setTempMemory(size_t(768) << 20);
            places.add(&resources[i], i % std::min(2, numDevices()));
        }
        const ReplicasCase c(places, d, faiss::METRIC_L2, vectors, config);
        for (int64_t q : {2 * 5333, 2 * 5333 + 1, 2 * 8001 + 1}) {
            const auto queries = makeVectors(q, d, 2, Fill::Integers);
            const auto want = searchOnDevice(c.one, queries, k);
            for (int i = 0; i < 2; ++i) { // again in the memory given back
                EXPECT_TRUE(
                        sameOutput(searchOnDevice(c.many, queries, k), want))
                        << "q = " << q;
            }
        }
    }
}

/// The other devices' threads are at work before it is known that some arrays
/// lie on the host: then they begin again, or the call throws.
TEST_F(Replicas, ThreadsAtWorkWithOtherArrays) {
    const int d = 8;
    const int64_t k = 5;
    const auto vectors = makeVectors(900, d, 1, Fill::Integers);
    for (const auto& config : waysOf()) {
        const ReplicasCase c(placesOf(3), d, faiss::METRIC_L2, vectors, config);
        const int64_t q = 3 * 2048;
        const auto queries = makeVectors(q, d, 2, Fill::Integers);
        const auto want = searchOnDevice(c.one, queries, k);
        const DeviceBuffer<float> x(queries);
        for (int run = 0; run < 2; ++run) {
            SearchOutput got = want;
            std::fill(got.labels.begin(), got.labels.end(), -2);
            c.many.search(
                    q, x.data(), k, got.distances.data(), got.labels.data());
            EXPECT_TRUE(sameOutput(got, want));
            EXPECT_TRUE(sameOutput(searchOnDevice(c.many, queries, k), want));
            if (numDevices() < 2) {
                continue;
            }
            BITS_CUDA_CHECK(cudaSetDevice(1));
            {
                const DeviceBuffer<int64_t> far(q * k);
                BITS_CUDA_CHECK(cudaSetDevice(0));
                EXPECT_THROW(
                        c.many.search(
                                q,
                                x.data(),
                                k,
                                got.distances.data(),
                                far.data()),
                        faiss::FaissException);
            }
            EXPECT_TRUE(sameOutput(searchOnDevice(c.many, queries, k), want));
        }
    }
}

TEST_F(Replicas, SmallAdditionsAndReset) {
    const int d = 6;
    for (const auto& config : waysOf()) {
        ReplicasCase c(placesOf(3), d, faiss::METRIC_L2, {}, config);
        c.add(makeVectors(50, d, 1));
        const auto more = makeVectors(31, d, 2);
        const DeviceBuffer<float> onDevice(more);
        c.many.add(31, onDevice.data());
        c.one.add(31, more.data());
        const auto queries = makeVectors(9, d, 3);
        c.expectSame(queries, 60);
        for (int replica = 0; replica < 3; ++replica) {
            EXPECT_EQ(c.many.at(replica)->ntotal, 81);
        }
        std::vector<float> got(20 * d), want(20 * d);
        c.many.reconstruct_n(40, 20, got.data());
        c.one.reconstruct_n(40, 20, want.data());
        EXPECT_EQ(got, want);
        faiss::IndexFlat cpu(1);
        c.many.copyTo(&cpu);
        EXPECT_EQ(cpu.ntotal, 81);
        c.many.reset();
        c.one.reset();
        c.expectSame(queries, 3);
        c.add(makeVectors(10, d, 4));
        c.expectSame(queries, 3);
    }
}

} // namespace
} // namespace faiss_bits::test

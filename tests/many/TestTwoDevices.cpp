/// Shards and replicas on two devices. Skipped by name where there is one.

#include "faiss_bits/many/DeviceCopies.h"
#include "tests/many/ManyHarness.h"

namespace faiss_bits::test {
namespace {

template <class Many>
class TwoDevices : public GpuTest {
   protected:
    void SetUp() override {
        GpuTest::SetUp();
        if (!IsSkipped() && numDevices() < 2) {
            GTEST_SKIP() << "one CUDA device";
        }
    }
};

TYPED_TEST_SUITE(TwoDevices, ManyKinds);

/// Straight from device to device, and through the host.
std::vector<GpuIndexBitsManyConfig> waysOver() {
    std::vector<GpuIndexBitsManyConfig> ways(2, smallConfig());
    ways[1].usePeerAccess = false;
    return ways;
}

TYPED_TEST(TwoDevices, SmallAreOneIndex) {
    const int d = 9;
    for (const ManyMetric& metric : manyMetrics<faiss::MetricType>()) {
        for (int count : {2, 3, 8}) {
            for (const auto& config : waysOver()) {
                SCOPED_TRACE(
                        ::testing::Message()
                        << "metric " << int(metric.type) << " parts " << count
                        << " peers " << config.usePeerAccess);
                const ManyCase<TypeParam> c(
                        placesOf(count, 2),
                        d,
                        metric.type,
                        positiveVectors(203, d, 1),
                        config,
                        metric.arg);
                for (int64_t q : {1, 2, 40}) {
                    c.expectSame(positiveVectors(q, d, 2), 40);
                    c.expectSame(positiveVectors(q, d, 2), 250);
                }
            }
        }
    }
}

TYPED_TEST(TwoDevices, SmallHardVectors) {
    const int d = 12;
    for (Hard kind : kHard) {
        for (const auto& config : waysOver()) {
            const ManyCase<TypeParam> c(
                    placesOf(3, 2),
                    d,
                    faiss::METRIC_L2,
                    makeHard(kind, 500, d, 5),
                    config);
            c.expectSame(makeHard(kind, 40, d, 6), 300);
        }
    }
}

TYPED_TEST(TwoDevices, SmallAdditionsFromTheFirstDevice) {
    const int d = 7;
    for (const auto& config : waysOver()) {
        ManyCase<TypeParam> c(placesOf(4, 2), d, faiss::METRIC_L2, {}, config);
        for (int i = 0; i < 3; ++i) {
            const auto vectors = makeVectors(100, d, 1 + i, Fill::Integers);
            const DeviceBuffer<float> onDevice(vectors);
            c.many.add(100, onDevice.data());
            c.one.add(100, vectors.data());
        }
        const auto queries = makeVectors(30, d, 9, Fill::Integers);
        c.expectSame(queries, 200);
        std::vector<float> got(300 * d), want(300 * d);
        c.many.reconstruct_n(0, 300, got.data());
        c.one.reconstruct_n(0, 300, want.data());
        EXPECT_EQ(got, want);
    }
}

/// Of shards so few results are merged on one device, and one more on both.
TYPED_TEST(TwoDevices, SmallEdges) {
    const int d = 5;
    for (const auto& config : waysOver()) {
        for (int count : {2, 4}) {
            ManyCase<TypeParam> c(
                    placesOf(count, 2),
                    d,
                    faiss::METRIC_L2,
                    makeVectors(700, d, 1, Fill::Integers),
                    config);
            const auto queries = makeVectors(1024, d, 2, Fill::Integers);
            for (int64_t k : {511, 512, 513}) {
                c.expectSame(queries, k);
            }
            c.add(makeVectors(100, d, 3, Fill::Integers));
            c.expectSame(queries, 512);
        }
    }
}

TYPED_TEST(TwoDevices, LargerShapes) {
    const int d = 64;
    const auto vectors = makeVectors(50000, d, 1);
    for (const auto& config : waysOver()) {
        const ManyCase<TypeParam> c(
                placesOf(2, 2), d, faiss::METRIC_L2, vectors, config);
        c.expectSame(makeVectors(10000, d, 2), 100);
        c.expectSame(makeVectors(3000, d, 3), 2000);
    }
}

/// One piece of pinned memory, and a thread on each device that wants it.
TYPED_TEST(TwoDevices, OneResourcesObjectForBoth) {
    faiss::gpu::StandardGpuResources resources;
    resources.setPinnedMemory(size_t(128) << 20);
    resources.setTempMemory(size_t(256) << 20);
    DeviceList places;
    places.add(&resources, 0);
    places.add(&resources, 1);
    const int d = 8;
    const ManyCase<TypeParam> c(
            places, d, faiss::METRIC_L2, makeVectors(5000, d, 1));
    for (int i = 0; i < 3; ++i) {
        c.expectSame(makeVectors(4000, d, 2 + i), 1000);
        c.expectSame(makeVectors(300, d, 5 + i), 500);
    }
}

TYPED_TEST(TwoDevices, SmallArraysOnTheOtherDeviceAreRefused) {
    const ManyCase<TypeParam> c(
            placesOf(2, 2), 4, faiss::METRIC_L2, makeVectors(30, 4, 1));
    BITS_CUDA_CHECK(cudaSetDevice(1));
    {
        const DeviceBuffer<float> x(makeVectors(2, 4, 2));
        BITS_CUDA_CHECK(cudaSetDevice(0));
        std::vector<float> distances(4);
        std::vector<idx_t> labels(4);
        EXPECT_TRUE(faissThrowsNaming(
                [&] {
                    c.many.search(
                            2, x.data(), 2, distances.data(), labels.data());
                },
                "x",
                "device 1"));
        BITS_CUDA_CHECK(cudaSetDevice(1));
    }
    BITS_CUDA_CHECK(cudaSetDevice(0));
}

} // namespace
} // namespace faiss_bits::test

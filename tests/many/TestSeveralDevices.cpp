/// Shards and replicas on two, three and four devices, as many as there are.
/// Skipped by name where there is one.

#include "faiss_bits/many/DeviceCopies.h"
#include "tests/many/ManyHarness.h"

namespace faiss_bits::test {
namespace {

template <class Many>
class SeveralDevices : public SeveralDevicesTest {};

TYPED_TEST_SUITE(SeveralDevices, ManyKinds);

TYPED_TEST(SeveralDevices, SmallAreOneIndex) {
    const int d = 9;
    for (const ManyMetric& metric : manyMetrics<faiss::MetricType>()) {
        for (const WayOver& way : waysOver()) {
            for (int count : {way.devices, way.devices + 1, 8}) {
                SCOPED_TRACE(
                        ::testing::Message()
                        << "metric " << int(metric.type) << " parts " << count
                        << " on " << way);
                const ManyCase<TypeParam> c(
                        placesOf(count, way.devices),
                        d,
                        metric.type,
                        positiveVectors(203, d, 1),
                        way.config,
                        metric.arg);
                for (int64_t q : {1, 2, 40}) {
                    c.expectSame(positiveVectors(q, d, 2), 40);
                    c.expectSame(positiveVectors(q, d, 2), 250);
                }
            }
        }
    }
}

TYPED_TEST(SeveralDevices, SmallHardVectors) {
    const int d = 12;
    for (Hard kind : kHard) {
        for (const WayOver& way : waysOver()) {
            SCOPED_TRACE(::testing::Message() << way);
            const ManyCase<TypeParam> c(
                    placesOf(way.devices + 1, way.devices),
                    d,
                    faiss::METRIC_L2,
                    makeHard(kind, 500, d, 5),
                    way.config);
            c.expectSame(makeHard(kind, 40, d, 6), 300);
        }
    }
}

TYPED_TEST(SeveralDevices, SmallAdditionsFromTheFirstDevice) {
    const int d = 7;
    for (const WayOver& way : waysOver()) {
        SCOPED_TRACE(::testing::Message() << way);
        ManyCase<TypeParam> c(
                placesOf(4, way.devices), d, faiss::METRIC_L2, {}, way.config);
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

/// Of shards so few results are merged on one device, and some more on all.
TYPED_TEST(SeveralDevices, SmallEdges) {
    const int d = 5;
    for (const WayOver& way : waysOver()) {
        SCOPED_TRACE(::testing::Message() << way);
        const int64_t most = (1 << 19) / (way.devices - 1) / 1024;
        for (int count : {way.devices, 2 * way.devices}) {
            ManyCase<TypeParam> c(
                    placesOf(count, way.devices),
                    d,
                    faiss::METRIC_L2,
                    makeVectors(700, d, 1, Fill::Integers),
                    way.config);
            const auto queries = makeVectors(1024, d, 2, Fill::Integers);
            for (int64_t k : {most - 1, most, most + 1}) {
                c.expectSame(queries, k);
            }
            c.add(makeVectors(100, d, 3, Fill::Integers));
            c.expectSame(queries, most);
        }
    }
}

TYPED_TEST(SeveralDevices, LargerShapes) {
    const int d = 64;
    const auto vectors = makeVectors(50000, d, 1);
    for (const WayOver& way : waysOver()) {
        SCOPED_TRACE(::testing::Message() << way);
        const ManyCase<TypeParam> c(
                placesOf(way.devices, way.devices),
                d,
                faiss::METRIC_L2,
                vectors,
                way.config);
        c.expectSame(makeVectors(10000, d, 2), 100);
        c.expectSame(makeVectors(3000, d, 3), 2000);
    }
}

/// The slices of replicas follow what searches took only where that changes no
/// bit: in plain mode they stay.
TYPED_TEST(SeveralDevices, LargerPlainSearchesRepeat) {
    const int d = 24;
    const auto vectors = makeVectors(20000, d, 1);
    const auto queries = makeVectors(12000, d, 2);
    ManyCase<TypeParam> c(
            placesOf(severalDevices().back(), severalDevices().back()),
            d,
            faiss::METRIC_L2,
            vectors);
    c.many.search_mode = SearchMode::Plain;
    const auto first = searchOnDevice(c.many, queries, 10);
    for (int run = 0; run < 6; ++run) {
        EXPECT_TRUE(sameOutput(searchOnDevice(c.many, queries, 10), first))
                << "run " << run;
    }
}

/// One piece of pinned memory, and a thread on each device that wants it.
TYPED_TEST(SeveralDevices, OneResourcesObjectForAll) {
    faiss::gpu::StandardGpuResources resources;
    resources.setPinnedMemory(size_t(128) << 20);
    resources.setTempMemory(size_t(256) << 20);
    DeviceList places;
    for (int device = 0; device < severalDevices().back(); ++device) {
        places.add(&resources, device);
    }
    const int d = 8;
    const ManyCase<TypeParam> c(
            places, d, faiss::METRIC_L2, makeVectors(5000, d, 1));
    for (int i = 0; i < 3; ++i) {
        c.expectSame(makeVectors(4000, d, 2 + i), 1000);
        c.expectSame(makeVectors(300, d, 5 + i), 500);
    }
}

TYPED_TEST(SeveralDevices, SmallArraysOnTheOtherDeviceAreRefused) {
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

/// Where vectors lie changes nothing; what is wrong is named; interrupts.

#include <cmath>

#include "kernels/cluster/ClusterSums.h"
#include "tests/cluster/ClusteringHarness.h"
#include "tests/flat/PagingHarness.h"

namespace faiss_bits::test {
namespace {

class ClusteringInputs : public GpuTest {};

constexpr int kDim = 12;
constexpr int kClusters = 10;

faiss::ClusteringParameters someOptions() {
    faiss::ClusteringParameters options;
    options.niter = 4;
    options.max_points_per_centroid = 150;
    options.min_points_per_centroid = 1;
    return options;
}

void expectSame(const GpuBitsClustering& a, const Clustered& b) {
    EXPECT_EQ(a.centroids, b.centroids);
    ASSERT_EQ(a.iteration_stats.size(), b.stats.size());
    for (size_t i = 0; i < b.stats.size(); ++i) {
        EXPECT_EQ(a.iteration_stats[i].obj, b.stats[i].obj);
        EXPECT_EQ(a.iteration_stats[i].nsplit, b.stats[i].nsplit);
    }
}

TEST_F(ClusteringInputs, HostDeviceAndStreamedGiveTheSameBits) {
    for (int n : {1000, 1500, 1501, 3000}) { // the last two are sampled
        const auto x = clusteredVectors(n, kDim, kClusters);
        std::vector<float> weights(n);
        for (int i = 0; i < n; ++i) {
            weights[i] = float(i % 5);
        }
        const auto expected =
                cluster(x, kDim, kClusters, someOptions(), {}, weights);
        const DeviceBuffer<float> deviceX(x);
        const DeviceBuffer<float> deviceWeights(weights);
        for (int where = 0; where < 5; ++where) {
            GpuBitsClustering clustering(
                    sharedResources(), kDim, kClusters, someOptions());
            if (where == 4) {
                clustering.most_device_bytes = 1;
            }
            clustering.train(
                    n,
                    where & 1 ? deviceX.data() : x.data(),
                    where & 2 ? deviceWeights.data() : weights.data());
            expectSame(clustering, expected);
        }
        EXPECT_EQ(deviceX.download(), x);
    }
}

TEST_F(ClusteringInputs, ManyBlocksFromTheHostOrTheDevice) {
    // Two blocks of vectors.
    const int d = 128;
    const int64_t n = clusterBlockRows(d) + 131072 + 77;
    if (!hasFreeMemory(size_t(4) << 30)) {
        GTEST_SKIP() << "needs 4 GiB of the GPU's memory";
    }
    std::vector<float> x(n * d);
    uint32_t state = 1;
    for (float& value : x) {
        state = state * 1664525 + 1013904223;
        value = float(state >> 8) * 0x1p-24f;
    }
    faiss::ClusteringParameters options;
    options.niter = 2;
    options.max_points_per_centroid = 1 << 20;
    const auto expected = cluster(x, d, 16, options);
    EXPECT_LT(expected.stats[1].obj, expected.stats[0].obj);
    GpuBitsClustering streamed(sharedResources(), d, 16, options);
    streamed.most_device_bytes = 1;
    streamed.train(n, x.data());
    expectSame(streamed, expected);
}

TEST_F(ClusteringInputs, SameBitsEveryRun) {
    const auto x = clusteredVectors(20000, 33, 50);
    const auto first = cluster(x, 33, 50, someOptions());
    for (int i = 0; i < 3; ++i) {
        GpuBitsClustering again(sharedResources(), 33, 50, someOptions());
        again.train(20000, x.data());
        expectSame(again, first);
    }
}

TEST_F(ClusteringInputs, TrainsOnAsFaissDoes) {
    const auto x = clusteredVectors(1000, kDim, kClusters);
    GpuBitsClustering clustering(
            sharedResources(), kDim, kClusters, someOptions());
    clustering.train(1000, x.data());
    const auto middle = clustering.centroids;
    clustering.train(1000, x.data());
    EXPECT_EQ(clustering.iteration_stats.size(), 8u);
    const auto expected = cluster(x, kDim, kClusters, someOptions(), middle);
    EXPECT_EQ(clustering.centroids, expected.centroids);
}

TEST_F(ClusteringInputs, WhatIsNotFiniteIsRefused) {
    for (int n : {1000, 3000}) {
        for (float bad : {NAN, INFINITY, -INFINITY}) {
            auto x = clusteredVectors(n, kDim, kClusters);
            x.back() = bad;
            GpuBitsClustering clustering(
                    sharedResources(), kDim, kClusters, someOptions());
            EXPECT_TRUE(faissThrowsNaming(
                    [&] { clustering.train(n, x.data()); }, "x", "NaN"));
            const DeviceBuffer<float> device(x);
            EXPECT_TRUE(faissThrowsNaming(
                    [&] { clustering.train(n, device.data()); }, "x", "NaN"));
            x.back() = 0;
            std::vector<float> weights(n, bad);
            EXPECT_TRUE(faissThrowsNaming(
                    [&] { clustering.train(n, x.data(), weights.data()); },
                    "x_weights",
                    "NaN"));
            EXPECT_TRUE(clustering.centroids.empty());
            EXPECT_TRUE(clustering.iteration_stats.empty());
        }
    }
}

TEST_F(ClusteringInputs, BadArgumentsAreNamed) {
    const std::vector<float> x(100 * kDim, 1.0f);
    const auto refuses = [&](auto change, const char* name, const char* value) {
        faiss::ClusteringParameters options;
        change(options);
        return faissThrowsNaming(
                [&] {
                    GpuBitsClustering(
                            sharedResources(), kDim, kClusters, options);
                },
                name,
                value);
    };
    EXPECT_TRUE(refuses([](auto& o) { o.niter = -1; }, "niter", "-1"));
    EXPECT_TRUE(refuses([](auto& o) { o.nredo = 0; }, "nredo", "0"));
    EXPECT_TRUE(
            refuses([](auto& o) { o.max_points_per_centroid = 0; },
                    "max_points_per_centroid",
                    "0"));
    EXPECT_TRUE(
            refuses([](auto& o) { o.min_points_per_centroid = -2; },
                    "min_points_per_centroid",
                    "-2"));
    EXPECT_TRUE(
            refuses([](auto& o) { o.decode_block_size = 100; },
                    "decode_block_size",
                    "100"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuBitsClustering(sharedResources(), 0, 2); }, "d", "0"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuBitsClustering(sharedResources(), 2, 0); }, "k", "0"));
    GpuBitsClustering clustering(sharedResources(), kDim, kClusters);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { clustering.train(9, x.data()); }, "n", "9"));
    EXPECT_TRUE(
            faissThrowsNaming([&] { clustering.train(100, nullptr); }, "x"));
    clustering.centroids.resize(kDim + 1);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { clustering.train(100, x.data()); }, "centroids"));
    clustering.centroids.resize((kClusters + 1) * kDim);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { clustering.train(100, x.data()); }, "centroids"));
}

TEST_F(ClusteringInputs, CanBeInterrupted) {
    const auto x = clusteredVectors(1500, kDim, kClusters);
    // Twice an iteration: at its search, and when it waits for it.
    for (int times : {1, 2, 3, 6, 8}) {
        GpuBitsClustering clustering(
                sharedResources(), kDim, kClusters, someOptions());
        {
            const InterruptScope interrupt(times);
            EXPECT_TRUE(faissThrowsNaming(
                    [&] { clustering.train(1500, x.data()); },
                    "computation",
                    "interrupted"));
        }
        EXPECT_TRUE(clustering.centroids.empty());
        EXPECT_TRUE(clustering.iteration_stats.empty());
        clustering.train(1500, x.data());
        expectSame(clustering, cluster(x, kDim, kClusters, someOptions()));
    }
}

} // namespace
} // namespace faiss_bits::test

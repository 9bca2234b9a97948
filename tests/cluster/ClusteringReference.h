#pragma once

#include <cmath>
#include <random>
#include <vector>

#include <faiss/Clustering.h>
#include <faiss/IndexFlat.h>
#include <gtest/gtest.h>

/// Vectors to cluster, and FAISS's own k-means of them on the CPU.
namespace faiss_bits::test {

inline std::vector<float> wholeVectors(int64_t n, int d, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<float> x(n * d);
    for (float& value : x) {
        value = float(int(random() % 401) - 200);
    }
    return x;
}

/// Around k centers that lie apart.
inline std::vector<float> clusteredVectors(
        int64_t n,
        int d,
        int k,
        float scale = 10) {
    std::mt19937 random(uint32_t(n) + d);
    std::normal_distribution<float> normal;
    std::vector<float> centers(k * d);
    for (float& value : centers) {
        value = scale * normal(random);
    }
    std::vector<float> x(n * d);
    for (int64_t i = 0; i < n; ++i) {
        const size_t center = random() % k;
        for (int j = 0; j < d; ++j) {
            x[i * d + j] = centers[center * d + j] + normal(random);
        }
    }
    return x;
}

struct Clustered {
    std::vector<float> centroids;
    std::vector<faiss::ClusteringIterationStats> stats;
};

inline Clustered clusterByFaiss(
        const std::vector<float>& x,
        int d,
        int k,
        const faiss::ClusteringParameters& options,
        const std::vector<float>& start = {},
        const std::vector<float>& weights = {}) {
    faiss::IndexFlat index(
            d,
            options.spherical ? faiss::METRIC_INNER_PRODUCT : faiss::METRIC_L2);
    faiss::Clustering clustering(d, k, options);
    clustering.centroids = start;
    clustering.train(
            int64_t(x.size()) / d,
            x.data(),
            index,
            weights.empty() ? nullptr : weights.data());
    return {clustering.centroids, clustering.iteration_stats};
}

/// Iteration by iteration the same but for FAISS's sums in float32.
inline void expectAlike(const Clustered& ours, const Clustered& theirs) {
    ASSERT_EQ(ours.stats.size(), theirs.stats.size());
    for (size_t i = 0; i < ours.stats.size(); ++i) {
        const auto& a = ours.stats[i];
        const auto& b = theirs.stats[i];
        EXPECT_NEAR(a.obj, b.obj, 1e-3 * std::abs(b.obj)) << i;
        EXPECT_NEAR(a.imbalance_factor, b.imbalance_factor, 0.02) << i;
        EXPECT_EQ(a.nsplit, b.nsplit) << i;
        EXPECT_GE(a.time, 0) << i;
    }
    ASSERT_EQ(ours.centroids.size(), theirs.centroids.size());
    double difference = 0;
    double size = 0;
    for (size_t i = 0; i < ours.centroids.size(); ++i) {
        difference += std::pow(ours.centroids[i] - theirs.centroids[i], 2);
        size += std::pow(theirs.centroids[i], 2);
    }
    EXPECT_LE(difference, 1e-4 * size);
}

} // namespace faiss_bits::test

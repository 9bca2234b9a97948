#pragma once

#include <random>
#include <vector>

#include <faiss/Clustering.h>
#include <faiss/IndexFlat.h>

#include "faiss_bits/cluster/GpuBitsClustering.h"
#include "tests/flat/IndexHarness.h"

/// What the tests of whole clusterings share.
namespace faiss_bits::test {

using gpu::GpuBitsClustering;

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

inline Clustered cluster(
        const std::vector<float>& x,
        int d,
        int k,
        const faiss::ClusteringParameters& options,
        const std::vector<float>& start = {},
        const std::vector<float>& weights = {}) {
    GpuBitsClustering clustering(sharedResources(), d, k, options);
    clustering.centroids = start;
    clustering.train(
            int64_t(x.size()) / d,
            x.data(),
            weights.empty() ? nullptr : weights.data());
    return {clustering.centroids, clustering.iteration_stats};
}

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

} // namespace faiss_bits::test

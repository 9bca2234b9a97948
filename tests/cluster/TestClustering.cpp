/// k-means on the GPU: against plain float64, and FAISS's own from the same
/// start.

#include <cmath>
#include <random>

#include <faiss/Clustering.h>
#include <faiss/IndexFlat.h>

#include "tests/cluster/ClusteringHarness.h"

namespace faiss_bits::test {
namespace {

class Clustering : public GpuTest {};

/// One step of Lloyd's method in float64: of whole numbers it is exact.
std::vector<float> stepOf(
        const std::vector<float>& x,
        const std::vector<float>& centroids,
        int d,
        double* objective) {
    const size_t n = x.size() / d;
    const size_t k = centroids.size() / d;
    std::vector<double> sums(k * d);
    std::vector<double> counts(k);
    *objective = 0;
    for (size_t i = 0; i < n; ++i) {
        size_t best = 0;
        double least = INFINITY;
        for (size_t c = 0; c < k; ++c) {
            double distance = 0;
            for (int j = 0; j < d; ++j) {
                const double difference =
                        double(x[i * d + j]) - centroids[c * d + j];
                distance += difference * difference;
            }
            if (distance < least) {
                least = distance;
                best = c;
            }
        }
        *objective += least;
        counts[best] += 1;
        for (int j = 0; j < d; ++j) {
            sums[best * d + j] += x[i * d + j];
        }
    }
    std::vector<float> result(k * d);
    for (size_t i = 0; i < k * d; ++i) {
        EXPECT_GT(counts[i / d], 0) << "choose another seed";
        result[i] = float(sums[i] / counts[i / d]);
    }
    return result;
}

TEST_F(Clustering, SmallStepIsExact) {
    for (int d : {1, 3, 4, 16, 33}) {
        for (int k : {1, 2, 13}) {
            const auto x = wholeVectors(500, d, d + k);
            faiss::ClusteringParameters options;
            options.niter = 0;
            options.max_points_per_centroid = 1000;
            const auto start = cluster(x, d, k, options);
            options.niter = 1;
            const auto result = cluster(x, d, k, options);
            double objective = 0;
            EXPECT_EQ(
                    result.centroids, stepOf(x, start.centroids, d, &objective))
                    << "d=" << d << " k=" << k;
            EXPECT_EQ(result.stats.at(0).obj, float(objective));
        }
    }
}

TEST_F(Clustering, StartsWhereFaissStarts) {
    for (int seed : {1234, 0, 7}) {
        for (int n : {40, 900, 4000}) { // the last one is sampled
            const auto x = wholeVectors(n, 8, seed);
            faiss::ClusteringParameters options;
            options.niter = 0;
            options.seed = seed;
            options.max_points_per_centroid = 50;
            EXPECT_EQ(
                    cluster(x, 8, 37, options).centroids,
                    clusterByFaiss(x, 8, 37, options).centroids)
                    << "seed=" << seed << " n=" << n;
        }
    }
}

/// Iteration by iteration near FAISS's.
void expectLikeFaiss(
        const std::vector<float>& x,
        int d,
        int k,
        const faiss::ClusteringParameters& options,
        const std::vector<float>& start = {},
        const std::vector<float>& weights = {}) {
    expectAlike(
            cluster(x, d, k, options, start, weights),
            clusterByFaiss(x, d, k, options, start, weights));
}

TEST_F(Clustering, GoesWhereFaissGoes) {
    faiss::ClusteringParameters options;
    options.niter = 6;
    expectLikeFaiss(clusteredVectors(4000, 24, 20), 24, 20, options);
    options.max_points_per_centroid = 60;
    expectLikeFaiss(clusteredVectors(4000, 24, 20), 24, 20, options);
    options.nredo = 3;
    expectLikeFaiss(clusteredVectors(2000, 7, 10), 7, 10, options);
}

TEST_F(Clustering, Spherical) {
    faiss::ClusteringParameters options;
    options.niter = 5;
    options.spherical = true;
    auto x = clusteredVectors(3000, 16, 12);
    expectLikeFaiss(x, 16, 12, options);
    options.nredo = 2;
    expectLikeFaiss(x, 16, 12, options);
    const auto centroids = cluster(x, 16, 12, options).centroids;
    for (int c = 0; c < 12; ++c) {
        double squares = 0;
        for (int j = 0; j < 16; ++j) {
            squares += std::pow(centroids[c * 16 + j], 2);
        }
        EXPECT_NEAR(squares, 1, 1e-6);
    }
}

TEST_F(Clustering, WholeCentroids) {
    faiss::ClusteringParameters options;
    options.niter = 4;
    options.int_centroids = true;
    const auto x = clusteredVectors(3000, 10, 9, 40);
    expectLikeFaiss(x, 10, 9, options);
    for (float c : cluster(x, 10, 9, options).centroids) {
        EXPECT_EQ(c, std::round(c));
    }
}

TEST_F(Clustering, GivenAndFrozenCentroids) {
    const auto x = clusteredVectors(3000, 8, 16);
    faiss::ClusteringParameters options;
    options.niter = 4;
    for (int given : {1, 5, 16}) {
        const std::vector<float> start(x.begin(), x.begin() + given * 8);
        options.frozen_centroids = false;
        expectLikeFaiss(x, 8, 16, options, start);
        options.frozen_centroids = true;
        expectLikeFaiss(x, 8, 16, options, start);
        const auto result = cluster(x, 8, 16, options, start).centroids;
        EXPECT_EQ(
                std::vector<float>(result.begin(), result.begin() + given * 8),
                start);
    }
}

TEST_F(Clustering, Weights) {
    const auto x = clusteredVectors(3000, 12, 10);
    std::mt19937 random(5);
    std::vector<float> weights(3000);
    for (float& weight : weights) {
        weight = float(random() % 8);
    }
    faiss::ClusteringParameters options;
    options.niter = 5;
    expectLikeFaiss(x, 12, 10, options, {}, weights);
    options.max_points_per_centroid = 100;
    expectLikeFaiss(x, 12, 10, options, {}, weights);
}

TEST_F(Clustering, EmptyClustersAreSplit) {
    // 6 places for 20 clusters.
    std::vector<float> x;
    for (int i = 0; i < 1000; ++i) {
        const int place = i % 6;
        x.insert(x.end(), {float(place * 10), float(place % 2), 3, 4});
    }
    faiss::ClusteringParameters options;
    options.niter = 1;
    // Among equal centroids FAISS may take any, and we take the first.
    const auto ours = cluster(x, 4, 20, options).stats.at(0);
    const auto theirs = clusterByFaiss(x, 4, 20, options).stats.at(0);
    EXPECT_GE(ours.nsplit, 14);
    EXPECT_EQ(ours.nsplit, theirs.nsplit);
    EXPECT_EQ(ours.obj, theirs.obj);
    // All equal.
    const std::vector<float> equal(4 * 500, 2.0f);
    options.niter = 3;
    const auto result = cluster(equal, 4, 10, options);
    for (const auto& stats : result.stats) {
        EXPECT_EQ(stats.nsplit, 9);
    }
}

TEST_F(Clustering, AsManyVectorsAsClusters) {
    const auto x = wholeVectors(30, 5, 1);
    const auto result = cluster(x, 5, 30, {});
    EXPECT_EQ(result.centroids, x);
    ASSERT_EQ(result.stats.size(), 1u);
    EXPECT_EQ(result.stats[0].imbalance_factor, 1);
}

} // namespace
} // namespace faiss_bits::test

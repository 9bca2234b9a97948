/// Empty clusters take half of those that FAISS would split: its own
/// clustering, with an index that says who is assigned where, is the reference.

#include <cmath>

#include <faiss/Clustering.h>
#include <faiss/Index.h>
#include <faiss/impl/FaissException.h>
#include <gtest/gtest.h>

#include "faiss_bits/cluster/EmptyClusters.h"

namespace faiss_bits::test {
namespace {

using faiss_bits::detail::imbalanceFactor;
using faiss_bits::detail::splitEmptyClusters;

/// Assigns as it is told.
struct ToldIndex : faiss::Index {
    explicit ToldIndex(std::vector<faiss_bits::idx_t> labels)
            : faiss::Index(1), labels(std::move(labels)) {}

    void add(faiss_bits::idx_t n, const float*) override {
        ntotal += n;
    }
    void reset() override {
        ntotal = 0;
    }
    void search(
            faiss_bits::idx_t n,
            const float*,
            faiss_bits::idx_t,
            float* distances,
            faiss_bits::idx_t* out,
            const faiss::SearchParameters* = nullptr) const override {
        for (faiss_bits::idx_t i = 0; i < n; ++i) {
            distances[i] = 1;
            out[i] = labels[i];
        }
    }

    std::vector<faiss_bits::idx_t> labels;
};

/// One iteration of FAISS: centroids of one dimension.
std::vector<float> faissCentroids(
        const std::vector<float>& x,
        const std::vector<faiss_bits::idx_t>& labels,
        int k,
        int* numSplits,
        double* imbalance) {
    ToldIndex index(labels);
    faiss::ClusteringParameters options;
    options.niter = 1;
    options.min_points_per_centroid = 0;
    options.max_points_per_centroid = 1 << 20;
    faiss::Clustering clustering(1, k, options);
    clustering.train(faiss_bits::idx_t(x.size()), x.data(), index);
    *numSplits = clustering.iteration_stats[0].nsplit;
    *imbalance = clustering.iteration_stats[0].imbalance_factor;
    return clustering.centroids;
}

TEST(EmptyClusters, TakeFromThoseThatFaissSplits) {
    for (int k : {2, 3, 10, 57, 300}) {
        for (int step : {2, 3, 7, 1000}) {
            // Clusters 0, step, 2 step ... have vectors, one more each.
            std::vector<float> x;
            std::vector<faiss_bits::idx_t> labels;
            for (int c = 0; c < k; c += step) {
                for (int i = 0; i < 3 + c / step; ++i) {
                    x.push_back(float(1 + c));
                    labels.push_back(c);
                }
            }
            while (x.size() <= size_t(k)) {
                x.push_back(1);
                labels.push_back(0);
            }
            int faissSplits = 0;
            double faissImbalance = 0;
            const auto expected =
                    faissCentroids(x, labels, k, &faissSplits, &faissImbalance);

            std::vector<float> weights(k);
            std::vector<uint64_t> counts(k);
            std::vector<float> centroids(k);
            for (size_t i = 0; i < x.size(); ++i) {
                weights[labels[i]] += 1;
                counts[labels[i]] += 1;
                centroids[labels[i]] = x[i];
            }
            EXPECT_DOUBLE_EQ(imbalanceFactor(counts), faissImbalance);
            const auto splits =
                    splitEmptyClusters(faiss_bits::idx_t(x.size()), weights);
            EXPECT_EQ(int(splits.size()), faissSplits);
            for (const ClusterSplit& split : splits) {
                const double value = centroids[split.from];
                centroids[split.to] = float(value * (1 + 1 / 1024.0));
                centroids[split.from] = float(value * (1 - 1 / 1024.0));
            }
            for (int c = 0; c < k; ++c) {
                // FAISS divides a float32 sum by its rounded reciprocal.
                ASSERT_NEAR(centroids[c], expected[c], 1e-6 * expected[c])
                        << "k=" << k << " step=" << step << " c=" << c;
            }
        }
    }
}

TEST(EmptyClusters, AllFull) {
    std::vector<float> weights{1, 2, 3};
    EXPECT_TRUE(splitEmptyClusters(6, weights).empty());
    EXPECT_EQ(weights, (std::vector<float>{1, 2, 3}));
}

TEST(EmptyClusters, LightWeightsEndWithTheHeaviest) {
    // None weighs more than 1: every draw is in vain.
    std::vector<float> weights{0.25f, 0, 0.5f};
    const auto splits = splitEmptyClusters(100, weights);
    ASSERT_EQ(splits.size(), 1u);
    EXPECT_EQ(splits[0].to, 1);
    EXPECT_EQ(splits[0].from, 2);
    EXPECT_EQ(weights, (std::vector<float>{0.25f, 0.25f, 0.25f}));
}

TEST(EmptyClusters, RefuseTooFewVectors) {
    std::vector<float> weights{1, 0};
    EXPECT_THROW(splitEmptyClusters(2, weights), faiss::FaissException);
}

TEST(EmptyClusters, Imbalance) {
    EXPECT_EQ(imbalanceFactor({5, 5, 5}), 1);
    EXPECT_EQ(imbalanceFactor({9, 0, 0}), 3);
    EXPECT_TRUE(std::isnan(imbalanceFactor({0, 0})));
}

} // namespace
} // namespace faiss_bits::test

#include "faiss_bits/cluster/EmptyClusters.h"

#include <algorithm>

#include <faiss/impl/FaissAssert.h>
#include <faiss/utils/random.h>

namespace faiss_bits::detail {

namespace {

constexpr int64_t kSplitSeed = 1234; // FAISS's, whatever the clustering's is

/// The cluster that is split next.
size_t drawCluster(
        const std::vector<float>& weights,
        float spare,
        faiss::RandomGenerator& random) {
    const size_t k = weights.size();
    for (size_t tries = 0; tries < 10 * k; ++tries) {
        const size_t cluster = tries % k;
        // In float64, then float32, as FAISS.
        const auto chance = float((weights[cluster] - 1.0) / spare);
        if (random.rand_float() < chance) {
            return cluster;
        }
    }
    return std::max_element(weights.begin(), weights.end()) - weights.begin();
}

} // namespace

std::vector<ClusterSplit> splitEmptyClusters(
        idx_t n,
        std::vector<float>& weights) {
    const auto k = idx_t(weights.size());
    FAISS_THROW_IF_NOT_FMT(
            n > k,
            "n = %lld training vectors for %lld clusters: none to spare",
            (long long)n,
            (long long)k);
    const auto spare = float(n - k);
    faiss::RandomGenerator random(kSplitSeed);
    std::vector<ClusterSplit> splits;
    for (size_t empty = 0; empty < weights.size(); ++empty) {
        if (weights[empty] != 0) {
            continue;
        }
        const size_t from = drawCluster(weights, spare, random);
        splits.push_back({int32_t(empty), int32_t(from)});
        weights[empty] = weights[from] / 2;
        weights[from] -= weights[empty];
    }
    return splits;
}

double imbalanceFactor(const std::vector<uint64_t>& counts) {
    double sum = 0;
    double squares = 0;
    for (uint64_t count : counts) {
        sum += double(count);
        squares += double(count) * double(count);
    }
    return squares * double(counts.size()) / (sum * sum);
}

} // namespace faiss_bits::detail

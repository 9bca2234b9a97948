#pragma once

#include <vector>

#include <faiss/Clustering.h>

#include "faiss_bits/cluster/GpuBitsClustering.h"
#include "tests/cluster/ClusteringReference.h"
#include "tests/flat/IndexHarness.h"

/// What the tests of whole clusterings share.
namespace faiss_bits::test {

using gpu::GpuBitsClustering;

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

} // namespace faiss_bits::test

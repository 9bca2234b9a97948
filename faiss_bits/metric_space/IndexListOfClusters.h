#pragma once

#include "faiss_bits/metric_space/IndexMetricSpace.h"

namespace faiss_bits {

/// List of Clusters on the CPU: centers, each with the vectors nearest to it of
/// those that are left. A query passes the clusters that are too far from it,
/// and the rest of the list when its ball lies in a cluster.
///
/// Cost     ntotal^2 / (2 bucketSize) distances to make it; 12 bytes a vector
/// Source   Chavez and Navarro 2005; Barrientos et al. 2012, II-A and V
class IndexListOfClusters : public IndexMetricSpace {
   public:
    /// An empty index for vectors of d >= 1 dimensions.
    ///
    /// bucketSize  vectors of a cluster beside its center, 1 or more
    /// seed        picks the first center
    explicit IndexListOfClusters(
            int d,
            faiss::MetricType metric = faiss::METRIC_L2,
            int bucketSize = 64,
            uint64_t seed = 1);

    /// As given to the constructor, or by what was read.
    int bucketSize() const;
    /// Of the index that is made; 0 before.
    idx_t numClusters() const;
};

} // namespace faiss_bits

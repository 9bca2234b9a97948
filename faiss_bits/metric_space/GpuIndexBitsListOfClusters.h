#pragma once

#include "faiss_bits/metric_space/GpuIndexBitsMetricSpace.h"

namespace faiss_bits {

class IndexListOfClusters;

namespace gpu {

/// List of Clusters on one GPU: centers, each with the vectors nearest to it of
/// those that are left. A query passes the clusters that are too far from it,
/// and the rest of the list when its ball lies in a cluster; all queries that
/// look at a cluster meet it together.
///
/// Cost     ntotal^2 / (2 bucketSize) distances to make it
/// Source   Chavez and Navarro 2005; Barrientos et al. 2012, II-A and IV-B
class GpuIndexBitsListOfClusters : public GpuIndexBitsMetricSpace {
   public:
    /// An empty index for vectors of dims >= 1 dimensions.
    ///
    /// bucketSize  vectors of a cluster beside its center, 1 or more
    /// seed        picks the first center
    GpuIndexBitsListOfClusters(
            faiss::gpu::GpuResourcesProvider* provider,
            int dims,
            faiss::MetricType metric = faiss::METRIC_L2,
            int bucketSize = 64,
            uint64_t seed = 1,
            faiss::gpu::GpuIndexConfig config = faiss::gpu::GpuIndexConfig());

    /// A copy of an index on the CPU (not null).
    GpuIndexBitsListOfClusters(
            faiss::gpu::GpuResourcesProvider* provider,
            const IndexListOfClusters* index,
            faiss::gpu::GpuIndexConfig config = faiss::gpu::GpuIndexConfig());

    /// Replaces everything by what is in an index on the CPU (not null).
    void copyFrom(const IndexListOfClusters* index);
    /// Replaces everything in an index on the CPU (not null) by ours.
    void copyTo(IndexListOfClusters* index) const;

    /// As given to the constructor, or by what was read.
    int bucketSize() const;
    /// Of the index that is made; 0 before.
    idx_t numClusters() const;
};

} // namespace gpu
} // namespace faiss_bits

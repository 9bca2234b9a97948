#pragma once

#include "faiss_bits/metric_space/GpuIndexBitsMetricSpace.h"

namespace faiss_bits {

class IndexSSS;

namespace gpu {

/// Sparse Spatial Selection on one GPU: pivots that are far from each other. Of
/// groups of neighbours in the order of the pivots, the nearest and the
/// farthest distance to each pivot is kept; a query leaves out the groups that
/// are surely farther from it than the radius.
///
/// Cost     ntotal distances a pivot to make it; a quarter of a byte a vector
///          and pivot
/// Source   Brisaboa et al. 2006; Barrientos et al. 2012, II-B and IV-C
class GpuIndexBitsSSS : public GpuIndexBitsMetricSpace {
   public:
    /// An empty index for vectors of dims >= 1 dimensions.
    ///
    /// alpha      above 0: a vector becomes a pivot where it is alpha times the
    ///            greatest distance or more from those before it. Less: more
    ///            pivots
    /// maxPivots  no more than these, 1 or more
    GpuIndexBitsSSS(
            faiss::gpu::GpuResourcesProvider* provider,
            int dims,
            faiss::MetricType metric = faiss::METRIC_L2,
            double alpha = 0.66,
            int maxPivots = 256,
            faiss::gpu::GpuIndexConfig config = faiss::gpu::GpuIndexConfig());

    /// A copy of an index on the CPU (not null).
    GpuIndexBitsSSS(
            faiss::gpu::GpuResourcesProvider* provider,
            const IndexSSS* index,
            faiss::gpu::GpuIndexConfig config = faiss::gpu::GpuIndexConfig());

    /// Replaces everything by what is in an index on the CPU (not null).
    void copyFrom(const IndexSSS* index);
    /// Replaces everything in an index on the CPU (not null) by ours.
    void copyTo(IndexSSS* index) const;

    /// As given to the constructor, or by what was read.
    double alpha() const;
    /// As given to the constructor, or by what was read.
    int maxPivots() const;
    /// Of the index that is made; 0 before.
    idx_t numPivots() const;
};

} // namespace gpu
} // namespace faiss_bits

#pragma once

#include "faiss_bits/metric_space/IndexMetricSpace.h"

namespace faiss_bits {

/// Sparse Spatial Selection on the CPU: the distance of every vector to pivots
/// that are far from each other. A query leaves out each vector whose distances
/// to a pivot differ from its own by the radius or more.
///
/// Cost     ntotal distances a pivot to make it; 4 bytes a vector and pivot
/// Source   Brisaboa et al. 2006; Barrientos et al. 2012, II-B and V
class IndexSSS : public IndexMetricSpace {
   public:
    /// An empty index for vectors of d >= 1 dimensions.
    ///
    /// alpha      above 0: a vector becomes a pivot where it is alpha times the
    ///            greatest distance or more from those before it. Less: more
    ///            pivots
    /// maxPivots  no more than these, 1 or more
    explicit IndexSSS(
            int d,
            faiss::MetricType metric = faiss::METRIC_L2,
            double alpha = 0.66,
            int maxPivots = 256);

    /// As given to the constructor, or by what was read.
    double alpha() const;
    /// As given to the constructor, or by what was read.
    int maxPivots() const;
    /// Of the index that is made; 0 before.
    idx_t numPivots() const;
};

} // namespace faiss_bits

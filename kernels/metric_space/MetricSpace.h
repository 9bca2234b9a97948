#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/common/Types.h"

/// Indexes for metric spaces: what they know of the vectors, so that a search
/// may leave some out by the triangle inequality. Plain arrays on the host,
/// the same bits whether the CPU or a GPU has made them. Neither CUDA nor
/// FAISS.
namespace faiss_bits::metric_space {

/// Vectors on the host or, for calls on a GPU, on the current device.
struct MetricVectors {
    Metric metric = Metric::L2;  ///< L2, L1 or Linf
    int d = 0;                   ///< components
    idx_t n = 0;                 ///< below 2^31
    const float* data = nullptr; ///< [n, d], row-major
};

/// List of Clusters: centers, each with the `bucketSize` vectors nearest to it
/// of those that no earlier cluster has.
///
/// A query with radius r goes through the clusters in order. It has to look at
/// the bucket of a center c if d(q, c) <= radius of c + r, and at no later
/// cluster if d(q, c) < radius of c - r.
///
/// Source   Chavez and Navarro 2005; Barrientos et al. 2012, II-A
struct ListOfClusters {
    int bucketSize = 0;         ///< vectors of a full bucket
    std::vector<idx_t> centers; ///< [clusters] ids, in the order of the list
    /// [clusters] canonical distance (L2: squared) of the farthest of the
    /// bucket; 0 for an empty one.
    std::vector<float> radii;
    /// Ids of the buckets, one after the other, each by (distance, id). All but
    /// the last have bucketSize.
    std::vector<idx_t> members;
    /// Vectors with NaN or infinities, ascending: in no cluster, and looked at
    /// by every search.
    std::vector<idx_t> rest;
};

/// How a ListOfClusters is made.
struct ListOfClustersOptions {
    int bucketSize = 64; ///< 1 or more. The paper: 64 vectors, 32 words
    /// Picks the first center: std::mt19937_64(seed)() modulo their number.
    uint64_t seed = 1;
};

/// Sparse Spatial Selection: pivots that are far from each other, and the
/// distance of every vector to each of them. A vector x is out of the range r
/// of q if |d(p, x) - d(p, q)| > r for a pivot p.
///
/// Source   Brisaboa et al. 2006; Barrientos et al. 2012, II-B
struct PivotTable {
    std::vector<idx_t> pivots; ///< ids, ascending
    /// Ids of all vectors without NaN and infinities, by a key of their
    /// distances to pivots (PivotOrder.h), then by id: neighbours in this order
    /// are near each other.
    std::vector<idx_t> order;
    /// [pivots, order.size()] true distances (L2: the root), rounded to
    /// float32.
    std::vector<float> distances;
    double maxDistance = 0;  ///< M, a true distance
    std::vector<idx_t> rest; ///< as in ListOfClusters
};

/// How a PivotTable is made.
struct PivotOptions {
    /// A vector becomes a pivot if it is alpha M or more from all pivots before
    /// it. 0 < alpha. The paper: 0.66 for vectors on a GPU; Brisaboa: 0.4.
    double alpha = 0.66;
    /// No more than these: the table has 4 bytes a vector for each.
    int maxPivots = 256;
};

/// M of PivotTable: the paper's is the greatest distance of all pairs. Here it
/// is that of some: from the first vector to its farthest, from there to the
/// farthest, so many times. No answer depends on it.
constexpr int kMaxDistanceSweeps = 4;

/// What a search did, added up.
struct MetricCounters {
    /// Pairs whose distance was computed, to centers and pivots included.
    uint64_t distances = 0;
    /// Of them those to centers and pivots.
    uint64_t references = 0;
};

/// Called now and then by the calling thread; what it throws ends the call.
using Interrupt = std::function<void()>;

} // namespace faiss_bits::metric_space

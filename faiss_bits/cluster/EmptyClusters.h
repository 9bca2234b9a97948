#pragma once

#include <vector>

#include "faiss_bits/common/FaissCompat.h"
#include "kernels/cluster/ClusterCentroids.h"

/// What k-means does about clusters that got no vector. Host only. Not part of
/// the API.
namespace faiss_bits::detail {

/// For each empty cluster, in ascending order, one that gives half of its
/// weight; drawn with a probability that grows with the weight, with FAISS's
/// generator and seed, so that it is the one that FAISS takes.
///
/// n        training vectors, more than there are weights
/// weights  of the clusters that are not frozen, as float32; those of the
///          clusters that were split are changed
///
/// Where FAISS 1.7.3 draws forever (no cluster weighs more than 1), 10 k draws
/// in vain end with the heaviest cluster, as in 1.15.
std::vector<ClusterSplit> splitEmptyClusters(
        idx_t n,
        std::vector<float>& weights);

/// k sum(count^2) / sum(count)^2: 1 where all clusters have the same size.
double imbalanceFactor(const std::vector<uint64_t>& counts);

} // namespace faiss_bits::detail

#pragma once

#include <vector>

#include "faiss_bits/common/FaissCompat.h"

/// When shards gain by limits of one sample of all (ShardSample), and of which
/// size it is. Host only, no CUDA call. Not part of the API.
namespace faiss_bits::gpu::detail {

/// A sample of `size` of `total` vectors.
struct SampleSize {
    idx_t size = 0;
    idx_t total = 0;

    /// Of all vectors, that are in the sample.
    double share() const {
        return double(size) / double(total);
    }

    /// Which neighbour of the sample is the limit of a query's k nearest of
    /// all: they are mostly no farther.
    idx_t rank(idx_t k) const;

    /// Vectors of a shard of n that are within the limit, about.
    idx_t numWithin(idx_t k, idx_t n) const;

    /// Whether it says enough of its rank'th, and few more than k are no
    /// farther, as all of these are rescored.
    bool saysEnough(idx_t k) const;
};

/// A sample of so many vectors.
SampleSize sampleOf(idx_t total);

/// Queries from which on limits pay for shards in groups, one a device.
idx_t leastSampleQueries(int shards, int groups);

/// Whether a certified search of n queries for the k nearest of all gains by a
/// sample of shards of these sizes, in so many groups.
bool gainsBySample(
        const std::vector<idx_t>& shardSizes,
        int groups,
        idx_t n,
        idx_t k);

} // namespace faiss_bits::gpu::detail

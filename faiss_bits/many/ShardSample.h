#pragma once

#include <memory>
#include <vector>

#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/many/ManyMemory.h"
#include "faiss_bits/many/SampleSize.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

struct ShardSet;

/// A sample of the vectors of all shards, on the device of every group. The
/// k nearest of all vectors are mostly no farther than the sample's r-th: one
/// limit a query that all shards share, in place of a sample of each. It is a
/// guess, and the merge proves it: where the k-th result is beyond the limit
/// the query is searched again.
///
/// Threads  limits() of several groups at the same time; the others alone
/// Memory   up to 2^16 vectors in float32, and their search image, a device
class ShardSample {
   public:
    /// Whether a certified search of n queries for the k nearest of all gains
    /// by it. Makes the sample where that is so and there is none, or one of
    /// much fewer vectors than there are now: some ten milliseconds. False,
    /// too, where memory is short.
    bool isReadyFor(const ShardSet& set, idx_t n, idx_t k);

    /// Enqueues limits [rows], of the queries x [rows, d] on the device of a
    /// group, in its thread. `memory`: of the group.
    void limits(
            int group,
            const GpuContext& lead,
            const float* x,
            idx_t rows,
            idx_t k,
            MemoryStack& memory,
            float* limits) const;

    /// Vectors of a shard that are within a limit, about.
    idx_t numWithin(const ShardSet& set, int shard, idx_t k) const;

    /// There are other vectors now.
    void clear();

   private:
    bool make_(const ShardSet& set, idx_t total);

    std::vector<std::unique_ptr<GpuIndexBitsFlat>> indexes_; // of each group
    SampleSize made_;
    bool isShort_ = false; // of memory: not asked for again
};

} // namespace faiss_bits::gpu::detail

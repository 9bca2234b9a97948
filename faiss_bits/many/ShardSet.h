#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "faiss_bits/many/PartSet.h"
#include "faiss_bits/many/ShardMap.h"
#include "faiss_bits/many/ShardSample.h"

/// The inside of GpuIndexBitsShards. Not part of the API.
namespace faiss_bits::gpu::detail {

/// Queries of one call and where their results go: on the first device, of
/// searchByHost on the host.
struct ShardQueries {
    idx_t n = 0;
    const float* x = nullptr; ///< [n, d]
    idx_t k = 0;
    float* distances = nullptr; ///< [n, k]
    idx_t* labels = nullptr;    ///< [n, k]
    /// What a shard's search gets.
    std::function<const faiss::SearchParameters*(int shard)> params;
    /// Shards may be asked for fewer than k results each at first (firstWidth):
    /// every result is canonical, whatever the batch that it is searched in.
    bool mayCut = false;
};

struct ShardSet : PartSet {
    ShardSet(const DeviceList& list, const GpuIndexBitsManyConfig& config);

    /// Vectors of a shard.
    idx_t sizeOf(int shard) const {
        return isFlat() ? map.size(shard) : parts[shard]->ntotal;
    }

    /// How n more vectors are dealt out.
    std::vector<ShardPiece> plan(idx_t n) const;

    /// Segments of the map go to the devices, for shards of more than one.
    std::vector<std::shared_ptr<void>> uploadSegments(const ShardMap& of) const;

    /// Searches all shards and merges; enqueues on the stream of `home`, which
    /// is the first shard's context in the calling thread. Where shards are
    /// asked for fewer than k results it waits, to see whether that was enough,
    /// and searches again for the queries where it was not.
    void search(
            const GpuContext& home,
            int d,
            bool largest,
            const ShardQueries& queries) const;

    /// The results that each shard is asked for.
    std::vector<idx_t> widths(idx_t n, idx_t k, bool mayCut) const;
    /// Queries of a batch of those, for which temporary memory is enough.
    idx_t mostOfBatch(int d, const ShardQueries& queries) const;
    void searchBatch(
            const GpuContext& home,
            int d,
            bool largest,
            const ShardQueries& queries) const;
    void searchAgain(
            const GpuContext& home,
            int d,
            bool largest,
            const ShardQueries& queries,
            const std::vector<idx_t>& rows) const;

    ShardMap map; ///< of flat shards
    /// Of each shard: IdSegment [segments] on its device, or null where the map
    /// is in order.
    std::vector<std::shared_ptr<void>> segments;
    /// Searches that go without cut lists and limits from now on, as these were
    /// too short for many queries.
    mutable int uncut = 0;
    /// As many the next time, twice as many from time to time.
    static constexpr int kLeastPause = 15;
    mutable int pause = kLeastPause;
    mutable ShardSample sample; ///< of flat shards
};

} // namespace faiss_bits::gpu::detail

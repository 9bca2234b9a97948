#pragma once

#include <vector>

#include "faiss_bits/common/FaissCompat.h"
#include "kernels/many/MapIds.h"

/// Which shard holds which vector. Host only, no CUDA call. Not part of the
/// API.
namespace faiss_bits::gpu::detail {

/// Vectors of one addition that go to one shard.
struct ShardPiece {
    int shard = 0;
    idx_t first = 0; ///< of the addition's vectors
    idx_t count = 0;
};

/// How n more vectors are dealt out to shards of these sizes: so that they are
/// as even as pieces of at least leastPiece vectors allow. The pieces are in
/// order, together all n, one a shard.
///
/// last  where the last vectors went, and fewer than leastPiece go too, while
///       that shard is not much longer than others; -1: to the shortest
std::vector<ShardPiece> dealOut(
        idx_t n,
        const std::vector<idx_t>& sizes,
        idx_t leastPiece,
        int last);

/// A run of vectors that follow each other both in a shard and in the index.
struct ShardRun {
    int shard = 0;
    idx_t inShard = 0;
    idx_t inWhole = 0;
    idx_t count = 0;
};

/// Vectors are numbered in the order of their additions, whatever shard they
/// are in. In a shard they lie in that order too: of two vectors of a shard the
/// one with the lower number there has the lower number in the index.
class ShardMap {
   public:
    /// An addition is cut into pieces of at least leastPiece vectors, as far as
    /// it has them: an index that grows vector by vector is no patchwork.
    ShardMap(int numShards, idx_t leastPiece);

    int numShards() const {
        return int(sizes_.size());
    }
    idx_t total() const {
        return total_;
    }
    idx_t size(int shard) const {
        return sizes_[shard];
    }

    /// How n more vectors are dealt out, by dealOut().
    std::vector<ShardPiece> plan(idx_t n) const;

    /// The vectors of a plan are there now.
    void commit(const std::vector<ShardPiece>& pieces);

    void clear();

    /// True if the ids of every shard are below those of the shards behind it:
    /// one piece each, in their order.
    bool isInOrder() const;

    /// The segments of a shard, ascending; none for an empty one.
    const std::vector<IdSegment>& segments(int shard) const {
        return segments_[shard];
    }

    /// The runs of the vectors first .. first + n - 1 of the index, in order.
    std::vector<ShardRun> runs(idx_t first, idx_t n) const;

    /// All runs, in the order of the index.
    const std::vector<ShardRun>& allRuns() const {
        return runs_;
    }

   private:
    idx_t leastPiece_;
    idx_t total_ = 0;
    std::vector<idx_t> sizes_;
    std::vector<std::vector<IdSegment>> segments_; // of each shard
    std::vector<ShardRun> runs_;                   // by inWhole
};

/// The first of `rows` rows of slice `slice` of `slices`; of number `slices`:
/// the end. Slices differ by one row at most, and a single row is the first's.
inline idx_t sliceBegin(idx_t rows, int slices, int slice) {
    return rows / slices * slice +
            (rows % slices * slice + slices - 1) / slices;
}

/// Where the slices of `rows` rows of each group begin, and their end: as long
/// as the groups have parts and are fast, and so much shorter for those that
/// begin late that all end together; by an eighth at most.
///
/// lateRows  of groups: what each would search in the time that it begins later
///           than the first, by which it has to get the queries; empty: none
/// speeds    of groups: slices are as long as these are great; empty: all alike
/// tile      slices but the first have a multiple of so many rows: the nearest
///           of even slices, and whole tiles of what they differ by, as a search
///           takes as long for a part of a tile as for a whole one
std::vector<idx_t> groupSlices(
        idx_t rows,
        const std::vector<int>& partsOfGroups,
        const std::vector<idx_t>& lateRows = {},
        const std::vector<double>& speeds = {},
        idx_t tile = 1);

/// Results that a shard of n of `total` vectors is asked for at first: as many
/// of the k best as it will have in nearly every query if vectors are dealt out
/// at random (their number is hypergeometric: six deviations above the
/// expected), and no more than it can have.
idx_t firstWidth(idx_t k, idx_t n, idx_t total);

} // namespace faiss_bits::gpu::detail

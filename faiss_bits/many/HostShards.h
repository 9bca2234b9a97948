#pragma once

#include <vector>

#include "faiss_bits/many/ShardSet.h"
#include "kernels/many/MapIds.h"

/// Searches of shards whose arrays and few results lie on the host. Not part of
/// the API.
namespace faiss_bits::gpu::detail {

/// What one search found, on the host.
struct HostList {
    /// [rows, width], best first; behind the last result anything
    std::vector<float> distances;
    std::vector<idx_t> ids; ///< [rows, width], -1 behind the last result
    idx_t width = 0;
};

/// Numbers of vectors in a part become those in the whole, in place; -1 stays.
/// segments  as of runMapIds
void mapHostIds(
        const std::vector<IdSegment>& segments,
        std::vector<idx_t>& ids);

/// The k best results of every row, of all lists: as runMergeLists where ids
/// are compared, but on the host.
///
/// distances  [rows, k], or nullptr: not wanted
/// labels     [rows, k]
void mergeHostLists(
        const std::vector<HostList>& lists,
        idx_t rows,
        idx_t k,
        bool largest,
        float* distances,
        idx_t* labels);

/// Whether n queries have so few results in all lists that the host merges them
/// fast, and so little work that the call may wait for all of it where it is
/// interrupted.
/// workPerRow  PagePlan.h
bool isSmallForHost(idx_t n, idx_t k, idx_t shards, double workPerRow);

/// Whether searchByHost takes these queries: small ones, every shard with a
/// device of its own, and arrays on the host. `home`: as of ShardSet::search.
bool goesByHost(
        const ShardSet& set,
        const GpuContext& home,
        const ShardQueries& queries,
        double workPerRow);

/// Each shard fetches the queries from the host and leaves there what it found,
/// and the calling thread merges that: no device waits for another one, whose
/// copies, events and merge take longer than a small search. Waits.
void searchByHost(
        const ShardSet& set,
        bool largest,
        const ShardQueries& queries);

} // namespace faiss_bits::gpu::detail

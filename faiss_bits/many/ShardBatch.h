#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "faiss_bits/many/ManyMemory.h"
#include "faiss_bits/many/ShardSet.h"
#include "kernels/many/MergeLists.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// Bytes of a result.
constexpr size_t kResultBytes = sizeof(float) + sizeof(idx_t);

/// Distances and labels of some rows, in one piece of temporary memory.
struct Results {
    Results() = default;
    Results(void* memory, idx_t rows, idx_t width)
            : labels(static_cast<idx_t*>(memory)),
              distances(reinterpret_cast<float*>(labels + rows * width)),
              width(width) {}

    idx_t* labels = nullptr;
    float* distances = nullptr;
    idx_t width = 0;
};

/// How lists of other devices come to the first one: in one copy each, which
/// can be enqueued while the devices still search (flat) or when they have
/// (lists), or written there by the kernels that find them.
enum class ListsHome { SentFlat, Sent, Written };

/// Results of all queries of a batch, n k, up to which the first device merges
/// all that was found; of more, each device merges a slice of the queries.
/// Plain arithmetic.
///
/// lists       of results: the first device's, and one of each shard on others
/// tempMemory  bytes that the first device has for lists of others and more
idx_t mostMergedAtHome(ListsHome how, int lists, size_t tempMemory);

/// One batch of queries: searched by all shards, then merged. With a sample the
/// shards look for what is within its limits: each group makes those of its
/// slice, and gets the others'.
class ShardBatch {
   public:
    ShardBatch(
            const ShardSet& set,
            const GpuContext& home,
            int d,
            bool largest,
            const ShardQueries& queries,
            const std::vector<idx_t>& widths,
            const ShardSample* sample);

    /// Enqueues searches, copies and merges; the stream of `home` comes after
    /// all of them.
    void run();

    /// After run(): rows whose cut lists were too short, or whose limits were
    /// too close. Waits if a list is cut, or there are limits.
    std::vector<idx_t> incompleteRows() const;

   private:
    bool isCut_(int shard) const;

    /// Takes memory for lists of other devices where the first one merges all,
    /// before anyone else takes some: these go there as soon as they are found.
    void prepareHome_();
    void search_();

    bool isMergedByFirst_() const;
    /// Of the queries that a group merges.
    idx_t sliceBegin_(int group) const;
    /// Of those that it makes limits for.
    idx_t limitsBegin_(int group) const;

    /// In the thread of the group. The lead of group 0 is the first shard,
    /// on the stream that the caller has chosen.
    GpuContext contextOf_(int shard) const;

    /// Queries of the batch for the lead of a group, copied at the first call.
    const float* queriesFor_(int group, const GpuContext& lead);

    void findLimits_(int group);
    /// All limits go to all groups; returns when each has them.
    std::vector<StreamMark> exchangeLimits_();

    void searchGroup_(int group);

    void searchShard_(
            int group,
            int shard,
            const float* x,
            const StreamMark& ready,
            bool isLast);

    /// Results of rows first .. first + rows - 1 of a shard for the lead of
    /// a group: in place, or copied.
    MergeList listFor_(
            int group,
            const GpuContext& lead,
            int shard,
            idx_t first,
            idx_t rows);

    /// Those of all shards that have some, of the slice of a group.
    std::vector<MergeList> listsFor_(int group);

    /// Memory for the flags of a group's slice, once, if the merge sets some.
    void takeFlags_(int group);
    /// Merges a slice and sends it to the first device; `sent`: it is there.
    void mergeSlice_(int group, std::vector<MergeList> lists, StreamMark& sent);
    void mergeAll_();

    /// A shard's results are enqueued: sends them to the first device where
    /// they go there and are not there, and marks the place in the order of
    /// streams. In the thread of the group, or when no other works.
    void sendFound_(int group, int shard);

    /// In the first group's thread, when its last search is enqueued: merges
    /// behind the others' as soon as these are enqueued, and none of them has
    /// to be awaited.
    void mergeBehind_();

    const ShardSet& set_;
    const GpuContext home_;
    const int d_;
    const bool largest_;
    const ShardQueries& queries_;
    const std::vector<idx_t>& widths_;
    const ShardSample* const sample_; // or null
    const bool isMergedAtHome_;       // by the first device alone
    StreamMark start_;                // the queries are there
    std::vector<const float*> x_;     // of each group, or null
    std::vector<float*> limits_;      // of each group: [n], or null
    /// Of each group: of its slice, or null; the first one's has all.
    std::vector<uint8_t*> flags_;
    std::vector<Results> found_;   // of each shard
    std::vector<StreamMark> done_; // likewise
    /// Of each shard: its list on the first device, and when it is there. None
    /// of the first device's own, nor where several devices merge.
    std::vector<Results> atHome_;
    std::vector<StreamMark> sent_;
    /// Whether the kernels of a shard's device write what they find to atHome_.
    std::vector<uint8_t> goesHome_;
    cudaStream_t helper_ = nullptr; // of the first device: DeviceCopies::send
    /// Groups whose searches are enqueued, or have thrown.
    std::vector<std::atomic<bool>> enqueued_;
    std::atomic<bool> failed_ = false;
    std::atomic<bool> again_ =
            false; // a search that was enqueued had more to do
    bool isMerged_ = false;
    std::vector<MemoryStack> memory_; // of each group
};

} // namespace faiss_bits::gpu::detail

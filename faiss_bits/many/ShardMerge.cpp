// Merges of what the shards of a batch have found.

#include <functional>
#include <thread>
#include <utility>

#include "faiss_bits/many/ShardBatch.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

void ShardBatch::mergeAll_() {
    const auto& groups = set_.devices.groups();
    const auto onLeads = [&](const std::function<void(int group)>& f) {
        for (int group = 0; group < int(groups.size()); ++group) {
            set_.devices.onPart(groups[group].parts[0], [&] { f(group); });
        }
    };
    // One after the other for all: a list of a device whose merge is enqueued
    // would come when that merge is done, and the merges in turns.
    std::vector<std::vector<MergeList>> lists(groups.size());
    std::vector<StreamMark> merged(groups.size());
    std::vector<StreamMark> sent(groups.size());
    onLeads([&](int group) { lists[group] = listsFor_(group); });
    onLeads([&](int group) {
        mergeSlice_(group, std::move(lists[group]), sent[group]);
        merged[group].record(contextOf_(groups[group].parts[0]).stream);
    });
    for (int group = 0; group < int(groups.size()); ++group) {
        sent[group].holdUp(home_.stream);
        // What the shards found may be overwritten then. Where the first device
        // merges all it has copies of the others'.
        for (int shard = 0; shard < set_.devices.size(); ++shard) {
            if (found_[shard].width > 0 &&
                (!isMergedAtHome_ || set_.devices.groupOf(shard) == group)) {
                merged[group].holdUp(done_[shard].stream);
            }
        }
    }
}

void ShardBatch::mergeBehind_() {
    // Where several merge they take memory, which is their threads' now.
    const auto groups = int(set_.devices.groups().size());
    if (groups > 1 && !isMergedAtHome_) {
        return;
    }
    for (int group = 1; group < groups; ++group) {
        while (!enqueued_[group]) {
            std::this_thread::yield();
        }
    }
    if (!failed_) {
        mergeAll_();
        isMerged_ = true;
    }
}

MergeList ShardBatch::listFor_(
        int group,
        const GpuContext& lead,
        int shard,
        idx_t first,
        idx_t rows) {
    const Results& found = found_[shard];
    const idx_t at = first * found.width;
    MergeList list;
    list.width = found.width;
    list.isCut = isCut_(shard);
    if (set_.isFlat() && set_.segments.empty()) {
        list.idOffset = set_.map.segments(shard)[0].inWhole;
    }
    const int from = set_.devices.groupOf(shard);
    if (from == group) {
        list.distances = found.distances + at;
        list.ids = found.labels + at;
        return list;
    }
    if (atHome_[shard].width > 0) {
        sent_[shard].holdUp(lead.stream);
        list.distances = atHome_[shard].distances;
        list.ids = atHome_[shard].labels;
        return list;
    }
    const size_t count = size_t(rows) * found.width;
    const Results here(
            memory_[group].take(lead, count * kResultBytes), rows, found.width);
    list.distances = here.distances;
    list.ids = here.labels;
    const auto fetch = [&](void* to, const void* from_, size_t bytes) {
        set_.copies->fetch(
                group,
                to,
                lead.stream,
                from,
                from_,
                done_[shard],
                done_[shard].stream,
                bytes);
    };
    fetch(here.labels, found.labels + at, count * sizeof(idx_t));
    fetch(here.distances, found.distances + at, count * sizeof(float));
    return list;
}

std::vector<MergeList> ShardBatch::listsFor_(int group) {
    const PartGroup& parts = set_.devices.groups()[group];
    const GpuContext lead = contextOf_(parts.parts[0]);
    // They have read the lead's queries, too.
    for (int shard : parts.parts) {
        done_[shard].holdUp(lead.stream);
    }
    const idx_t first = sliceBegin_(group);
    const idx_t rows = sliceBegin_(group + 1) - first;
    if (rows == 0) {
        return {};
    }
    // Each device begins with another one's: they share no link.
    const int shards = set_.devices.size();
    std::vector<MergeList> all(shards);
    for (int i = 0; i < shards; ++i) {
        const int shard = (parts.parts[0] + i) % shards;
        if (found_[shard].width > 0) {
            all[shard] = listFor_(group, lead, shard, first, rows);
        }
    }
    std::erase_if(all, [](const MergeList& list) { return list.width == 0; });
    return all;
}

void ShardBatch::takeFlags_(int group) {
    bool haveFlags = sample_ != nullptr;
    for (int shard = 0; shard < set_.devices.size(); ++shard) {
        haveFlags = haveFlags || isCut_(shard);
    }
    if (haveFlags && !flags_[group]) {
        const int lead = set_.devices.groups()[group].parts[0];
        const idx_t rows = group == 0
                ? queries_.n
                : sliceBegin_(group + 1) - sliceBegin_(group);
        flags_[group] = static_cast<uint8_t*>(
                memory_[group].take(contextOf_(lead), rows));
    }
}

void ShardBatch::mergeSlice_(
        int group,
        std::vector<MergeList> lists,
        StreamMark& sent) {
    const idx_t first = sliceBegin_(group);
    const idx_t rows = sliceBegin_(group + 1) - first;
    if (rows == 0) {
        return;
    }
    const GpuContext lead = contextOf_(set_.devices.groups()[group].parts[0]);
    MergeProblem merge;
    merge.rows = rows;
    merge.k = queries_.k;
    merge.largest = largest_;
    merge.idsAscend = set_.isFlat() && set_.segments.empty();
    merge.lists = std::move(lists);
    float* const distances = queries_.distances + first * queries_.k;
    idx_t* const labels = queries_.labels + first * queries_.k;
    const size_t count = size_t(rows) * queries_.k;
    Results merged;
    merged.distances = distances;
    merged.labels = labels;
    if (group != 0) {
        merged =
                Results(memory_[group].take(lead, count * kResultBytes),
                        rows,
                        queries_.k);
    }
    merge.outDistances = merged.distances;
    merge.outIds = merged.labels;
    takeFlags_(group);
    if (flags_[group]) {
        // A merge that is made again begins anew.
        BITS_CUDA_CHECK(cudaMemsetAsync(flags_[group], 0, rows, lead.stream));
    }
    merge.limits = sample_ ? limits_[group] + first : nullptr;
    merge.incomplete = flags_[group];
    runMergeLists(merge, lead.stream);
    if (group == 0) {
        return;
    }
    // Nobody uses the caller's arrays before `sent`.
    start_.holdUp(lead.stream);
    const auto send = [&](void* to, const void* from, size_t bytes) {
        set_.copies->send(
                0, to, home_.stream, group, from, lead.stream, bytes, sent);
    };
    send(labels, merged.labels, count * sizeof(idx_t));
    send(distances, merged.distances, count * sizeof(float));
    if (flags_[group]) {
        send(flags_[0] + first, flags_[group], rows);
    }
}

std::vector<idx_t> ShardBatch::incompleteRows() const {
    std::vector<idx_t> rows;
    if (!flags_[0]) {
        return rows;
    }
    std::vector<uint8_t> flags(queries_.n);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            flags.data(),
            flags_[0],
            flags.size(),
            cudaMemcpyDeviceToHost,
            home_.stream));
    waitFor(home_.stream);
    for (size_t i = 0; i < flags.size(); ++i) {
        if (flags[i]) {
            rows.push_back(idx_t(i));
        }
    }
    return rows;
}

} // namespace faiss_bits::gpu::detail

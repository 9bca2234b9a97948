// Merges of what the shards of a batch have found.

#include <thread>

#include "faiss_bits/many/ShardBatch.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

void ShardBatch::mergeAll_() {
    const auto& groups = set_.devices.groups();
    for (int group = 0; group < int(groups.size()); ++group) {
        set_.devices.onPart(
                groups[group].parts[0], [&] { mergeSlice_(group); });
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
    const cudaStream_t source = done_[shard].stream;
    list.distances = here.distances;
    list.ids = here.labels;
    set_.copies->copy(
            group,
            here.labels,
            lead.stream,
            from,
            found.labels + at,
            source,
            count * sizeof(idx_t));
    set_.copies->copy(
            group,
            here.distances,
            lead.stream,
            from,
            found.distances + at,
            source,
            count * sizeof(float));
    return list;
}

void ShardBatch::takeFlags_(int group) {
    bool haveFlags = sample_ != nullptr;
    for (int shard = 0; shard < set_.devices.size(); ++shard) {
        haveFlags = haveFlags || isCut_(shard);
    }
    if (haveFlags && !flags_[group]) {
        const int lead = set_.devices.groups()[group].parts[0];
        flags_[group] = static_cast<uint8_t*>(memory_[group].take(
                contextOf_(lead), sliceBegin_(group + 1) - sliceBegin_(group)));
    }
}

void ShardBatch::mergeSlice_(int group) {
    const auto& groups = set_.devices.groups();
    const idx_t first = sliceBegin_(group);
    const idx_t rows = sliceBegin_(group + 1) - first;
    const GpuContext lead = contextOf_(groups[group].parts[0]);
    // They have read the lead's queries, too.
    for (int shard : groups[group].parts) {
        done_[shard].holdUp(lead.stream);
    }
    if (rows == 0) {
        return;
    }
    MergeProblem merge;
    merge.rows = rows;
    merge.k = queries_.k;
    merge.largest = largest_;
    merge.idsAscend = set_.isFlat() && set_.segments.empty();
    for (int shard = 0; shard < set_.devices.size(); ++shard) {
        if (found_[shard].width > 0) {
            merge.lists.push_back(listFor_(group, lead, shard, first, rows));
        }
    }
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

    // What the shards of this device found may be overwritten then.
    StreamMark read;
    read.record(lead.stream);
    for (int shard : groups[group].parts) {
        if (found_[shard].width > 0) {
            read.holdUp(done_[shard].stream);
        }
    }
    if (group != 0) {
        set_.copies->copy(
                0,
                labels,
                home_.stream,
                group,
                merged.labels,
                lead.stream,
                count * sizeof(idx_t));
        set_.copies->copy(
                0,
                distances,
                home_.stream,
                group,
                merged.distances,
                lead.stream,
                count * sizeof(float));
    }
}

std::vector<idx_t> ShardBatch::incompleteRows() const {
    const auto& groups = set_.devices.groups();
    std::vector<idx_t> rows;
    for (int group = 0; group < int(groups.size()); ++group) {
        if (!flags_[group]) {
            continue;
        }
        set_.devices.onPart(groups[group].parts[0], [&] {
            const idx_t first = sliceBegin_(group);
            std::vector<uint8_t> flags(sliceBegin_(group + 1) - first);
            const cudaStream_t stream =
                    contextOf_(groups[group].parts[0]).stream;
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    flags.data(),
                    flags_[group],
                    flags.size(),
                    cudaMemcpyDeviceToHost,
                    stream));
            waitFor(stream);
            for (size_t i = 0; i < flags.size(); ++i) {
                if (flags[i]) {
                    rows.push_back(first + idx_t(i));
                }
            }
        });
    }
    return rows;
}

} // namespace faiss_bits::gpu::detail

#include "faiss_bits/many/ShardBatch.h"

#include <algorithm>

#include "faiss_bits/common/WhenEnqueued.h"
#include "faiss_bits/flat/SearchWithin.h"
#include "faiss_bits/ivf/OurIvf.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

static_assert(ManyDevices::kMostParts == kMaxMergeLists);

idx_t mostMergedAtHome(ListsHome how, int lists, size_t tempMemory) {
    // To send slices there and back takes longer than to merge a few results in
    // one place. Inverted lists wait for their devices before anyone can
    // enqueue that: three times as many.
    idx_t most = how == ListsHome::SentFlat ? 1 << 19 : 3 << 19;
    if (how == ListsHome::Written) {
        // Nothing is left but the merge, 26 us for two lists of 10,240 x 100
        // (H200), where slices are 24 copies between four devices. Memory for
        // the lists sets the limit.
        constexpr idx_t kMost = 1 << 23;
        const auto room = idx_t(tempMemory / 4 / kResultBytes);
        most = std::max(most, std::min(kMost, room));
    }
    return most / std::max(lists - 1, 1);
}

ShardBatch::ShardBatch(
        const ShardSet& set,
        const GpuContext& home,
        int d,
        bool largest,
        const ShardQueries& queries,
        const std::vector<idx_t>& widths,
        const ShardSample* sample)
        : set_(set),
          home_(home),
          d_(d),
          largest_(largest),
          queries_(queries),
          widths_(widths),
          sample_(sample),
          isMergedAtHome_(isMergedByFirst_()),
          x_(set.devices.groups().size()),
          limits_(set.devices.groups().size()),
          flags_(set.devices.groups().size()),
          found_(set.devices.size()),
          done_(set.devices.size()),
          atHome_(set.devices.size()),
          sent_(set.devices.size()),
          goesHome_(set.devices.size()),
          enqueued_(set.devices.groups().size()),
          memory_(set.devices.groups().size()) {}

void ShardBatch::run() {
    // Before anyone searches on the stream: other devices wait for no search.
    start_.recordUnlessIdle(home_.stream);
    try {
        prepareHome_();
        if (!set_.isFlat()) {
            // A merge behind a search comes while this has memory of its own.
            takeFlags_(0);
        }
        search_();
    } catch (...) {
        // Parts' own streams are awaited by who lets go of the memory.
        if (helper_) {
            (void)cudaStreamSynchronize(helper_);
            (void)cudaGetLastError();
        }
        throw;
    }
}

void ShardBatch::prepareHome_() {
    const auto groups = int(set_.devices.groups().size());
    if (groups == 1 || !isMergedAtHome_) {
        return;
    }
    helper_ = home_.resources->getAlternateStreams(home_.device).at(0);
    start_.holdUp(helper_);
    for (int shard = 0; shard < set_.devices.size(); ++shard) {
        const idx_t width = widths_[shard];
        if (set_.devices.groupOf(shard) != 0 && width > 0) {
            const size_t bytes = size_t(queries_.n) * width * kResultBytes;
            atHome_[shard] =
                    Results(memory_[0].take(home_, bytes), queries_.n, width);
        }
    }
}

void ShardBatch::search_() {
    if (sample_) {
        set_.devices.onGroups([&](int group) { findLimits_(group); });
        exchangeLimits_();
    }
    set_.devices.onGroups([&](int group) {
        try {
            searchGroup_(group);
        } catch (...) {
            failed_ = true;
            enqueued_[group] = true;
            throw;
        }
        enqueued_[group] = true;
    });
    // Nobody searches any more: all is enqueued.
    if (isMerged_ && !again_) {
        return;
    }
    if (again_) {
        for (int shard = 0; shard < set_.devices.size(); ++shard) {
            if (widths_[shard] > 0) {
                set_.devices.onPart(shard, [&] {
                    sendFound_(set_.devices.groupOf(shard), shard);
                });
            }
        }
    }
    mergeAll_();
}

bool ShardBatch::isCut_(int shard) const {
    return widths_[shard] < std::min(queries_.k, set_.sizeOf(shard));
}

bool ShardBatch::isMergedByFirst_() const {
    const int groups = int(set_.devices.groups().size());
    ListsHome how = ListsHome::SentFlat;
    if (!set_.isFlat()) {
        how = ListsHome::Written;
        for (int group = 1; group < groups; ++group) {
            for (int shard : set_.devices.groups()[group].parts) {
                if (!set_.copies->isDirect(group, 0) ||
                    !isOurIvf(*set_.parts[shard])) {
                    how = ListsHome::Sent;
                }
            }
        }
    }
    int lists = 1; // of the first group, and of each shard of the others
    idx_t width = 0;
    for (int shard = 0; shard < set_.devices.size(); ++shard) {
        if (set_.devices.groupOf(shard) != 0) {
            ++lists;
            width = std::max(width, widths_[shard]);
        }
    }
    if (set_.isFlat()) {
        width = queries_.k;
    }
    return width * queries_.n <=
            mostMergedAtHome(
                    how,
                    lists,
                    home_.resources->getTempMemoryAvailable(home_.device));
}

idx_t ShardBatch::sliceBegin_(int group) const {
    if (isMergedAtHome_) {
        return group == 0 ? 0 : queries_.n;
    }
    return sliceBegin(queries_.n, int(set_.devices.groups().size()), group);
}

idx_t ShardBatch::limitsBegin_(int group) const {
    return sliceBegin(queries_.n, int(set_.devices.groups().size()), group);
}

GpuContext ShardBatch::contextOf_(int shard) const {
    return shard == 0 ? home_ : set_.devices.context(shard);
}

const float* ShardBatch::queriesFor_(int group, const GpuContext& lead) {
    if (group == 0) {
        return queries_.x;
    }
    if (!x_[group]) {
        const size_t bytes = size_t(queries_.n) * d_ * sizeof(float);
        void* copy = memory_[group].take(lead, bytes);
        set_.copies->fetch(
                group,
                copy,
                lead.stream,
                0,
                queries_.x,
                start_,
                home_.resources->getAsyncCopyStream(home_.device),
                bytes);
        x_[group] = static_cast<const float*>(copy);
    }
    return x_[group];
}

void ShardBatch::findLimits_(int group) {
    const int part = set_.devices.groups()[group].parts[0];
    const idx_t first = limitsBegin_(group);
    const idx_t rows = limitsBegin_(group + 1) - first;
    set_.devices.onPart(part, [&] {
        const GpuContext lead = contextOf_(part);
        const float* x = queriesFor_(group, lead);
        limits_[group] = static_cast<float*>(
                memory_[group].take(lead, size_t(queries_.n) * sizeof(float)));
        sample_->limits(
                group,
                lead,
                x + first * d_,
                rows,
                queries_.k,
                memory_[group],
                limits_[group] + first);
    });
}

void ShardBatch::exchangeLimits_() {
    const auto& groups = set_.devices.groups();
    for (int from = 0; from < int(groups.size()); ++from) {
        const idx_t first = limitsBegin_(from);
        const idx_t rows = limitsBegin_(from + 1) - first;
        for (int to = 0; to < int(groups.size()); ++to) {
            if (to == from) {
                continue;
            }
            set_.copies->copy(
                    to,
                    limits_[to] + first,
                    contextOf_(groups[to].parts[0]).stream,
                    from,
                    limits_[from] + first,
                    contextOf_(groups[from].parts[0]).stream,
                    size_t(rows) * sizeof(float));
        }
    }
}

void ShardBatch::searchGroup_(int group) {
    const PartGroup& parts = set_.devices.groups()[group];
    const bool isEmpty =
            std::all_of(parts.parts.begin(), parts.parts.end(), [&](int shard) {
                return widths_[shard] == 0;
            });
    if (isEmpty) {
        return;
    }
    const float* x = nullptr;
    const GpuContext lead = contextOf_(parts.parts[0]);
    StreamMark ready;
    set_.devices.onPart(parts.parts[0], [&] {
        x = queriesFor_(group, lead);
        if (parts.parts.size() > 1) {
            ready.record(lead.stream);
        }
    });
    int last = 0;
    for (int shard : parts.parts) {
        last = widths_[shard] > 0 ? shard : last;
    }
    for (int shard : parts.parts) {
        if (widths_[shard] > 0) {
            set_.devices.onPart(shard, [&] {
                searchShard_(group, shard, x, ready, shard == last);
            });
        }
    }
}

void ShardBatch::searchShard_(
        int group,
        int shard,
        const float* x,
        const StreamMark& ready,
        bool isLast) {
    const GpuContext context = contextOf_(shard);
    const idx_t width = widths_[shard];
    ready.holdUp(context.stream);
    const bool hasSegments = !set_.segments.empty() && set_.segments[shard];
    goesHome_[shard] = atHome_[shard].width > 0 && !hasSegments &&
            set_.canWriteHome(shard, {atHome_[shard].labels});
    found_[shard] = goesHome_[shard]
            ? atHome_[shard]
            : Results(memory_[group].take(
                              context,
                              size_t(queries_.n) * width * kResultBytes),
                      queries_.n,
                      width);
    SearchWithin within;
    if (sample_) {
        within.limits = limits_[group];
        within.numWithin = sample_->numWithin(set_, shard, queries_.k);
    }
    bool isTold = false;
    const WhenEnqueued when([&] {
        if (isTold) {
            again_ = true;
            return;
        }
        isTold = true;
        sendFound_(group, shard);
        if (isLast && group == 0) {
            mergeBehind_();
        } else if (isLast) {
            enqueued_[group] = true;
        }
    });
    const auto search = [&] {
        set_.parts[shard]->search(
                queries_.n,
                x,
                width,
                found_[shard].distances,
                found_[shard].labels,
                sample_ ? &within : queries_.params(shard));
    };
    if (goesHome_[shard]) {
        set_.searchAfar(shard, search);
    } else {
        search();
    }
    if (isTold) {
        return;
    }
    if (hasSegments) {
        runMapIds(
                static_cast<const IdSegment*>(set_.segments[shard].get()),
                idx_t(set_.map.segments(shard).size()),
                found_[shard].labels,
                queries_.n * width,
                context.stream);
    }
    sendFound_(group, shard);
}

void ShardBatch::sendFound_(int group, int shard) {
    const GpuContext context = contextOf_(shard);
    if (goesHome_[shard]) {
        sent_[shard].record(context.stream);
    } else if (atHome_[shard].width > 0) {
        set_.copies->send(
                0,
                atHome_[shard].labels, // both lie together
                helper_,
                group,
                found_[shard].labels,
                context.stream,
                size_t(queries_.n) * widths_[shard] * kResultBytes,
                sent_[shard]);
    }
    done_[shard].record(context.stream);
}

} // namespace faiss_bits::gpu::detail

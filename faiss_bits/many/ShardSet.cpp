// The search of shards, and the merge of what they find.

#include "faiss_bits/many/ShardSet.h"

#include <algorithm>

#include "faiss_bits/many/ManyMemory.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/many/MergeLists.h"

namespace faiss_bits::gpu::detail {

static_assert(ManyDevices::kMostParts == kMaxMergeLists);

namespace {

constexpr size_t kResultBytes = sizeof(float) + sizeof(idx_t);
/// Results of a batch that a device may hold at least.
constexpr size_t kLeastBatchBytes = size_t(64) << 20;

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

/// One batch of queries: searched by all shards, then merged.
class Batch {
   public:
    Batch(const ShardSet& set,
          const GpuContext& home,
          int d,
          bool largest,
          const ShardQueries& queries,
          const std::vector<idx_t>& widths)
            : set_(set),
              home_(home),
              d_(d),
              largest_(largest),
              queries_(queries),
              widths_(widths),
              flags_(set.devices.groups().size()),
              found_(set.devices.size()),
              done_(set.devices.size()),
              memory_(set.devices.groups().size()) {}

    void run() {
        const auto& groups = set_.devices.groups();
        set_.devices.onGroups([&](int group) { searchGroup_(group); });
        // Nobody searches any more: all is enqueued.
        for (int group = 0; group < int(groups.size()); ++group) {
            set_.devices.onPart(
                    groups[group].parts[0], [&] { mergeSlice_(group); });
        }
    }

    /// After run(): rows whose cut lists were too short. Waits if a list is
    /// cut.
    std::vector<idx_t> incompleteRows() const {
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

   private:
    idx_t widthOf_(int shard) const {
        return widths_[shard];
    }
    bool isCut_(int shard) const {
        return widths_[shard] < std::min(queries_.k, set_.sizeOf(shard));
    }

    idx_t sliceBegin_(int group) const {
        return sliceBegin(queries_.n, int(set_.devices.groups().size()), group);
    }

    /// In the thread of the group. The lead of group 0 is the first shard, on
    /// the stream that the caller has chosen.
    GpuContext contextOf_(int shard) const {
        return shard == 0 ? home_ : set_.devices.context(shard);
    }

    void searchGroup_(int group) {
        const PartGroup& parts = set_.devices.groups()[group];
        const bool isEmpty = std::all_of(
                parts.parts.begin(), parts.parts.end(), [&](int shard) {
                    return widthOf_(shard) == 0;
                });
        if (isEmpty) {
            return;
        }
        const float* x = queries_.x;
        const GpuContext lead = contextOf_(parts.parts[0]);
        StreamMark ready;
        set_.devices.onPart(parts.parts[0], [&] {
            if (group != 0) {
                const size_t bytes = size_t(queries_.n) * d_ * sizeof(float);
                void* copy = memory_[group].take(lead, bytes);
                set_.copies->copy(
                        group,
                        copy,
                        lead.stream,
                        0,
                        x,
                        home_.stream,
                        bytes,
                        true); // the stream of home waits for all in the end
                x = static_cast<const float*>(copy);
            }
            ready.record(lead.stream);
        });
        for (int shard : parts.parts) {
            if (widthOf_(shard) > 0) {
                set_.devices.onPart(
                        shard, [&] { searchShard_(group, shard, x, ready); });
            }
        }
    }

    void searchShard_(
            int group,
            int shard,
            const float* x,
            const StreamMark& ready) {
        const GpuContext context = contextOf_(shard);
        const idx_t width = widthOf_(shard);
        ready.holdUp(context.stream);
        found_[shard] = Results(
                memory_[group].take(
                        context, size_t(queries_.n) * width * kResultBytes),
                queries_.n,
                width);
        set_.shards[shard]->search(
                queries_.n,
                x,
                width,
                found_[shard].distances,
                found_[shard].labels,
                queries_.params(shard));
        if (!set_.segments.empty() && set_.segments[shard]) {
            runMapIds(
                    static_cast<const IdSegment*>(set_.segments[shard].get()),
                    idx_t(set_.map.segments(shard).size()),
                    found_[shard].labels,
                    queries_.n * width,
                    context.stream);
        }
        done_[shard].record(context.stream);
    }

    /// Results of rows first .. first + rows - 1 of a shard for the lead of a
    /// group: in place, or copied.
    MergeList listFor_(
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
        const size_t count = size_t(rows) * found.width;
        const Results here(
                memory_[group].take(lead, count * kResultBytes),
                rows,
                found.width);
        const cudaStream_t source = done_[shard].stream;
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
        list.distances = here.distances;
        list.ids = here.labels;
        return list;
    }

    void mergeSlice_(int group) {
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
                merge.lists.push_back(
                        listFor_(group, lead, shard, first, rows));
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
        for (int shard = 0; shard < set_.devices.size(); ++shard) {
            if (isCut_(shard) && !flags_[group]) {
                flags_[group] =
                        static_cast<uint8_t*>(memory_[group].take(lead, rows));
                BITS_CUDA_CHECK(
                        cudaMemsetAsync(flags_[group], 0, rows, lead.stream));
            }
        }
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

    const ShardSet& set_;
    const GpuContext home_;
    const int d_;
    const bool largest_;
    const ShardQueries& queries_;
    const std::vector<idx_t>& widths_;
    std::vector<uint8_t*> flags_;     // of each group: of its slice, or null
    std::vector<Results> found_;      // of each shard
    std::vector<StreamMark> done_;    // likewise
    std::vector<MemoryStack> memory_; // of each group
};

} // namespace

ShardSet::ShardSet(const DeviceList& list, const GpuIndexBitsManyConfig& config)
        : config(config),
          devices(list, config, "shard"),
          copies(std::make_unique<DeviceCopies>(devices, config)),
          map(devices.size(), config.leastPiece) {}

std::vector<std::shared_ptr<void>> ShardSet::uploadSegments(
        const ShardMap& of) const {
    if (of.isInOrder()) {
        return {};
    }
    std::vector<std::shared_ptr<void>> made(devices.size());
    for (int shard = 0; shard < devices.size(); ++shard) {
        const auto& list = of.segments(shard);
        if (list.empty()) {
            continue;
        }
        devices.onPart(shard, [&] {
            const size_t bytes = list.size() * sizeof(IdSegment);
            made[shard] = allocateOnDevice(bytes);
            const cudaStream_t stream = devices.context(shard).stream;
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    made[shard].get(),
                    list.data(),
                    bytes,
                    cudaMemcpyHostToDevice,
                    stream));
            waitFor(stream);
        });
    }
    return made;
}

void ShardSet::search(
        const GpuContext& home,
        int d,
        bool largest,
        const ShardQueries& queries) const {
    // Bytes of a query on the device that has most of them.
    size_t perQuery = 0;
    size_t budget = SIZE_MAX;
    for (int shard = 0; shard < devices.size(); ++shard) {
        const DevicePlace& place = devices[shard];
        const size_t there =
                place.resources->getTempMemoryAvailable(place.device) / 4;
        budget = std::min(budget, std::max(there, kLeastBatchBytes));
        const idx_t width = std::min(queries.k, sizeOf(shard));
        perQuery = std::max(perQuery, size_t(width) * kResultBytes);
    }
    // A lead also gets slices of what the others found, and makes one.
    const size_t groups = devices.groups().size();
    if (groups > 1) {
        perQuery = 2 * perQuery + d * sizeof(float) +
                size_t(queries.k) * kResultBytes / groups;
    }
    const idx_t most =
            std::max<idx_t>(1, budget / std::max<size_t>(perQuery, 1));
    const int batches = int(std::min<idx_t>(
            (queries.n + most - 1) / most, std::numeric_limits<int>::max()));
    for (int i = 0; i < batches; ++i) {
        const idx_t first = sliceBegin(queries.n, batches, i);
        ShardQueries some = queries;
        some.n = sliceBegin(queries.n, batches, i + 1) - first;
        some.x += first * d;
        some.distances += first * queries.k;
        some.labels += first * queries.k;
        searchBatch(home, d, largest, some);
    }
}

std::vector<idx_t> ShardSet::widths(const ShardQueries& queries) const {
    std::vector<idx_t> full;
    std::vector<idx_t> cut;
    idx_t total = 0;
    for (int shard = 0; shard < devices.size(); ++shard) {
        total += sizeOf(shard);
    }
    double all = 0;
    double fewer = 0;
    for (int shard = 0; shard < devices.size(); ++shard) {
        full.push_back(std::min(queries.k, sizeOf(shard)));
        cut.push_back(firstWidth(
                queries.k, sizeOf(shard), std::max<idx_t>(total, 1)));
        all += double(full.back());
        fewer += double(cut.back());
    }
    // Else the wait costs more than it saves.
    const bool pays = double(queries.n) * double(queries.k) >= 65536 &&
            fewer <= 0.75 * all;
    if (!queries.mayCut || !pays) {
        return full;
    }
    if (uncut > 0) {
        --uncut;
        return full;
    }
    return cut;
}

void ShardSet::searchBatch(
        const GpuContext& home,
        int d,
        bool largest,
        const ShardQueries& queries) const {
    const std::vector<idx_t> wanted = widths(queries);
    std::vector<idx_t> again;
    {
        Batch batch(*this, home, d, largest, queries, wanted);
        try {
            batch.run();
            again = batch.incompleteRows();
        } catch (...) {
            devices.waitForAll(); // before temporary memory is let go of
            throw;
        }
    }
    if (again.empty()) {
        return;
    }
    // Where vectors are not in random order, nor are the shards of the best.
    constexpr int kPause = 15;
    if (idx_t(again.size()) > queries.n / 16) {
        uncut = kPause;
    }
    searchAgain(home, d, largest, queries, again);
}

void ShardSet::searchAgain(
        const GpuContext& home,
        int d,
        bool largest,
        const ShardQueries& queries,
        const std::vector<idx_t>& rows) const {
    ShardQueries whole = queries;
    whole.mayCut = false;
    // Few of them are copied one by one.
    constexpr size_t kFew = 64;
    if (rows.size() > kFew) {
        searchBatch(home, d, largest, whole);
        return;
    }
    MemoryStack memory;
    ShardQueries some = whole;
    some.n = idx_t(rows.size());
    const size_t queryBytes = size_t(d) * sizeof(float);
    const size_t k = size_t(queries.k);
    auto* x = static_cast<float*>(memory.take(home, some.n * queryBytes));
    const Results out(
            memory.take(home, some.n * k * kResultBytes), some.n, queries.k);
    const auto copyRow = [&](void* to, const void* from, size_t bytes) {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                to, from, bytes, cudaMemcpyDeviceToDevice, home.stream));
    };
    for (size_t i = 0; i < rows.size(); ++i) {
        copyRow(x + i * d, queries.x + rows[i] * d, queryBytes);
    }
    some.x = x;
    some.distances = out.distances;
    some.labels = out.labels;
    searchBatch(home, d, largest, some);
    for (size_t i = 0; i < rows.size(); ++i) {
        copyRow(queries.distances + rows[i] * k,
                out.distances + i * k,
                k * sizeof(float));
        copyRow(queries.labels + rows[i] * k,
                out.labels + i * k,
                k * sizeof(idx_t));
    }
}

} // namespace faiss_bits::gpu::detail

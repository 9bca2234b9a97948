#include "faiss_bits/many/StagedRange.h"

#include <algorithm>
#include <utility>

#include <faiss/impl/AuxIndexStructures.h>

#include "faiss_bits/many/ManyRange.h"
#include "faiss_bits/many/MetricParts.h"
#include "faiss_bits/metric_space/GpuMetricRun.h"
#include "faiss_bits/range/RangeResults.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

using metric_space::groupBitsWords;
using metric_space::MetricGroups;

namespace {

/// Of bits of groups on a device, for a page.
constexpr size_t kBitsBytes = size_t(256) << 20;

idx_t roundUp(idx_t value, idx_t step) {
    return (value + step - 1) / step * step;
}

/// Queries of a page on the device.
class PageQueries {
   public:
    PageQueries(const GpuContext& context, const float* x, idx_t rows, int d)
            : array_(context, "x", x, size_t(rows) * d * sizeof(float)) {}

    const float* data() const {
        return static_cast<const float*>(array_.data());
    }

   private:
    DeviceArray array_;
};

} // namespace

idx_t StagedRange::Page::sliceFirst(int slice) const {
    return std::min(slice * sliceRows, rows);
}

idx_t StagedRange::Page::sliceSize(int slice) const {
    return sliceFirst(slice + 1) - sliceFirst(slice);
}

uint32_t StagedRange::Page::sliceWords(int slice) const {
    return groupBitsWords(sliceSize(slice));
}

StagedRange::StagedRange(
        const MetricShardSet& set,
        RangeStages stages,
        const float* x,
        float radius)
        : set_(set),
          stages_(stages),
          x_(x),
          radius_(radius),
          found_(set.shards.size()) {
    if (stages == RangeStages::OneAndAHalf) {
        centers_.resize(set.shards.size());
    } else if (stages == RangeStages::Two) {
        centers_.resize(1);
    }
}

uint32_t StagedRange::numGroups_() const {
    return set_.shards[0].bounds.groups().numGroups;
}

idx_t StagedRange::pageRows(idx_t n) const {
    const size_t ofQuery = size_t(set_.d) * sizeof(float);
    idx_t rows = std::max<idx_t>(kMetricQueryBytes / ofQuery, 1);
    if (stages_ != RangeStages::One) {
        const size_t ofWord = std::max(numGroups_(), 1u) * sizeof(uint32_t);
        rows = std::min<idx_t>(
                rows, std::max<size_t>(kBitsBytes / ofWord, 1) * 32);
    }
    return std::min(rows, n);
}

void StagedRange::runPage(idx_t first, idx_t rows) {
    const int parts = set_.devices.size();
    Page page;
    page.first = first;
    page.rows = rows;
    page.sliceRows = roundUp((rows + parts - 1) / parts, 32);
    page.memory = std::vector<MemoryStack>(set_.devices.groups().size());
    page.bits.resize(parts);
    page.centers.resize(parts);
    try {
        switch (stages_) {
            case RangeStages::One:
                set_.devices.onEach([&](int part) { oneStage_(page, part); });
                break;
            case RangeStages::OneAndAHalf:
                set_.devices.onEach(
                        [&](int part) { oneAndAHalfStages_(page, part); });
                break;
            case RangeStages::Two:
                set_.devices.onEach([&](int part) { firstOfTwo_(page, part); });
                set_.devices.onEach(
                        [&](int part) { secondOfTwo_(page, part); });
                for (const FoundRanges& slice : page.centers) {
                    centers_[0].append(slice);
                }
        }
    } catch (...) {
        set_.devices.waitForAll(); // before the memory goes
        throw;
    }
}

void StagedRange::oneStage_(const Page& page, int part) {
    MetricShard& shard = set_.shards[part];
    const GpuContext context = set_.devices.context(part);
    const PageQueries queries(
            context, x_ + page.first * set_.d, page.rows, set_.d);
    MetricRun run(context, shard.groups.groups(), page.rows, queries.data());
    shard.distances += run.range(radius_, found_[part]);
}

void StagedRange::oneAndAHalfStages_(const Page& page, int part) {
    const int parts = set_.devices.size();
    MetricShard& shard = set_.shards[part];
    const GpuContext context = set_.devices.context(part);
    const PageQueries queries(
            context, x_ + page.first * set_.d, page.rows, set_.d);
    const uint32_t words = groupBitsWords(page.rows);
    auto bits = allocTemporary(
            context,
            std::max<size_t>(size_t(numGroups_()) * words, 1) *
                    sizeof(uint32_t));
    uint32_t* all = static_cast<uint32_t*>(bits.get());
    MetricGroups bounds = shard.bounds.groups();
    bounds.referenceIds = static_cast<const int32_t*>(shard.ownCenters.get());
    MetricRun first(context, bounds, page.rows, queries.data());
    shard.distances += first.firstStage(radius_, all, words, centers_[part]);
    // Our groups are every parts-th one of all.
    MetricRun second(context, shard.groups.groups(), page.rows, queries.data());
    shard.distances += second.secondStage(
            radius_,
            all + size_t(part) * words,
            uint32_t(parts) * words,
            found_[part]);
}

void StagedRange::firstOfTwo_(Page& page, int part) {
    const int parts = set_.devices.size();
    const idx_t rows = page.sliceSize(part);
    if (rows == 0) {
        return;
    }
    MetricShard& shard = set_.shards[part];
    const GpuContext context = set_.devices.context(part);
    const uint32_t words = page.sliceWords(part);
    const size_t row = words * sizeof(uint32_t);
    const size_t bytes = std::max<size_t>(numGroups_(), 1) * row;
    MemoryStack& memory = page.memory[set_.devices.groupOf(part)];
    page.bits[part] = static_cast<uint32_t*>(memory.take(context, bytes));
    const PageQueries queries(
            context,
            x_ + (page.first + page.sliceFirst(part)) * set_.d,
            rows,
            set_.d);
    auto found = allocTemporary(context, bytes);
    uint32_t* all = static_cast<uint32_t*>(found.get());
    MetricRun run(context, shard.bounds.groups(), rows, queries.data());
    shard.distances += run.firstStage(radius_, all, words, page.centers[part]);
    // What each part has to know side by side.
    uint32_t* to = page.bits[part];
    for (int other = 0; other < parts; ++other) {
        const uint32_t groups = groupsOfPart(numGroups_(), other, parts);
        if (groups > 0) {
            BITS_CUDA_CHECK(cudaMemcpy2DAsync(
                    to,
                    row,
                    all + size_t(other) * words,
                    row * parts,
                    row,
                    groups,
                    cudaMemcpyDeviceToDevice,
                    context.stream));
        }
        to += size_t(groups) * words;
    }
    waitFor(context.stream); // others read it
}

void StagedRange::secondOfTwo_(const Page& page, int part) {
    const int parts = set_.devices.size();
    MetricShard& shard = set_.shards[part];
    const GpuContext context = set_.devices.context(part);
    const int ours = set_.devices.groupOf(part);
    const uint32_t groups = shard.groups.groups().numGroups;
    size_t before = 0; // groups of the parts before
    for (int other = 0; other < part; ++other) {
        before += groupsOfPart(numGroups_(), other, parts);
    }
    const PageQueries queries(
            context, x_ + page.first * set_.d, page.rows, set_.d);
    // The paper: one kernel for what each device has found.
    for (int slice = 0; slice < parts; ++slice) {
        const idx_t rows = page.sliceSize(slice);
        if (rows == 0) {
            continue;
        }
        const uint32_t words = page.sliceWords(slice);
        const size_t bytes = size_t(groups) * words * sizeof(uint32_t);
        const uint32_t* bits = page.bits[slice] + before * words;
        const int theirs = set_.devices.groupOf(slice);
        TemporaryMemory copy;
        if (theirs != ours && bytes > 0) {
            copy = allocTemporary(context, bytes);
            set_.copies->copy(
                    ours,
                    copy.get(),
                    context.stream,
                    theirs,
                    bits,
                    set_.devices.context(slice).stream,
                    bytes);
            bits = static_cast<const uint32_t*>(copy.get());
        }
        MetricRun run(
                context,
                shard.groups.groups(),
                rows,
                queries.data() + page.sliceFirst(slice) * set_.d);
        shard.distances += run.secondStage(radius_, bits, words, found_[part]);
    }
    waitFor(context.stream);
}

void StagedRange::moveTo(faiss::RangeSearchResult* result) {
    std::vector<const FoundRanges*> all;
    for (const auto* of : {&found_, &centers_}) {
        for (const FoundRanges& one : *of) {
            all.push_back(&one);
        }
    }
    const idx_t n = idx_t(result->nq);
    for (idx_t q = 0; q < n; ++q) {
        size_t count = 0;
        for (const FoundRanges* one : all) {
            count += one->limits[q + 1] - one->limits[q];
        }
        result->lims[q] = count;
    }
    allocateResults(*result);
    const idx_t least = queriesOfAThread(*result);
    forHostParts(n, least, [&](idx_t begin, idx_t end) {
        joinByIds(all, begin, end, result);
    });
}

} // namespace faiss_bits::gpu::detail

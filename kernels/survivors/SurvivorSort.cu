#include "kernels/survivors/SurvivorSort.h"

#include <algorithm>
#include <vector>

#include "kernels/common/CudaCheck.h"
#include "kernels/survivors/FinishLaunch.h"
#include "kernels/survivors/ProvenLists.h"
#include "kernels/survivors/SurvivorSort.cuh"

namespace faiss_bits {

namespace {

/// Entries that are distributed at a time: few enough to bound the scratch,
/// and enough to fill the device many times.
constexpr idx_t kMostAtOnce = idx_t(1) << 26;

/// Blocks of a multiprocessor, for the kernel whose blocks take many turns.
constexpr idx_t kTurnBlocks = 2;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

/// Rows of one pass, evenly distributed over as few passes as can be.
idx_t rowsAtOnce(idx_t rows, idx_t capacity) {
    const idx_t most = std::max<idx_t>(1, kMostAtOnce / capacity);
    return divUp(rows, std::max<idx_t>(1, divUp(rows, most)));
}

/// Most entries of a row that one block puts into shared memory to finish it,
/// so that two blocks share a multiprocessor.
constexpr uint32_t kMostStaged = 8192;

void checkCapacity(idx_t capacity) {
    BITS_THROW_IF_NOT_FMT(
            capacity >= 1 && capacity <= kMaxSurvivors,
            "capacity = %lld is outside 1..%lld",
            (long long)capacity,
            (long long)kMaxSurvivors);
}

void check(const SurvivorList& list, const SurvivorOutput& output) {
    checkCapacity(list.capacity);
    BITS_THROW_IF_NOT_FMT(
            list.rows >= 0 && list.firstRow >= 0 &&
                    list.rows + list.firstRow <= INT32_MAX,
            "rows = %lld from %lld are outside 0..%d",
            (long long)list.rows,
            (long long)list.firstRow,
            INT32_MAX);
    BITS_THROW_IF_NOT_FMT(
            list.columns >= 0 && list.columns <= kMaxSurvivors,
            "columns = %lld is outside 0..%lld",
            (long long)list.columns,
            (long long)kMaxSurvivors);
    BITS_THROW_IF_NOT_FMT(
            list.bucket >= 128, "bucket = %u is below 128", list.bucket);
    BITS_THROW_IF_NOT_FMT(output.k >= 1, "k = %d is below 1", output.k);
    BITS_THROW_IF_NOT_FMT(
            output.outStride == 0 || output.outStride >= output.k,
            "outStride = %lld is below k = %d",
            (long long)output.outStride,
            output.k);
    BITS_THROW_IF_NOT_FMT(list.rows == 0 || list.entries, "entries = nullptr");
    BITS_THROW_IF_NOT_FMT(list.rows == 0 || list.counts, "counts = nullptr");
    BITS_THROW_IF_NOT_FMT(
            list.rows == 0 || output.outKeys, "outKeys = nullptr");
    BITS_THROW_IF_NOT_FMT(list.rows == 0 || output.outIds, "outIds = nullptr");
    if (output.complete) {
        BITS_THROW_IF_NOT_FMT(output.flags, "flags = nullptr");
        BITS_THROW_IF_NOT_FMT(
                output.k <= kMaxFinishK,
                "k = %d is above %d, but complete is set",
                output.k,
                kMaxFinishK);
        BITS_THROW_IF_NOT_FMT(
                output.keyType == DataType::Float32,
                "keyType = %d is not Float32, but complete is set",
                int(output.keyType));
    }
}

using Levels = std::vector<SurvivorSortParams>;

/// The levels for up to `rows` rows a pass, and their memory.
Levels makeLevels(
        const SurvivorSortParams& shared,
        idx_t rows,
        idx_t capacity,
        uint32_t bucket,
        WorkspaceSlices& slices) {
    Levels levels;
    uint32_t stride = uint32_t(capacity);
    do {
        SurvivorSortParams p = shared;
        p.level = int(levels.size());
        p.bucket = bucket;
        p.stride = stride;
        p.buckets = bucketsOf(stride, bucket);
        const size_t buckets = size_t(rows) * p.buckets;
        if (levels.empty()) {
            // A level is done with these before the one before it begins.
            p.slots = slices.take<uint64_t>(
                    p.buckets > 1 ? buckets * kBucketRoom : 0);
        } else {
            const SurvivorSortParams& before = levels.back();
            p.slots = before.slots;
            p.entries = before.sample;
            p.drawn = before.sample;
            p.strideBefore = before.stride;
            p.sizesBefore = before.sizes;
            p.outSplitters = const_cast<uint64_t*>(before.splitters);
            p.outBuckets = before.buckets;
        }
        if (p.buckets > 1) {
            p.sample = slices.take<uint64_t>(buckets * kBucketSamples);
            p.splitters = slices.take<uint64_t>(buckets);
            p.sizes = slices.take<uint32_t>(buckets);
            p.starts = slices.take<uint32_t>(buckets);
        }
        levels.push_back(p);
        stride = p.buckets * kBucketSamples;
    } while (levels.back().buckets > 1);
    return levels;
}

void launch(
        void (*kernel)(const SurvivorSortParams),
        idx_t blocks,
        int threads,
        const SurvivorSortParams& p,
        cudaStream_t stream) {
    launchAfterPrevious(
            kernel, unsigned(blocks), unsigned(threads), 0, stream, p);
}

void sortBuckets(
        const SurvivorOutput& output,
        const SurvivorSortParams& p,
        cudaStream_t stream) {
    const auto kernel = p.level > 0 ? sortBucketsKernel<SurvivorSplitters>
            : output.keyType == DataType::Float32
            ? sortBucketsKernel<SurvivorResult<float>>
            : output.keyType == DataType::Float16
            ? sortBucketsKernel<SurvivorResult<__half>>
            : sortBucketsKernel<SurvivorResult<__nv_bfloat16>>;
    launch(kernel, idx_t(p.rows) * p.buckets, kBucketThreads, p, stream);
}

/// To the buckets of a level, which has several.
void distribute(
        const SurvivorOutput& output,
        SurvivorSortParams& p,
        cudaStream_t stream) {
    const idx_t rows = p.rows;
    const bool grouped = p.buckets <= kMostGrouped;
    const idx_t tiles = divUp(p.stride, kBucketRoom);
    const idx_t turns = std::max<idx_t>(
            1, kTurnBlocks * output.device.multiprocessors / rows);
    p.tiles = uint32_t(grouped ? tiles : std::min(tiles, turns));
    launch(grouped ? scatterGroupedKernel : scatterKernel,
           rows * p.tiles,
           kBucketThreads,
           p,
           stream);
    if (p.buckets > kMostSummed) {
        launch(startBucketsKernel, rows, kBucketThreads, p, stream);
    }
}

/// Every level samples; the last one's sample is sorted by a block as it is
/// drawn, and then each level's entries are distributed and sorted, back to the
/// first.
void runLevels(
        const SurvivorOutput& output,
        Levels& levels,
        cudaStream_t stream) {
    if (levels.size() == 1) {
        return sortBuckets(output, levels[0], stream);
    }
    const idx_t rows = levels[0].rows;
    // The last level is one bucket, which is drawn from the one before.
    for (size_t l = 0; l + 2 < levels.size(); ++l) {
        const SurvivorSortParams& p = levels[l];
        const idx_t parts =
                divUp(idx_t(p.buckets) * kBucketSamples, kSamplesPerBlock);
        launch(sampleSurvivorsKernel, rows * parts, kSampleThreads, p, stream);
    }
    SurvivorSortParams& last = levels.back();
    last.before = levels[levels.size() - 2].entries;
    launch(sortSampleKernel, rows, kBucketThreads, last, stream);
    for (size_t l = levels.size() - 1; l-- > 0;) {
        distribute(output, levels[l], stream);
        sortBuckets(output, levels[l], stream);
    }
}

/// What does not change from level to level.
SurvivorSortParams sharedParams(
        const SurvivorList& list,
        const SurvivorOutput& output,
        const KeySource* specials) {
    SurvivorSortParams p;
    if (specials) {
        static_cast<KeySource&>(p) = *specials;
    }
    static_cast<ResultParams&>(p) = makeResultParams(output, list.columns);
    p.columns = uint32_t(list.columns);
    p.capacity = uint32_t(list.capacity);
    // All bits of a float; the upper ones of what a shorter type holds.
    p.keyBit = output.keyType == DataType::Float32 ? 0
            : output.keyType == DataType::Float16  ? 13
                                                   : 16;
    // Empty places come last.
    p.anyOrder = !output.sorted && !output.dropNan;
    return p;
}

void finishByBlocks(
        const SurvivorList& list,
        const SurvivorOutput& output,
        const KeySource* specials,
        cudaStream_t stream) {
    ProvenListsParams p;
    if (specials) {
        static_cast<KeySource&>(p) = *specials;
    }
    static_cast<ResultParams&>(p) = makeResultParams(output, list.columns);
    p.firstRow = uint32_t(list.firstRow);
    // Lists are not written where no row is done again.
    p.survivors = const_cast<uint64_t*>(list.entries);
    p.counts = const_cast<uint32_t*>(list.counts);
    p.limits = const_cast<uint64_t*>(list.limits);
    p.capacity = uint32_t(list.capacity);
    p.staged = std::min(p.capacity, kMostStaged);
    if (output.complete) {
        p.complete = output.complete;
        p.flags = output.flags;
        launchProvenLists(
                p,
                unsigned(list.rows),
                list.usual > 0 ? std::max<idx_t>(list.usual, output.k) : 0,
                stream);
        return;
    }
    FinishParams plain;
    static_cast<KeySource&>(plain) = p;
    static_cast<ResultParams&>(plain) = p;
    static_cast<ListParams&>(plain) = p;
    const auto launch = output.keyType == DataType::Float32
            ? launchFinishLists<float>
            : output.keyType == DataType::Float16
            ? launchFinishLists<__half>
            : launchFinishLists<__nv_bfloat16>;
    launch(plain, unsigned(list.rows), stream);
}

} // namespace

ResultParams makeResultParams(const SurvivorOutput& output, idx_t columns) {
    ResultParams p;
    p.k = output.k;
    p.outKeys = output.outKeys;
    p.outIds = output.outIds;
    p.outStride = output.outStride ? output.outStride : output.k;
    p.ids = output.ids;
    p.idStride = output.sharedIds ? 0
            : output.idStride     ? output.idStride
                                  : columns;
    p.ids64 = output.idType == IdType::Int64;
    p.idOffset = output.idOffset;
    p.outSignMask = output.largest ? 0x80000000u : 0u;
    p.emptyNanFrom = output.dropNan ? 0 : ~0u;
    return p;
}

size_t survivorSortWorkspaceBytes(idx_t rows, idx_t capacity, uint32_t bucket) {
    checkCapacity(capacity);
    WorkspaceSlices slices;
    const idx_t most = std::max<idx_t>(1, kMostAtOnce / capacity);
    makeLevels({}, std::min(rows, most), capacity, bucket, slices);
    return slices.used();
}

size_t survivorWorkspaceBytes(const SurvivorList& list, int k) {
    checkCapacity(list.capacity);
    return k <= kMaxFinishK || list.rows == 0
            ? 0
            : survivorSortWorkspaceBytes(list.rows, list.capacity, list.bucket);
}

void runSurvivors(
        const SurvivorList& list,
        const SurvivorOutput& output,
        const KeySource* specials,
        Workspace workspace,
        cudaStream_t stream) {
    if (output.k > kMaxFinishK) {
        return runSurvivorSort(list, output, specials, workspace, stream);
    }
    check(list, output);
    if (list.rows > 0) {
        finishByBlocks(list, output, specials, stream);
    }
}

void runSurvivorSort(
        const SurvivorList& list,
        const SurvivorOutput& output,
        const KeySource* specials,
        Workspace workspace,
        cudaStream_t stream) {
    check(list, output);
    if (list.rows == 0) {
        return;
    }
    const idx_t step = rowsAtOnce(list.rows, list.capacity);
    WorkspaceSlices slices(workspace);
    Levels levels = makeLevels(
            sharedParams(list, output, specials),
            step,
            list.capacity,
            list.bucket,
            slices);
    for (idx_t row = 0; row < list.rows; row += step) {
        for (SurvivorSortParams& p : levels) {
            p.firstRow = uint32_t(list.firstRow + row);
            p.rows = uint32_t(std::min(step, list.rows - row));
            p.counts = list.counts + row;
        }
        levels[0].entries = list.entries + row * list.capacity;
        runLevels(output, levels, stream);
    }
}

} // namespace faiss_bits

#include "kernels/survivors/SurvivorSort.h"

#include <algorithm>
#include <vector>

#include "kernels/common/CudaCheck.h"
#include "kernels/select/SelectChecks.h"
#include "kernels/survivors/SurvivorSort.cuh"

namespace faiss_bits {

namespace {

/// Entries that are distributed at a time: few enough to bound the scratch,
/// and enough to fill the device many times.
constexpr idx_t kMostAtOnce = idx_t(1) << 26;

/// Blocks of a multiprocessor, for kernels whose blocks take many turns.
constexpr idx_t kTurnBlocks = 2;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

/// Rows of one pass, evenly distributed over as few passes as can be.
idx_t rowsAtOnce(idx_t rows, idx_t capacity) {
    const idx_t most = std::max<idx_t>(1, kMostAtOnce / capacity);
    return divUp(rows, std::max<idx_t>(1, divUp(rows, most)));
}

using Levels = std::vector<SurvivorSortParams>;

/// The levels for up to `rows` rows a pass, and their memory.
Levels makeLevels(
        const SelectParams& params,
        idx_t rows,
        idx_t capacity,
        uint32_t bucket,
        WorkspaceSlices& slices) {
    Levels levels;
    uint32_t stride = uint32_t(capacity);
    uint32_t* numLeft = slices.take<uint32_t>(1);
    do {
        SurvivorSortParams p;
        static_cast<SelectParams&>(p) = params;
        p.level = int(levels.size());
        p.bucket = bucket;
        p.stride = stride;
        p.buckets = bucketsOf(stride, bucket);
        p.numLeft = numLeft;
        const size_t buckets = size_t(rows) * p.buckets;
        if (levels.empty()) {
            // A level is done with these before the one before it begins.
            p.left = slices.take<uint32_t>(buckets);
            p.slots = slices.take<uint64_t>(
                    p.buckets > 1 ? buckets * kBucketRoom : 0);
        } else {
            const SurvivorSortParams& before = levels.back();
            p.left = before.left;
            p.slots = before.slots;
            p.entries = before.sample;
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

template <class Out>
void sortBuckets(
        const SurvivorSortParams& p,
        idx_t multiprocessors,
        cudaStream_t stream) {
    const idx_t buckets = idx_t(p.rows) * p.buckets;
    const idx_t turns = std::min(buckets, kTurnBlocks * multiprocessors);
    launch(sortBucketsKernel<Out>, buckets, kBucketThreads, p, stream);
    launch(mergeBucketsKernel<Out>, turns, kBucketThreads, p, stream);
}

void sortLevel(
        const SelectProblem& problem,
        const SurvivorSortParams& p,
        cudaStream_t stream) {
    if (p.level > 0) {
        return sortBuckets<SurvivorSplitters>(
                p, problem.multiprocessors, stream);
    }
    const auto sort = problem.keyType == DataType::Float32
            ? sortBuckets<SurvivorResult<float>>
            : problem.keyType == DataType::Float16
            ? sortBuckets<SurvivorResult<__half>>
            : sortBuckets<SurvivorResult<__nv_bfloat16>>;
    sort(p, problem.multiprocessors, stream);
}

/// Every level samples; the last one's sample is sorted by a block, and then
/// each level's entries are distributed and sorted, back to the first.
void runLevels(
        const SelectProblem& problem,
        Levels& levels,
        cudaStream_t stream) {
    const idx_t rows = levels[0].rows;
    if (levels.size() == 1) {
        // Only to clear numLeft.
        launch(startBucketsKernel, 1, kBucketThreads, levels[0], stream);
    }
    for (SurvivorSortParams& p : levels) {
        if (p.buckets > 1) {
            const idx_t parts =
                    divUp(idx_t(p.buckets) * kBucketSamples, kSamplesPerBlock);
            launch(sampleSurvivorsKernel,
                   rows * parts,
                   kSampleThreads,
                   p,
                   stream);
        }
    }
    for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
        SurvivorSortParams& p = *level;
        if (p.buckets > 1) {
            const bool grouped = p.buckets <= kMostGrouped;
            const idx_t tiles = divUp(p.stride, kBucketRoom);
            const idx_t turns = std::max<idx_t>(
                    1, kTurnBlocks * problem.multiprocessors / rows);
            p.tiles = uint32_t(grouped ? tiles : std::min(tiles, turns));
            launch(grouped ? scatterGroupedKernel : scatterKernel,
                   rows * p.tiles,
                   kBucketThreads,
                   p,
                   stream);
            launch(startBucketsKernel, rows, kBucketThreads, p, stream);
        }
        sortLevel(problem, p, stream);
    }
}

} // namespace

size_t survivorSortWorkspaceBytes(idx_t rows, idx_t capacity, uint32_t bucket) {
    WorkspaceSlices slices;
    const idx_t most = std::max<idx_t>(1, kMostAtOnce / capacity);
    makeLevels({}, std::min(rows, most), capacity, bucket, slices);
    return slices.used();
}

void runSurvivorSort(
        const SelectProblem& problem,
        const SurvivorRuns& runs,
        Workspace workspace,
        cudaStream_t stream) {
    const idx_t step = rowsAtOnce(runs.rows, runs.capacity);
    WorkspaceSlices slices(workspace);
    Levels levels = makeLevels(
            makeSelectParams(problem),
            step,
            runs.capacity,
            runs.bucket,
            slices);
    for (SurvivorSortParams& p : levels) {
        // All bits of a float; the upper ones of what a shorter type holds.
        p.keyBit = problem.keyType == DataType::Float32 ? 0
                : problem.keyType == DataType::Float16  ? 13
                                                        : 16;
        p.anyOrder = !problem.sorted;
    }
    for (idx_t row = 0; row < runs.rows; row += step) {
        for (SurvivorSortParams& p : levels) {
            p.firstRow = uint32_t(runs.firstRow + row);
            p.rows = uint32_t(std::min(step, runs.rows - row));
            p.counts = runs.counts + row;
        }
        levels[0].entries = runs.entries + row * runs.capacity;
        runLevels(problem, levels, stream);
    }
}

} // namespace faiss_bits

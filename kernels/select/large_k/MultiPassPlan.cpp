#include "kernels/select/large_k/MultiPassPlan.h"

#include <algorithm>
#include <string>

#include "kernels/select/large_k/MultiPassLaunch.h"
#include "kernels/select/large_k/SegmentSort.h"

namespace faiss_bits {

namespace {

constexpr size_t kBatchBytes = size_t(1) << 30;
/// Keeps the number of blocks of a launch far below its limit.
constexpr idx_t kMostBatchRows = idx_t(1) << 20;
/// Blocks that keep a multiprocessor busy with some to spare.
constexpr idx_t kBlocksPerMultiprocessor = 16;
/// A pass of Sample Select leaves fewer than one candidate in so many, on
/// average one in 128: the bucket of the k-th is rather a large one.
constexpr idx_t kSampleReduction = 64;
/// Room for candidates that any row gets.
constexpr idx_t kLeastCapacity = 16384;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

int samplePasses(idx_t cols) {
    int passes = 0;
    for (idx_t left = cols; left > kMultiPassBase; left /= kSampleReduction) {
        ++passes;
    }
    return passes;
}

/// Digits until one block can finish, whatever the keys are: three leave one
/// key and half of the columns, those after them as few columns as the base.
int radixPasses(idx_t cols) {
    if (cols <= kMultiPassBase) {
        return 0;
    }
    const int columnBits = std::min(bitsFor(cols), 31);
    static_assert(kMultiPassBase == 1u << kDigitBits);
    return 3 + int(divUp(std::max(0, columnBits - kDigitBits), kDigitBits));
}

uint32_t splitsFor(const SelectProblem& p, idx_t rows, uint32_t buckets) {
    // The histogram of a split is small against the columns it is about.
    const idx_t leastColumns = 16 * idx_t(buckets) + 8192;
    return uint32_t(std::clamp<idx_t>(
            p.cols / leastColumns,
            1,
            divUp(kBlocksPerMultiprocessor * p.device.multiprocessors, rows)));
}

/// Even, so that rows of entries stay aligned.
uint32_t capacityFor(idx_t cols, idx_t wanted) {
    return uint32_t(
            divUp(std::min(cols, std::max(wanted, kLeastCapacity)), 2) * 2);
}

} // namespace

idx_t rowsPerBatch(idx_t rows, size_t bytesPerRow) {
    const idx_t most = std::clamp<idx_t>(
            idx_t(kBatchBytes / bytesPerRow), 1, kMostBatchRows);
    return divUp(rows, divUp(rows, most));
}

std::string MultiPassPlan::toString() const {
    return sortsAll ? "every column sorted"
                    : std::to_string(passes) + " passes of " +
                    std::to_string(splits) + " blocks a row, " +
                    std::to_string(batch) + " rows at a time";
}

MultiPassPlan planMultiPass(const SelectProblem& p, MultiPassKind kind) {
    const bool radix = kind == MultiPassKind::Radix;
    const bool twoStages = kind == MultiPassKind::SampleTwoStage;
    MultiPassPlan plan;
    plan.sortsAll = p.k >= p.cols;
    if (plan.sortsAll) {
        return plan;
    }
    plan.buckets = radix ? kDigitBuckets : kSampleBuckets;
    plan.passes = radix ? radixPasses(p.cols) : samplePasses(p.cols);
    plan.tiles = twoStages ? uint32_t(divUp(p.cols, kMatchTile)) : 0;
    if (plan.passes > 0) {
        plan.capacities[0] = capacityFor(p.cols, p.cols * 5 / 32);
        plan.capacities[1] = capacityFor(p.cols, p.cols * 5 / 128);
        plan.splits = splitsFor(p, p.rows, plan.buckets);
    }
    const size_t entries = size_t(plan.capacities[0]) + plan.capacities[1] +
            (p.sorted ? p.k : 0) + plan.tiles;
    const size_t splitBytes = 4 * (plan.buckets + 2);
    plan.batch = rowsPerBatch(
            p.rows,
            8 * (entries + kSampleBuckets) + 2 * sizeof(RowState) + 64 +
                    plan.splits * splitBytes);
    if (plan.passes > 0) {
        plan.splits = splitsFor(p, plan.batch, plan.buckets);
    }
    return plan;
}

MultiPassLaunches multiPassLaunches(const SelectProblem& problem) {
    MultiPassLaunches launches;
    if (problem.hasColBias()) {
        getMultiPassLaunches<MultiPassBiased>(launches);
        return launches;
    }
    switch (problem.keyType) {
        case DataType::Float32:
            getMultiPassLaunches<MultiPassFloat>(launches);
            break;
        case DataType::Float16:
            getMultiPassLaunches<MultiPassHalf>(launches);
            break;
        case DataType::BFloat16:
            getMultiPassLaunches<MultiPassBFloat16>(launches);
            break;
    }
    return launches;
}

} // namespace faiss_bits

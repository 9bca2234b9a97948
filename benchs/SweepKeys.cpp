#include "benchs/SweepKeys.h"

#include <algorithm>

#include "kernels/select/Select.h"
#include "kernels/select/threshold/ThresholdPlan.h"

namespace faiss_bits::bench {

namespace {

constexpr int64_t kMostBytes = int64_t(1) << 30;
constexpr int64_t kMostSlices = 64;

/// Slices start at multiples of 256 bytes, as cudaMalloc gives them.
int64_t sliceBytes(const SweepCell& cell, int64_t stride) {
    const int64_t bytes = cell.rows * stride * int64_t(sizeOf(cell.type));
    return (bytes + 255) / 256 * 256;
}

/// As benchs/torch_topk.py counts them.
int64_t slicesOf(const SweepCell& cell) {
    const int64_t bytes = cell.rows * cell.cols * int64_t(sizeOf(cell.type));
    return std::clamp<int64_t>(kMostBytes / bytes, 1, kMostSlices);
}

} // namespace

SampleLayout sampleOf(const SweepCell& cell) {
    SelectProblem p;
    p.rows = cell.rows;
    p.cols = cell.cols;
    p.k = cell.k;
    p.keyType = cell.type;
    p.largest = cell.largest;
    p.rowStride = cell.stride;
    p.device = deviceTraits();
    if (chosenAlgorithm(p) != SelectAlgorithm::SampleThreshold) {
        return {};
    }
    const ThresholdPlan plan = planThreshold(p);
    return {plan.sampleThreads(), plan.samplePlaces, plan.sampleParts};
}

SweepKeys::SweepKeys(
        const std::vector<SweepCell>& cells,
        const std::string& vectors) {
    if (!vectors.empty()) {
        vectors_.read(vectors);
    }
    int64_t dense = 0;
    int64_t strided = 0;
    for (const SweepCell& cell : cells) {
        const int64_t slices = slicesOf(cell);
        dense = std::max(dense, slices * sliceBytes(cell, cell.cols));
        if (cell.stride != cell.cols) {
            strided = std::max(strided, slices * sliceBytes(cell, cell.stride));
        }
    }
    dense_ = DeviceArray<uint8_t>(dense);
    strided_ = DeviceArray<uint8_t>(strided);
}

std::string SweepKeys::refusal(const SweepCell& cell) const {
    return needsVectors(cell.order) ? vectors_.refusal(cell.rows, cell.cols)
                                    : "";
}

void SweepKeys::startCell(const SweepCell& cell) {
    cell_ = cell;
    slices_ = slicesOf(cell);
    denseBytes_ = sliceBytes(cell, cell.cols);
    stridedBytes_ = sliceBytes(cell, cell.stride);
}

void SweepKeys::makeSlice(const KeyRecipe& recipe, int64_t i) {
    if (!needsVectors(recipe.order)) {
        fillKeys(dense(i), recipe);
    } else if (i > 0) {
        // A file has no more of them.
        BITS_CUDA_CHECK(cudaMemcpy(
                dense(i), dense(0), denseBytes_, cudaMemcpyDeviceToDevice));
    } else if (recipe.order == Order::Sift) {
        vectors_.fill(dense(i), recipe.type, recipe.rows, recipe.cols);
    } else {
        vectors_.fillClustered(
                dense(i), recipe.type, recipe.rows, recipe.cols, recipe.seed);
    }
}

void SweepKeys::spread() {
    for (int64_t i = 0; hasGaps() && i < slices_; ++i) {
        spreadRows(
                dense(i),
                strided(i),
                cell_.type,
                cell_.rows,
                cell_.cols,
                cell_.stride);
    }
}

void SweepKeys::make(const SweepCell& cell, const SampleLayout& sample) {
    startCell(cell);
    KeyRecipe recipe{
            cell.order,
            cell.type,
            cell.rows,
            cell.cols,
            cell.k,
            cell.largest,
            cell.seed,
            sample};
    for (int64_t i = 0; i < slices_; ++i) {
        recipe.seed = cell.seed + uint64_t(i);
        makeSlice(recipe, i);
    }
    spread();
}

void SweepKeys::makeRandom(const SweepCell& cell) {
    SweepCell random = cell;
    random.order = Order::Random;
    make(random, {});
}

const void* SweepKeys::ours(int i) const {
    return hasGaps() ? strided(i) : dense(i);
}

void SweepKeys::turnForRivals() {
    for (int64_t i = 0; cell_.largest && i < slices_; ++i) {
        negateKeys(dense(i), cell_.type, cell_.rows * cell_.cols);
    }
}

const void* SweepKeys::rivals(int i) const {
    return dense(i);
}

} // namespace faiss_bits::bench

#include "research/queues/SortPasses.h"

#include <algorithm>

#include "research/queues/PartialBitonicLaunch.h"

namespace faiss_bits {

namespace {

/// A launch has at most this many blocks (the grid's limit in x is 2^31 - 1).
constexpr idx_t kMaxSortBlocks = idx_t(1) << 30;
/// Blocks that a multiprocessor holds, about.
constexpr idx_t kBlocksPerMultiprocessor = 4;

/// 5.3.1 of the thesis.
int threadsFor(int listSize) {
    return listSize <= 512 ? 128 : 256;
}

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

void launch(
        const PartialBitonicParams& params,
        BitonicStep step,
        unsigned blocks,
        cudaStream_t stream) {
    if (step != BitonicStep::Registers) {
        launchPartialBitonicShared(
                params,
                step == BitonicStep::Shuffles,
                threadsFor(params.listSize),
                blocks,
                stream);
        return;
    }
    switch (params.listSize) {
        case 128:
            return launchPartialBitonic<128, 1>(params, blocks, stream);
        case 256:
            return launchPartialBitonic<128, 2>(params, blocks, stream);
        case 512:
            return launchPartialBitonic<128, 4>(params, blocks, stream);
        case 1024:
            return launchPartialBitonic<256, 4>(params, blocks, stream);
        default:
            return launchPartialBitonic<256, 8>(params, blocks, stream);
    }
}

} // namespace

int sortListSize(int k) {
    int size = 128;
    while (size < k) {
        size *= 2;
    }
    return size;
}

std::vector<SortPass> planSortPasses(
        idx_t rows,
        idx_t length,
        int k,
        int blocksPerRow,
        int multiprocessors) {
    const idx_t slots = kBlocksPerMultiprocessor * multiprocessors;
    const idx_t wanted = divUp(slots, std::max<idx_t>(rows, 1));
    const idx_t least = 8 * idx_t(sortListSize(k));
    std::vector<SortPass> passes;
    do {
        // Never so finely that the next pass has much to do.
        idx_t splits = std::clamp<idx_t>(length / least, 1, wanted);
        if (passes.empty() && blocksPerRow > 0) {
            splits = blocksPerRow;
        }
        SortPass pass;
        pass.length = length;
        pass.segment = std::max<idx_t>(divUp(length, splits), 1);
        pass.splits = uint32_t(std::max<idx_t>(divUp(length, pass.segment), 1));
        passes.push_back(pass);
        length = idx_t(pass.splits) * k;
    } while (passes.back().splits > 1);
    return passes;
}

std::vector<uint64_t*> takeSortSlices(
        WorkspaceSlices& slices,
        const std::vector<SortPass>& passes,
        idx_t rows,
        int k) {
    std::vector<uint64_t*> candidates;
    for (const SortPass& pass : passes) {
        candidates.push_back(slices.take<uint64_t>(
                pass.splits > 1 ? size_t(rows) * pass.splits * k : 0));
    }
    return candidates;
}

void runSortPasses(
        PartialBitonicParams params,
        BitonicStep step,
        const std::vector<SortPass>& passes,
        const std::vector<uint64_t*>& candidates,
        idx_t firstRow,
        idx_t rows,
        cudaStream_t stream) {
    params.listSize = sortListSize(params.select.k);
    for (size_t i = 0; i < passes.size(); ++i) {
        const SortPass& pass = passes[i];
        if (i > 0) {
            params.source = SortSource::Entries;
            params.prefetch = false;
        }
        params.length = pass.length;
        params.segment = pass.segment;
        params.select.splits = pass.splits;
        const idx_t rowsPerLaunch = kMaxSortBlocks / pass.splits;
        for (idx_t row = 0; row < rows; row += rowsPerLaunch) {
            const idx_t now = std::min(rowsPerLaunch, rows - row);
            params.select.firstRow = uint32_t(firstRow + row);
            params.select.outCandidates =
                    candidates[i] + size_t(row) * pass.splits * params.select.k;
            if (i > 0) {
                params.entries = candidates[i - 1] + size_t(row) * pass.length;
            }
            launch(params, step, unsigned(now * pass.splits), stream);
        }
    }
}

} // namespace faiss_bits

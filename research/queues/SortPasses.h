#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "kernels/common/Workspace.h"
#include "research/queues/PartialBitonicParams.h"

namespace faiss_bits {

/// One launch of partial sorting, or the next merge of what it leaves.
struct SortPass {
    idx_t length = 0;  // of a row
    idx_t segment = 0; // of a block
    uint32_t splits = 1;
};

/// How rows of `length` entries are sorted down to k. blocksPerRow is of the
/// first pass; 0: enough to fill the device.
std::vector<SortPass> planSortPasses(
        idx_t rows,
        idx_t length,
        int k,
        int blocksPerRow,
        int multiprocessors);

/// The power of two from max(k, 128).
int sortListSize(int k);

/// Entries that the passes leave for the next ones. Every pass but the last
/// has a slice.
std::vector<uint64_t*> takeSortSlices(
        WorkspaceSlices& slices,
        const std::vector<SortPass>& passes,
        idx_t rows,
        int k);

/// Enqueues the passes for rows firstRow, ..., firstRow + rows - 1. `first`
/// says what the rows of the first pass are made of; the others have the
/// same options.
void runSortPasses(
        PartialBitonicParams first,
        BitonicStep step,
        const std::vector<SortPass>& passes,
        const std::vector<uint64_t*>& candidates,
        idx_t firstRow,
        idx_t rows,
        cudaStream_t stream);

} // namespace faiss_bits

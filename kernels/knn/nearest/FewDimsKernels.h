#pragma once

#include <cuda_runtime_api.h>

#include "kernels/canonical/RoundedOps.h"
#include "kernels/knn/certified/CertifiedParams.h"

namespace faiss_bits {

/// Vectors that a block has in shared memory at a time.
constexpr uint32_t kLogFewDimsUnit = 8;
constexpr uint32_t kFewDimsUnit = 1 << kLogFewDimsUnit;
constexpr int kFewDimsThreads = 128;
/// Queries of a thread of the scan, at most.
constexpr int kMostFewDimsQueries = 8;
/// Of a second search.
constexpr int kFewDimsAgainQueries = 4;
/// Queries that a block of the exact stage asks for.
constexpr uint32_t kMostFewDimsTile = 1024;
constexpr uint32_t kLeastFewDimsTile = 32;

/// Blocks of the scan that a multiprocessor has at a time, at least: of so many
/// components, padded, and queries of a thread.
constexpr int fewDimsBlocks(int dims, int queriesOfThread) {
    return dims == 8 && queriesOfThread == kMostFewDimsQueries ? 3 : 4;
}

/// So few queries that there are blocks enough: all of a tile may want one
/// strip, as the longest vectors are nearest by inner products. Fewer than
/// there are threads only where blocks are few indeed.
BITS_HOST_DEVICE uint32_t fewDimsTile(uint32_t slots, uint32_t strips) {
    constexpr uint32_t kEnoughBlocks = 4096;
    uint32_t tile = kMostFewDimsTile;
    while (tile > kLeastFewDimsTile &&
           (slots + tile - 1) / tile * strips < (tile > kFewDimsThreads
                                                         ? kEnoughBlocks
                                                         : kEnoughBlocks / 2)) {
        tile /= 2;
    }
    return tile;
}

/// A slot is a row, or in a second search one of the flagged rows.
struct FewDimsParams {
    CertifiedParams search; // k = 1, row-major or column-major vectors
    /// A strip is 2^logUnits units of vectors side by side.
    uint32_t strips = 0;
    uint32_t logUnits = 0;
    uint32_t stripsOfBlock = 1;
    /// [strips, rows]: no vector of the strip is nearer to the slot's query.
    float* least = nullptr;
    /// [slots], ordered (Entry.cuh): a vector is as near as that.
    uint32_t* limits = nullptr;
    uint64_t* best = nullptr; // [slots], entries
    // Of a second search alone:
    uint32_t* flagged = nullptr;    // [rows], of which the slots are
    uint32_t* numFlagged = nullptr; // [1]
    uint32_t* counts = nullptr;     // [kMaxScanSlots] (FlaggedRows)
};

/// Enqueues all of a search: the scan in float32, canonical distances of strips
/// that may have the nearest, results. L2 or InnerProduct; search.d up to
/// kMostFewDims. queriesOfThread: 4 or 8.
void launchFewDims(
        Metric metric,
        const FewDimsParams& params,
        int queriesOfThread,
        cudaStream_t stream);

/// The same for the rows of which a flag is set: one kernel of the whole GPU
/// that ends at once where there are none. search.d up to kMostFewDimsAgain.
void launchFewDimsAgain(
        Metric metric,
        const FewDimsParams& params,
        int multiprocessors,
        cudaStream_t stream);

} // namespace faiss_bits

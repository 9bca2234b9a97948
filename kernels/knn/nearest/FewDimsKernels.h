#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/certified/CertifiedParams.h"

namespace faiss_bits {

/// Vectors that a block has in shared memory at a time.
constexpr uint32_t kFewDimsUnit = 256;
constexpr int kFewDimsThreads = 128;
/// Queries of a thread of the scan, at most.
constexpr int kMostFewDimsQueries = 8;

/// Blocks of the scan that a multiprocessor has at a time, at least: of so many
/// components, padded, and queries of a thread.
constexpr int fewDimsBlocks(int dims, int queriesOfThread) {
    return dims == 8 && queriesOfThread == kMostFewDimsQueries ? 3 : 4;
}

struct FewDimsParams {
    CertifiedParams search; // k = 1, row-major or column-major vectors
    /// A strip is 2^logUnits units of vectors side by side.
    uint32_t strips = 0;
    uint32_t logUnits = 0;
    uint32_t stripsOfBlock = 1;
    /// [strips, rows]: no vector of the strip is nearer to the query.
    float* least = nullptr;
    /// [rows], ordered (Entry.cuh): a vector is as near as that.
    uint32_t* limits = nullptr;
    uint64_t* best = nullptr; // [rows], entries
};

/// Enqueues all of a search: the scan in float32, canonical distances of strips
/// that may have the nearest, results. L2 or InnerProduct; search.d up to
/// kMostFewDims. queriesOfThread: 4 or 8.
void launchFewDims(
        Metric metric,
        const FewDimsParams& params,
        int queriesOfThread,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"

namespace faiss_bits {

/// Enqueues limits [rows] = the last of each row of a result, distances and ids
/// [rows, k]; where that is not there (id -1) +infinity, which is no limit, or
/// -infinity if `largest`.
///
/// Limits   rows >= 0, k >= 1; all on the device
/// Stream   enqueues and never waits
/// Errors   throws Error on a bad argument (named) or a failed launch
void runRowLimits(
        const float* distances,
        const idx_t* ids,
        idx_t rows,
        idx_t k,
        bool largest,
        float* limits,
        cudaStream_t stream);

} // namespace faiss_bits

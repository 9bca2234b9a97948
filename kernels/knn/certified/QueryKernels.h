#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"

namespace faiss_bits {

/// out [count, d] float32, row-major = queries first .. first + count - 1 of a
/// matrix of `total` queries of any type and layout. Enqueues.
void runWidenQueries(
        const void* queries,
        DataType type,
        bool rowMajor,
        idx_t total,
        idx_t first,
        idx_t count,
        int d,
        float* out,
        cudaStream_t stream);

/// out[0] = the greatest of n values that are not negative; NaN if one is.
/// Enqueues. Cost: one read.
void runGreatest(const float* values, idx_t n, float* out, cudaStream_t stream);

} // namespace faiss_bits

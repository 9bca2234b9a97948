#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"

/// The columns of filtered searches: what is added to a vector's products, the
/// vectors of a list, and NaN over distances. All enqueue.
namespace faiss_bits {

/// bias[i] = norms[first + i], or 0 without norms, where vector first + i is
/// allowed; else NaN. i = 0 .. count - 1. Moves 8 bytes a vector.
void runAllowedBias(
        const uint32_t* allowedBits,
        const float* norms,
        idx_t first,
        idx_t count,
        float* bias,
        cudaStream_t stream);

/// The same for vectors ids[i], NaN for -1. byColumn: norms[i] is that of
/// ids[i], and may be bias[i]; else norms[ids[i]] is.
void runListedBias(
        const int32_t* ids,
        const float* norms,
        bool byColumn,
        idx_t count,
        float* bias,
        cudaStream_t stream);

/// out[i] = vectors[ids[i]] of rowBytes each, an even number, i = 0 .. count -
/// 1; zeros for -1, and for the rows from there to `width`. `out` starts at a
/// multiple of 16 bytes.
void runGatherRows(
        const void* vectors,
        size_t rowBytes,
        const int32_t* ids,
        idx_t count,
        idx_t width,
        void* out,
        cudaStream_t stream);

/// Writes NaN over the values of the vectors first .. first + count - 1 that
/// are not allowed, [rows, count], rows `stride` apart.
void runMaskValues(
        const uint32_t* allowedBits,
        idx_t first,
        idx_t count,
        idx_t rows,
        float* values,
        idx_t stride,
        cudaStream_t stream);

/// out[i] = ids[i].
void runWidenIds(
        const int32_t* ids,
        idx_t count,
        idx_t* out,
        cudaStream_t stream);

} // namespace faiss_bits

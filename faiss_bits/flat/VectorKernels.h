#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"

/// The few small kernels that the index needs besides the search itself.
/// Everything lies on the current device; every call enqueues and returns,
/// and throws faiss_bits::Error if the launch fails.
namespace faiss_bits::gpu::detail {

/// in [count] float32 to out [count] of `type`, Float16 or BFloat16, round to
/// nearest even; what is beyond the type's range becomes an infinity.
void runFromFloat(
        DataType type,
        const float* in,
        void* out,
        idx_t count,
        cudaStream_t stream);

/// in [count] of `type`, Float16 or BFloat16, to out [count] float32, exactly.
void runToFloat(
        DataType type,
        const void* in,
        float* out,
        idx_t count,
        cudaStream_t stream);

/// One lookup of vectors by id.
struct GatherProblem {
    const void* vectors = nullptr; ///< [n, d] of dataType
    DataType dataType = DataType::Float32;
    idx_t n = 0;
    int d = 0;

    const idx_t* ids = nullptr; ///< [numIds]
    idx_t numIds = 0;

    /// [numIds, d], or nullptr. Given, out is minuend - vector.
    const float* minuend = nullptr;
    float* out = nullptr; ///< [numIds, d]

    /// What a row of `out` is filled with whose id is outside 0..n-1.
    float missing = 0;
};

void runGather(const GatherProblem& problem, cudaStream_t stream);

} // namespace faiss_bits::gpu::detail

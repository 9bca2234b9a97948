#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"

namespace faiss_bits {

/// Products of float64 rows by cuBLAS, in whatever order it adds up, in
/// float64's own arithmetic: never in that of emulated products, whose errors
/// no bound here knows.
struct WideProduct {
    idx_t numQueries = 0;
    idx_t numVectors = 0;
    int d = 0;
    const double* queries = nullptr; // [numQueries, stride]
    const double* vectors = nullptr; // [numVectors, stride]
    idx_t stride = 0;                // even
    double* out = nullptr;           // [numQueries, outStride]
    idx_t outStride = 0;
};

/// Enqueues. cuBLAS is asked for an algorithm the first time for a shape and a
/// device; later it is remembered. Throws Error where it has none.
void runWideProduct(
        const WideProduct& product,
        cublasHandle_t handle,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "kernels/common/Error.h"

namespace faiss_bits {

inline void throwIfCudaFailed(cudaError_t status, const char* file, int line) {
    if (status != cudaSuccess) {
        // Take the error out of the runtime, so that it is reported once.
        (void)cudaGetLastError();
        throw Error(formatMessage(
                "CUDA error %s (%s) at %s:%d",
                cudaGetErrorName(status),
                cudaGetErrorString(status),
                file,
                line));
    }
}

inline void throwIfCublasFailed(
        cublasStatus_t status,
        const char* file,
        int line) {
    if (status != CUBLAS_STATUS_SUCCESS) {
        throw Error(formatMessage(
                "cuBLAS error %s at %s:%d",
                cublasGetStatusName(status),
                file,
                line));
    }
}

} // namespace faiss_bits

/// Throw faiss_bits::Error, where FAISS's CUDA_VERIFY would end the process.
#define BITS_CUDA_CHECK(call) \
    ::faiss_bits::throwIfCudaFailed((call), __FILE__, __LINE__)
#define BITS_CUBLAS_CHECK(call) \
    ::faiss_bits::throwIfCublasFailed((call), __FILE__, __LINE__)

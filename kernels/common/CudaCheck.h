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

/// As cublasGetStatusName says it, in a library that not every build links.
inline const char* cublasStatusName(cublasStatus_t status) {
    switch (status) {
        case CUBLAS_STATUS_SUCCESS:
            return "CUBLAS_STATUS_SUCCESS";
        case CUBLAS_STATUS_NOT_INITIALIZED:
            return "CUBLAS_STATUS_NOT_INITIALIZED";
        case CUBLAS_STATUS_ALLOC_FAILED:
            return "CUBLAS_STATUS_ALLOC_FAILED";
        case CUBLAS_STATUS_INVALID_VALUE:
            return "CUBLAS_STATUS_INVALID_VALUE";
        case CUBLAS_STATUS_ARCH_MISMATCH:
            return "CUBLAS_STATUS_ARCH_MISMATCH";
        case CUBLAS_STATUS_MAPPING_ERROR:
            return "CUBLAS_STATUS_MAPPING_ERROR";
        case CUBLAS_STATUS_EXECUTION_FAILED:
            return "CUBLAS_STATUS_EXECUTION_FAILED";
        case CUBLAS_STATUS_INTERNAL_ERROR:
            return "CUBLAS_STATUS_INTERNAL_ERROR";
        case CUBLAS_STATUS_NOT_SUPPORTED:
            return "CUBLAS_STATUS_NOT_SUPPORTED";
        default:
            return "unknown cublasStatus_t";
    }
}

inline void throwIfCublasFailed(
        cublasStatus_t status,
        const char* file,
        int line) {
    if (status != CUBLAS_STATUS_SUCCESS) {
        throw Error(formatMessage(
                "cuBLAS error %s (%d) at %s:%d",
                cublasStatusName(status),
                int(status),
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

#pragma once

#include "kernels/common/CudaCheck.h"

namespace faiss_bits {

/// Sets a handle that others share to our stream and to true fp32 products,
/// and puts back what it found. fp16 and bf16 products add up in fp32.
class CublasScope {
   public:
    CublasScope(cublasHandle_t handle, cudaStream_t stream) : handle_(handle) {
        BITS_THROW_IF_NOT_FMT(handle, "handle = nullptr");
        BITS_CUBLAS_CHECK(cublasGetStream(handle, &stream_));
        BITS_CUBLAS_CHECK(cublasGetMathMode(handle, &mathMode_));
        BITS_CUBLAS_CHECK(cublasGetPointerMode(handle, &pointerMode_));
        // Setting the stream drops a workspace that the owner gave the
        // handle, so it is left alone where it is right already.
        setsStream_ = stream_ != stream;
        if (setsStream_) {
            BITS_CUBLAS_CHECK(cublasSetStream(handle, stream));
        }
        BITS_CUBLAS_CHECK(cublasSetMathMode(
                handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
        BITS_CUBLAS_CHECK(
                cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
    }

    ~CublasScope() {
        if (setsStream_) {
            (void)cublasSetStream(handle_, stream_);
        }
        (void)cublasSetMathMode(handle_, mathMode_);
        (void)cublasSetPointerMode(handle_, pointerMode_);
    }

    CublasScope(const CublasScope&) = delete;
    CublasScope& operator=(const CublasScope&) = delete;

   private:
    cublasHandle_t handle_;
    cudaStream_t stream_ = nullptr;
    cublasMath_t mathMode_ = CUBLAS_DEFAULT_MATH;
    cublasPointerMode_t pointerMode_ = CUBLAS_POINTER_MODE_HOST;
    bool setsStream_ = false;
};

} // namespace faiss_bits

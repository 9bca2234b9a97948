#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"
#include "kernels/knn/fused/tensor/FiniteSize.cuh"
#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void __launch_bounds__(kThreads) greatestComponentKernel(
        const T* x,
        idx_t count,
        int d,
        const float* center,
        unsigned* out) {
    uint32_t most = 0;
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
         i += idx_t(gridDim.x) * kThreads) {
        const float from = center ? center[i % d] : 0.0f;
        most = max(most, finiteSize(toFloat(x[i]) - from));
    }
    most = __reduce_max_sync(kFullWarp, most);
    if (threadIdx.x % kWarpSize == 0 && most > 0) {
        atomicMax(out, most);
    }
}

} // namespace

void runGreatestComponent(
        const void* rows,
        DataType type,
        idx_t n,
        int d,
        const float* center,
        bool keep,
        float* out,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(n >= 0, "n = %lld is negative", (long long)n);
    BITS_THROW_IF_NOT_FMT(d >= 1, "d = %d is below 1", d);
    BITS_THROW_IF_NOT_FMT(out, "out = nullptr");
    BITS_THROW_IF_NOT_FMT(rows || n == 0, "rows = nullptr");
    if (!keep) {
        BITS_CUDA_CHECK(cudaMemsetAsync(out, 0, sizeof(float), stream));
    }
    if (n == 0) {
        return;
    }
    const unsigned blocks =
            unsigned(std::min<idx_t>((n * d + kThreads - 1) / kThreads, 8192));
    unsigned* bits = reinterpret_cast<unsigned*>(out);
    switch (type) {
        case DataType::Float32:
            greatestComponentKernel<<<blocks, kThreads, 0, stream>>>(
                    static_cast<const float*>(rows), n * d, d, center, bits);
            break;
        case DataType::Float16:
            greatestComponentKernel<<<blocks, kThreads, 0, stream>>>(
                    static_cast<const __half*>(rows), n * d, d, center, bits);
            break;
        case DataType::BFloat16:
            greatestComponentKernel<<<blocks, kThreads, 0, stream>>>(
                    static_cast<const __nv_bfloat16*>(rows),
                    n * d,
                    d,
                    center,
                    bits);
            break;
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits

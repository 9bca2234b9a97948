#include "kernels/knn/certified/QueryKernels.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;

unsigned blocksFor(idx_t elements, idx_t most) {
    return unsigned(
            std::clamp<idx_t>((elements + kThreads - 1) / kThreads, 1, most));
}

template <class T>
__global__ void widenKernel(
        const T* queries,
        idx_t rowStride,
        idx_t columnStride,
        idx_t count,
        int d,
        float* out) {
    const idx_t elements = count * d;
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < elements;
         i += idx_t(gridDim.x) * kThreads) {
        out[i] = toFloat(queries[i / d * rowStride + i % d * columnStride]);
    }
}

template <class T>
void widen(
        const void* queries,
        bool rowMajor,
        idx_t total,
        idx_t first,
        idx_t count,
        int d,
        float* out,
        cudaStream_t stream) {
    const idx_t rowStride = rowMajor ? d : 1;
    widenKernel<<<blocksFor(count * d, 1 << 20), kThreads, 0, stream>>>(
            static_cast<const T*>(queries) + first * rowStride,
            rowStride,
            rowMajor ? 1 : total,
            count,
            d,
            out);
    BITS_CUDA_CHECK(cudaGetLastError());
}

/// Numbers that are not negative order as their bits do, and NaN is behind
/// them.
__global__ void greatestKernel(const float* values, idx_t n, unsigned* out) {
    unsigned most = 0;
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < n;
         i += idx_t(gridDim.x) * kThreads) {
        most = max(most, __float_as_uint(values[i]) & 0x7fffffffu);
    }
    most = __reduce_max_sync(kFullWarp, most);
    if (threadIdx.x % kWarpSize == 0) {
        atomicMax(out, most);
    }
}

} // namespace

void runWidenQueries(
        const void* queries,
        DataType type,
        bool rowMajor,
        idx_t total,
        idx_t first,
        idx_t count,
        int d,
        float* out,
        cudaStream_t stream) {
    if (count == 0) {
        return;
    }
    switch (type) {
        case DataType::Float32:
            return widen<float>(
                    queries, rowMajor, total, first, count, d, out, stream);
        case DataType::Float16:
            return widen<__half>(
                    queries, rowMajor, total, first, count, d, out, stream);
        case DataType::BFloat16:
            return widen<__nv_bfloat16>(
                    queries, rowMajor, total, first, count, d, out, stream);
    }
}

void runGreatest(
        const float* values,
        idx_t n,
        float* out,
        cudaStream_t stream) {
    BITS_CUDA_CHECK(cudaMemsetAsync(out, 0, sizeof(float), stream));
    if (n > 0) {
        constexpr idx_t kMostBlocks = 1024;
        greatestKernel<<<blocksFor(n, kMostBlocks), kThreads, 0, stream>>>(
                values, n, reinterpret_cast<unsigned*>(out));
        BITS_CUDA_CHECK(cudaGetLastError());
    }
}

} // namespace faiss_bits

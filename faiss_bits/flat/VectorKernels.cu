#include "faiss_bits/flat/VectorKernels.h"

#include <algorithm>

#include <cuda_fp16.h>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

constexpr int kThreads = 256;
constexpr idx_t kMaxBlocks = 4096; // the loops below stride over the rest

int blocksFor(idx_t items) {
    return int(std::min((items + kThreads - 1) / kThreads, kMaxBlocks));
}

__device__ float toFloat(float value) {
    return value;
}

__device__ float toFloat(__half value) {
    return __half2float(value);
}

__global__ void floatToHalfKernel(const float* in, __half* out, idx_t count) {
    const idx_t step = idx_t(gridDim.x) * blockDim.x;
    for (idx_t i = idx_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += step) {
        out[i] = __float2half_rn(in[i]);
    }
}

__global__ void halfToFloatKernel(const __half* in, float* out, idx_t count) {
    const idx_t step = idx_t(gridDim.x) * blockDim.x;
    for (idx_t i = idx_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += step) {
        out[i] = __half2float(in[i]);
    }
}

/// One block a row, rows in strides of the grid.
template <class T>
__global__ void gatherKernel(GatherProblem p) {
    const T* vectors = static_cast<const T*>(p.vectors);
    for (idx_t row = blockIdx.x; row < p.numIds; row += gridDim.x) {
        const idx_t id = p.ids[row];
        const bool found = id >= 0 && id < p.n;
        for (int i = threadIdx.x; i < p.d; i += blockDim.x) {
            const idx_t at = row * p.d + i;
            float value = p.missing;
            if (found) {
                value = toFloat(vectors[id * p.d + i]);
                if (p.minuend) {
                    value = p.minuend[at] - value;
                }
            }
            p.out[at] = value;
        }
    }
}

} // namespace

void runFloatToHalf(
        const float* in,
        void* out,
        idx_t count,
        cudaStream_t stream) {
    if (count == 0) {
        return;
    }
    floatToHalfKernel<<<blocksFor(count), kThreads, 0, stream>>>(
            in, static_cast<__half*>(out), count);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runHalfToFloat(
        const void* in,
        float* out,
        idx_t count,
        cudaStream_t stream) {
    if (count == 0) {
        return;
    }
    halfToFloatKernel<<<blocksFor(count), kThreads, 0, stream>>>(
            static_cast<const __half*>(in), out, count);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runGather(const GatherProblem& problem, cudaStream_t stream) {
    if (problem.numIds == 0) {
        return;
    }
    const int blocks = int(std::min<idx_t>(problem.numIds, 65536));
    // Whole warps, and no more of them than a row has work for.
    const int threads = std::min((problem.d + 31) / 32 * 32, kThreads);
    if (problem.dataType == DataType::Float32) {
        gatherKernel<float><<<blocks, threads, 0, stream>>>(problem);
    } else {
        BITS_THROW_IF_NOT_FMT(
                problem.dataType == DataType::Float16,
                "dataType = %d, float32 or float16 is needed",
                int(problem.dataType));
        gatherKernel<__half><<<blocks, threads, 0, stream>>>(problem);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits::gpu::detail

#include "faiss_bits/flat/VectorKernels.h"

#include <algorithm>

#include <cuda_bf16.h>
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

__device__ float toFloat(__nv_bfloat16 value) {
    return __bfloat162float(value);
}

__device__ void fromFloat(float value, __half& out) {
    out = __float2half_rn(value);
}

__device__ void fromFloat(float value, __nv_bfloat16& out) {
    out = __float2bfloat16_rn(value);
}

template <class T>
__global__ void fromFloatKernel(const float* in, T* out, idx_t count) {
    const idx_t step = idx_t(gridDim.x) * blockDim.x;
    for (idx_t i = idx_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += step) {
        fromFloat(in[i], out[i]);
    }
}

template <class T>
__global__ void toFloatKernel(const T* in, float* out, idx_t count) {
    const idx_t step = idx_t(gridDim.x) * blockDim.x;
    for (idx_t i = idx_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += step) {
        out[i] = toFloat(in[i]);
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

/// Calls `call` with a value of the type, which has 16 bits.
template <class Call>
void withType(DataType type, const Call& call) {
    if (type == DataType::Float16) {
        call(__half());
    } else {
        BITS_THROW_IF_NOT_FMT(
                type == DataType::BFloat16,
                "dataType = %d is not supported",
                int(type));
        call(__nv_bfloat16());
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace

void runFromFloat(
        DataType type,
        const float* in,
        void* out,
        idx_t count,
        cudaStream_t stream) {
    if (count == 0) {
        return;
    }
    withType(type, [&]<class T>(T) {
        fromFloatKernel<<<blocksFor(count), kThreads, 0, stream>>>(
                in, static_cast<T*>(out), count);
    });
}

void runToFloat(
        DataType type,
        const void* in,
        float* out,
        idx_t count,
        cudaStream_t stream) {
    if (count == 0) {
        return;
    }
    withType(type, [&]<class T>(T) {
        toFloatKernel<<<blocksFor(count), kThreads, 0, stream>>>(
                static_cast<const T*>(in), out, count);
    });
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
        BITS_CUDA_CHECK(cudaGetLastError());
        return;
    }
    withType(problem.dataType, [&]<class T>(T) {
        gatherKernel<T><<<blocks, threads, 0, stream>>>(problem);
    });
}

} // namespace faiss_bits::gpu::detail

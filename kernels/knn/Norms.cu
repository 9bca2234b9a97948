#include "kernels/knn/Norms.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr idx_t kMaxBlocks = 1 << 20; // the kernels stride over the rest

unsigned blocksFor(idx_t threads) {
    return unsigned(std::clamp<idx_t>(
            (threads + kThreads - 1) / kThreads, 1, kMaxBlocks));
}

/// `Lanes` lanes a vector.
template <class T, int Lanes>
__global__ void rowNormsKernel(const T* vectors, idx_t n, int d, float* norms) {
    const idx_t step = idx_t(gridDim.x) * kThreads / Lanes;
    const int lane = threadIdx.x % Lanes;
    // Whole warps stay in the loop, for the shuffles.
    const idx_t rounded = (n + kWarpSize - 1) / kWarpSize * kWarpSize;
    for (idx_t i = (idx_t(blockIdx.x) * kThreads + threadIdx.x) / Lanes;
         i < rounded;
         i += step) {
        float sum = 0.0f;
        for (int c = lane; i < n && c < d; c += Lanes) {
            const float x = toFloat(vectors[i * d + c]);
            sum = fmaf(x, x, sum);
        }
#pragma unroll
        for (int distance = Lanes / 2; distance >= 1; distance /= 2) {
            sum += __shfl_xor_sync(kFullWarp, sum, distance);
        }
        if (lane == 0 && i < n) {
            norms[i] = sum;
        }
    }
}

template <class T>
__global__ void columnNormsKernel(
        const T* vectors,
        idx_t n,
        int d,
        float* norms) {
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < n;
         i += idx_t(gridDim.x) * kThreads) {
        float sum = 0.0f;
        for (int c = 0; c < d; ++c) {
            const float x = toFloat(vectors[c * n + i]);
            sum = fmaf(x, x, sum);
        }
        norms[i] = sum;
    }
}

template <class T>
void runNorms(
        const void* data,
        bool rowMajor,
        idx_t n,
        int d,
        float* norms,
        cudaStream_t stream) {
    const T* vectors = static_cast<const T*>(data);
    if (!rowMajor) {
        columnNormsKernel<<<blocksFor(n), kThreads, 0, stream>>>(
                vectors, n, d, norms);
    } else if (d <= 32) {
        rowNormsKernel<T, 4><<<blocksFor(n * 4), kThreads, 0, stream>>>(
                vectors, n, d, norms);
    } else {
        rowNormsKernel<T, 32><<<blocksFor(n * 32), kThreads, 0, stream>>>(
                vectors, n, d, norms);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

__global__ void addNormsKernel(
        float* distances,
        idx_t numQueries,
        idx_t numVectors,
        const float* vectorNorms,
        const float* queryNorms) {
    for (idx_t q = blockIdx.y; q < numQueries; q += gridDim.y) {
        const float queryNorm = queryNorms[q];
        for (idx_t v = idx_t(blockIdx.x) * kThreads + threadIdx.x;
             v < numVectors;
             v += idx_t(gridDim.x) * kThreads) {
            float& distance = distances[q * numVectors + v];
            const float sum = (distance + vectorNorms[v]) + queryNorm;
            distance = sum < 0.0f ? 0.0f : sum;
        }
    }
}

/// Four columns a thread, rows in y; the kernels stride over the rest.
dim3 gridFor(idx_t rows, idx_t cols) {
    const idx_t columns = 4 * kThreads;
    return dim3(
            unsigned(std::min<idx_t>((cols + columns - 1) / columns, 65536)),
            unsigned(std::min<idx_t>(rows, 65535)));
}

} // namespace

void runSquaredNorms(
        const void* vectors,
        DataType dataType,
        bool rowMajor,
        idx_t n,
        int d,
        float* norms,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(n >= 0, "n = %lld is negative", (long long)n);
    BITS_THROW_IF_NOT_FMT(d >= 1, "d = %d is below 1", d);
    if (n == 0) {
        return;
    }
    BITS_THROW_IF_NOT_FMT(vectors, "vectors = nullptr");
    BITS_THROW_IF_NOT_FMT(norms, "norms = nullptr");
    switch (dataType) {
        case DataType::Float32:
            return runNorms<float>(vectors, rowMajor, n, d, norms, stream);
        case DataType::Float16:
            return runNorms<__half>(vectors, rowMajor, n, d, norms, stream);
        case DataType::BFloat16:
            return runNorms<__nv_bfloat16>(
                    vectors, rowMajor, n, d, norms, stream);
    }
    throw Error(formatMessage("dataType = %d is unknown", int(dataType)));
}

void runAddNorms(
        float* distances,
        idx_t numQueries,
        idx_t numVectors,
        const float* vectorNorms,
        const float* queryNorms,
        cudaStream_t stream) {
    if (numQueries == 0 || numVectors == 0) {
        return;
    }
    addNormsKernel<<<gridFor(numQueries, numVectors), kThreads, 0, stream>>>(
            distances, numQueries, numVectors, vectorNorms, queryNorms);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits

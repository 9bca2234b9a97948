#include "kernels/knn/fused/SampleKernels.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"
#include "kernels/knn/fused/SampledVector.cuh"
#include "kernels/knn/fused/tensor/SpreadRows.h"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;

unsigned blocksFor(idx_t elements) {
    return unsigned(std::clamp<idx_t>(
            (elements + kThreads - 1) / kThreads, 1, 1 << 16));
}

/// A warp a row.
unsigned blocksOfWarps(idx_t rows) {
    return unsigned((rows * kWarpSize + kThreads - 1) / kThreads);
}

template <class T>
__global__ void gatherKernel(
        const T* vectors,
        idx_t n,
        int d,
        idx_t rowStride,
        idx_t columnStride,
        idx_t samples,
        float* out) {
    const idx_t elements = samples * d;
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < elements;
         i += idx_t(gridDim.x) * kThreads) {
        const idx_t sample = i / d;
        const idx_t vector = sampledVector(sample, samples, n);
        out[i] = toFloat(vectors[vector * rowStride + i % d * columnStride]);
    }
}

template <class T>
void gather(
        const FlatKnnProblem& p,
        idx_t samples,
        float* out,
        cudaStream_t stream) {
    gatherKernel<<<blocksFor(samples * p.d), kThreads, 0, stream>>>(
            static_cast<const T*>(p.vectors),
            p.numVectors,
            p.d,
            p.vectorsRowMajor ? p.d : 1,
            p.vectorsRowMajor ? 1 : p.numVectors,
            samples,
            out);
    BITS_CUDA_CHECK(cudaGetLastError());
}

/// Which member of a sample is in row `row` of its image. Neighbours are in
/// tiles far from each other, and in a tile where SpreadRows puts them: strips
/// (StripKeys) of vectors stored cluster by cluster are as if they had been
/// shuffled. rows: those of an image of all members.
__device__ __forceinline__ int64_t
spreadMember(int64_t row, const SpreadRows& rows) {
    const uint32_t tile = uint32_t(row) / SpreadRows::kTileRows;
    if (tile >= rows.tiles) {
        return row;
    }
    // A prime above the number of tiles: tiles change places.
    constexpr uint32_t kPrime = 2654435761u;
    const uint32_t member = rows.vectorOf(uint32_t(row));
    return member - tile + uint32_t(uint64_t(tile) * kPrime % rows.tiles);
}

__global__ void sampleIdsKernel(
        idx_t n,
        idx_t samples,
        SpreadRows rows,
        int32_t* out) {
    const idx_t sample = idx_t(blockIdx.x) * kThreads + threadIdx.x;
    if (sample < samples) {
        out[sample] =
                int32_t(sampledVector(spreadMember(sample, rows), samples, n));
    }
}

__global__ void sampleBitsKernel(
        const uint32_t* allowedBits,
        idx_t n,
        idx_t size,
        idx_t samples,
        SpreadRows rows,
        uint32_t* out) {
    const idx_t sample = idx_t(blockIdx.x) * kThreads + threadIdx.x;
    bool allowed = false;
    if (sample < samples) {
        const idx_t vector = sampledVector(spreadMember(sample, rows), size, n);
        allowed = allowedBits[vector / 32] >> (vector % 32) & 1;
    }
    const uint32_t bits = __ballot_sync(kFullWarp, allowed);
    if (threadIdx.x % kWarpSize == 0 && sample < samples) {
        out[sample / kWarpSize] = bits;
    }
}

template <int kCount>
__device__ __forceinline__ void sumOfBlock(float (&values)[kCount]) {
    __shared__ float sums[kCount][kThreads / kWarpSize];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
        for (int distance = kWarpSize / 2; distance >= 1; distance /= 2) {
            values[i] += __shfl_xor_sync(kFullWarp, values[i], distance);
        }
        if (threadIdx.x % kWarpSize == 0) {
            sums[i][threadIdx.x / kWarpSize] = values[i];
        }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
        values[i] = 0;
        for (int w = 0; w < kThreads / kWarpSize; ++w) {
            values[i] += sums[i][w];
        }
    }
}

/// A block a component: its mean; the variances add up in *variance.
__global__ __launch_bounds__(kThreads) void meanKernel(
        const float* rows,
        idx_t n,
        int d,
        float* variance,
        float* center) {
    const int c = blockIdx.x;
    // About the first row's, so that little is lost where all are alike.
    const float origin = rows[c];
    float sums[2] = {}; // and of squares
    for (idx_t i = threadIdx.x; i < n; i += kThreads) {
        const float x = rows[i * d + c] - origin;
        sums[0] += x;
        sums[1] += x * x;
    }
    sumOfBlock(sums);
    if (threadIdx.x == 0) {
        const float mean = sums[0] / float(n);
        center[c] = origin + mean;
        const float off = fmaxf(sums[1] / float(n) - mean * mean, 0.0f);
        if (isfinite(off)) {
            atomicAdd(variance, off / float(d));
        }
    }
}

__global__ void roundCenterKernel(int d, const float* variance, float* center) {
    const int c = blockIdx.x * kThreads + threadIdx.x;
    if (c >= d) {
        return;
    }
    // The power of two below the standard deviation.
    const float step = *variance > 0 && isfinite(*variance)
            ? exp2f(floorf(0.5f * log2f(*variance)))
            : 0.0f;
    float rounded = center[c];
    if (step > 0) {
        rounded = rintf(rounded / step) * step;
    }
    center[c] = isfinite(rounded) ? rounded : 0.0f;
}

__global__ void subtractKernel(
        const float* rows,
        idx_t elements,
        int d,
        const float* center,
        float* out) {
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < elements;
         i += idx_t(gridDim.x) * kThreads) {
        out[i] = rows[i] - center[i % d];
    }
}

/// Of the lanes of a warp.
template <class T>
__device__ __forceinline__ T sumOfWarp(T value) {
#pragma unroll
    for (int distance = kWarpSize / 2; distance >= 1; distance /= 2) {
        value += __shfl_xor_sync(kFullWarp, value, distance);
    }
    return value;
}

/// A warp a row, in place.
__global__ __launch_bounds__(
        kThreads) void normalizeKernel(float* rows, idx_t n, int d) {
    const int lane = threadIdx.x % kWarpSize;
    const idx_t row = (idx_t(blockIdx.x) * kThreads + threadIdx.x) / kWarpSize;
    if (row >= n) {
        return;
    }
    float* x = rows + row * d;
    double squares = 0; // of float32: they neither overflow nor underflow
    for (int c = lane; c < d; c += kWarpSize) {
        squares += double(x[c]) * x[c];
    }
    squares = sumOfWarp(squares);
    const bool isFit = squares > 0 && isfinite(squares);
    const double factor = isFit ? 1 / sqrt(squares) : 0.0;
    for (int c = lane; c < d; c += kWarpSize) {
        x[c] = isFit ? float(x[c] * factor) : 0.0f;
    }
}

/// A warp a row.
__global__ __launch_bounds__(kThreads) void normalizedSampleKernel(
        const float* rows,
        idx_t n,
        int d,
        const float* center,
        __nv_bfloat16* out,
        float* norms) {
    const int lane = threadIdx.x % kWarpSize;
    const idx_t row = (idx_t(blockIdx.x) * kThreads + threadIdx.x) / kWarpSize;
    if (row >= n) {
        return;
    }
    bool isZero = true;
    float squares = 0;
    for (int c = lane; c < d; c += kWarpSize) {
        const float x = rows[row * d + c];
        const __nv_bfloat16 rounded = __float2bfloat16(x - center[c]);
        const float value = toFloat(rounded);
        isZero &= x == 0;
        squares += value * value;
        out[row * d + c] = rounded;
    }
    squares = sumOfWarp(squares);
    isZero = __all_sync(kFullWarp, isZero);
    if (lane == 0) {
        norms[row] = squares + (isZero ? 1.0f : 0.0f);
    }
}

__global__ void toBFloat16Kernel(
        const float* values,
        idx_t count,
        __nv_bfloat16* out) {
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
         i += idx_t(gridDim.x) * kThreads) {
        out[i] = __float2bfloat16(values[i]);
    }
}

} // namespace

void runGatherSample(
        const FlatKnnProblem& problem,
        idx_t samples,
        float* out,
        cudaStream_t stream) {
    switch (problem.dataType) {
        case DataType::Float32:
            return gather<float>(problem, samples, out, stream);
        case DataType::Float16:
            return gather<__half>(problem, samples, out, stream);
        case DataType::BFloat16:
            return gather<__nv_bfloat16>(problem, samples, out, stream);
    }
}

void runSampleIds(idx_t n, idx_t samples, int32_t* out, cudaStream_t stream) {
    const auto blocks = unsigned((samples + kThreads - 1) / kThreads);
    sampleIdsKernel<<<blocks, kThreads, 0, stream>>>(
            n, samples, spreadRowsOf(samples), out);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runSampleBits(
        const uint32_t* allowedBits,
        idx_t n,
        idx_t size,
        idx_t samples,
        bool spread,
        uint32_t* out,
        cudaStream_t stream) {
    const auto blocks = unsigned((samples + kThreads - 1) / kThreads);
    sampleBitsKernel<<<blocks, kThreads, 0, stream>>>(
            allowedBits,
            n,
            size,
            samples,
            spread ? spreadRowsOf(size) : SpreadRows{},
            out);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runCenter(
        const float* rows,
        idx_t n,
        int d,
        float* scratch,
        float* center,
        cudaStream_t stream) {
    BITS_CUDA_CHECK(cudaMemsetAsync(scratch, 0, 2 * sizeof(float), stream));
    meanKernel<<<unsigned(d), kThreads, 0, stream>>>(
            rows, n, d, scratch, center);
    roundCenterKernel<<<blocksFor(d), kThreads, 0, stream>>>(
            d, scratch, center);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runSubtract(
        const float* rows,
        idx_t n,
        int d,
        const float* center,
        float* out,
        cudaStream_t stream) {
    if (n > 0) {
        subtractKernel<<<blocksFor(n * d), kThreads, 0, stream>>>(
                rows, n * d, d, center, out);
        BITS_CUDA_CHECK(cudaGetLastError());
    }
}

void runNormalize(float* rows, idx_t n, int d, cudaStream_t stream) {
    if (n > 0) {
        normalizeKernel<<<blocksOfWarps(n), kThreads, 0, stream>>>(rows, n, d);
        BITS_CUDA_CHECK(cudaGetLastError());
    }
}

void runNormalizedSample(
        const float* rows,
        idx_t n,
        int d,
        const float* center,
        void* out,
        float* norms,
        cudaStream_t stream) {
    if (n > 0) {
        normalizedSampleKernel<<<blocksOfWarps(n), kThreads, 0, stream>>>(
                rows, n, d, center, static_cast<__nv_bfloat16*>(out), norms);
        BITS_CUDA_CHECK(cudaGetLastError());
    }
}

void runToBFloat16(
        const float* values,
        idx_t count,
        void* out,
        cudaStream_t stream) {
    if (count > 0) {
        toBFloat16Kernel<<<blocksFor(count), kThreads, 0, stream>>>(
                values, count, static_cast<__nv_bfloat16*>(out));
        BITS_CUDA_CHECK(cudaGetLastError());
    }
}

} // namespace faiss_bits

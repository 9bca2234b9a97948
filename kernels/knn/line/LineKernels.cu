#include "kernels/knn/line/LineKernels.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/knn/line/LineNumber.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;
constexpr uint32_t kNoKind = kLineKinds;
static_assert(kLineStep % kThreads == 0);

__device__ __forceinline__ uint32_t kindOf(float number) {
    return !isfinite(number) ? kNoKind
            : number > 0     ? uint32_t(kPositive)
            : number < 0     ? uint32_t(kNegative)
                             : uint32_t(kZero);
}

/// Of a vector that may be a result; others have no kind.
__device__ __forceinline__ uint32_t
kindOfVector(const LineParams& params, int64_t vector, int64_t end) {
    if (vector >= end) {
        return kNoKind;
    }
    const uint32_t* bits = params.allowedBits;
    if (bits && (bits[vector / 32] >> (vector % 32) & 1) == 0) {
        return kNoKind;
    }
    return kindOf(numberAt(params.vectors, params.type, vector));
}

__device__ __forceinline__ bool isOf(uint32_t kind, uint32_t asked) {
    return kind == asked || (asked == kFinite && kind != kNoKind);
}

struct Chunk {
    int64_t first;
    int64_t end;

    __device__ explicit Chunk(const LineParams& params)
            : first(int64_t(blockIdx.x) * params.chunkVectors),
              end(min(first + params.chunkVectors, params.n)) {}
};

/// Vectors of each kind in each chunk.
__global__ __launch_bounds__(kThreads) void lineCountsKernel(
        const __grid_constant__ LineParams params) {
    __shared__ uint32_t counts[kLineKinds];
    if (threadIdx.x < kLineKinds) {
        counts[threadIdx.x] = 0;
    }
    __syncthreads();
    const Chunk chunk(params);
    uint32_t mine[kLineKinds] = {};
    // The same steps for all threads.
    for (int64_t base = chunk.first; base < chunk.end; base += kThreads) {
        const uint32_t kind =
                kindOfVector(params, base + threadIdx.x, chunk.end);
#pragma unroll
        for (uint32_t i = 0; i < kLineKinds; ++i) {
            mine[i] += isOf(kind, i);
        }
    }
#pragma unroll
    for (uint32_t i = 0; i < kLineKinds; ++i) {
        const uint32_t ofWarp = __reduce_add_sync(kFullWarp, mine[i]);
        if (threadIdx.x % kWarpSize == 0) {
            atomicAdd(&counts[i], ofWarp);
        }
    }
    __syncthreads();
    if (threadIdx.x < kLineKinds) {
        params.counts[blockIdx.x * kLineKinds + threadIdx.x] =
                counts[threadIdx.x];
    }
}

/// The first vectors of each kind, in the order of their numbers.
__global__ __launch_bounds__(kThreads) void lineListsKernel(
        const __grid_constant__ LineParams params) {
    __shared__ uint32_t before[kLineKinds]; // in chunks before this one
    __shared__ uint32_t ofWarps[kWarps][kLineKinds];
    if (threadIdx.x < kLineKinds) {
        before[threadIdx.x] = 0;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < blockIdx.x * kLineKinds; i += kThreads) {
        // kThreads is a multiple of the kinds: a thread has one of them.
        atomicAdd(&before[i % kLineKinds], params.counts[i]);
    }
    __syncthreads();
    if (blockIdx.x + 1 == gridDim.x && threadIdx.x < kLineKinds) {
        params.totals[threadIdx.x] = before[threadIdx.x] +
                params.counts[blockIdx.x * kLineKinds + threadIdx.x];
    }
    const auto areFull = [&] {
        bool full = true;
        for (const uint32_t count : before) {
            full = full && count >= params.listed;
        }
        return full;
    };
    const Chunk chunk(params);
    const int warp = threadIdx.x / kWarpSize;
    const uint32_t lower = (1u << threadIdx.x % kWarpSize) - 1;
    // The same steps for all threads.
    for (int64_t base = chunk.first; base < chunk.end && !areFull();
         base += kThreads) {
        const int64_t vector = base + threadIdx.x;
        const uint32_t kind = kindOfVector(params, vector, chunk.end);
        uint32_t masks[kLineKinds];
#pragma unroll
        for (uint32_t i = 0; i < kLineKinds; ++i) {
            masks[i] = __ballot_sync(kFullWarp, isOf(kind, i));
            if (threadIdx.x % kWarpSize == i) {
                ofWarps[warp][i] = __popc(masks[i]);
            }
        }
        __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < kLineKinds; ++i) {
            uint32_t place = before[i] + __popc(masks[i] & lower);
            for (int w = 0; w < warp; ++w) {
                place += ofWarps[w][i];
            }
            if (isOf(kind, i) && place < params.listed) {
                params.lists[i * params.listed + place] = uint32_t(vector);
            }
        }
        __syncthreads();
        if (threadIdx.x < kLineKinds) {
            for (int w = 0; w < kWarps; ++w) {
                before[threadIdx.x] += ofWarps[w][threadIdx.x];
            }
        }
        __syncthreads();
    }
}

/// A place of a result a thread.
__global__ __launch_bounds__(kThreads) void lineResultsKernel(
        const __grid_constant__ LineParams params) {
    constexpr float kLeast = -3.402823466e+38f;
    const int64_t places = params.numQueries * params.k;
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < places;
         i += step) {
        const int64_t query = i / params.k;
        const int64_t place = i % params.k;
        const uint32_t kind =
                kindOf(numberAt(params.queries, params.type, query));
        float distance = kLeast;
        int64_t id = -1;
        const auto take = [&](int64_t at, uint32_t of, float value) {
            if (at >= 0 && at < params.totals[of]) {
                distance = value;
                id = params.lists[of * params.listed + at];
            }
            return at - params.totals[of];
        };
        if (kind == kZero) {
            take(place, kFinite, 0.0f);
        } else if (kind != kNoKind) {
            int64_t at = take(place, kind, 1.0f);
            at = take(at, kZero, 0.0f);
            take(at, kPositive + kNegative - kind, -1.0f);
        }
        params.outDistances[i] = distance;
        if (params.ids64) {
            static_cast<int64_t*>(params.outIds)[i] = id;
        } else {
            static_cast<int32_t*>(params.outIds)[i] = int32_t(id);
        }
    }
}

} // namespace

void launchLine(const LineParams& params, cudaStream_t stream) {
    lineCountsKernel<<<params.chunks, kThreads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
    lineListsKernel<<<params.chunks, kThreads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
    constexpr int64_t kMostBlocks = 1 << 14;
    const int64_t places = params.numQueries * params.k;
    const int64_t blocks =
            std::min((places + kThreads - 1) / kThreads, kMostBlocks);
    lineResultsKernel<<<unsigned(blocks), kThreads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits

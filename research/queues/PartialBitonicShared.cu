/// Partial bitonic sort with list and segment in shared memory: the first two
/// of the thesis's three steps (Hanak 2023, 3.5.1 and figure 5.2).

#include "kernels/common/CudaCheck.h"
#include "kernels/device/Bitonic.cuh"
#include "research/queues/PartialBitonicLaunch.h"
#include "research/queues/SortRow.cuh"

namespace faiss_bits {

namespace {

/// Compares and swaps at one stride; runs of `size` ascend and descend in
/// turn. A thread is the number of a comparator (4.1.4).
__device__ __forceinline__ void exchange(
        uint64_t* items,
        int count,
        int size,
        int stride) {
    for (int i = threadIdx.x; i < count / 2; i += blockDim.x) {
        const int left = ((i & ~(stride - 1)) << 1) | (i & (stride - 1));
        const int right = left + stride;
        const uint64_t a = items[left];
        const uint64_t b = items[right];
        const bool up = (left & size) == 0;
        if ((b < a) == up) {
            items[left] = b;
            items[right] = a;
        }
    }
    __syncthreads();
}

/// Strides from `stride` down by shuffles: a warp holds 32 neighbours.
__device__ __forceinline__ void exchangeLanes(
        uint64_t* items,
        int count,
        int size,
        int stride) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        uint64_t item = items[i];
        const bool up = (i & size) == 0;
        for (int lanes = stride; lanes >= 1; lanes /= 2) {
            const uint64_t other = __shfl_xor_sync(kFullWarp, item, lanes);
            const bool wantsLess = ((i & lanes) == 0) == up;
            if ((other < item) == wantsLess) {
                item = other;
            }
        }
        items[i] = item;
    }
    __syncthreads();
}

/// Turns bitonic runs of `size` into sorted ones.
template <bool Shuffles>
__device__ __forceinline__ void mergeRuns(
        uint64_t* items,
        int count,
        int size) {
    for (int stride = size / 2; stride >= 1; stride /= 2) {
        if (Shuffles && stride < kWarpSize) {
            exchangeLanes(items, count, size, stride);
            return;
        }
        exchange(items, count, size, stride);
    }
}

template <bool Shuffles>
__global__ __launch_bounds__(256) void partialBitonicSharedKernel(
        const __grid_constant__ PartialBitonicParams p) {
    extern __shared__ uint64_t shared[];
    uint64_t* list = shared; // ascending
    uint64_t* segment = shared + p.listSize;
    const int threads = blockDim.x;
    const SortRow source(p);
    for (int i = threadIdx.x; i < p.listSize; i += threads) {
        list[i] = kNoEntry;
    }
    for (idx_t next = source.begin; next < source.end; next += p.listSize) {
        for (int i = threadIdx.x; i < p.listSize; i += threads) {
            uint64_t one[1];
            source.load(next + i, 0, one);
            segment[i] = one[0];
        }
        __syncthreads();
        for (int size = 2; size <= p.listSize; size *= 2) {
            mergeRuns<Shuffles>(segment, p.listSize, size);
        }
        // The reversed separator: the better half of both, as a bitonic list.
        for (int i = threadIdx.x; i < p.listSize; i += threads) {
            list[i] = min(list[i], segment[p.listSize - 1 - i]);
        }
        __syncthreads();
        mergeRuns<Shuffles>(list, p.listSize, p.listSize);
    }
    __syncthreads();
    for (int place = threadIdx.x; place < p.select.k; place += threads) {
        source.write(place, list[place]);
    }
}

} // namespace

void launchPartialBitonicShared(
        const PartialBitonicParams& params,
        bool shuffles,
        int threads,
        unsigned blocks,
        cudaStream_t stream) {
    auto* kernel = shuffles ? partialBitonicSharedKernel<true>
                            : partialBitonicSharedKernel<false>;
    const size_t bytes = 2 * size_t(params.listSize) * sizeof(uint64_t);
    kernel<<<blocks, threads, bytes, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits

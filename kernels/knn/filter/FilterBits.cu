#include "kernels/knn/filter/FilterBits.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/device/BlockScan.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kScanThreads = 1024;
constexpr idx_t kMaxBlocks = 1 << 16; // the kernels stride over the rest

unsigned blocksFor(idx_t threads) {
    return unsigned(std::clamp<idx_t>(
            (threads + kThreads - 1) / kThreads, 1, kMaxBlocks));
}

/// Blocks of words, one a thread, that lists are made by.
idx_t chunksOf(idx_t n) {
    return (filterWords(n) + kThreads - 1) / kThreads;
}

/// Bits of word w that belong to the vectors first .. end - 1.
__device__ uint32_t bitsInside(idx_t word, idx_t first, idx_t end) {
    const idx_t low = max(first - word * 32, idx_t(0));
    const idx_t high = min(end - word * 32, idx_t(32));
    if (low >= high) {
        return 0;
    }
    const uint32_t upTo = high == 32 ? ~0u : (1u << high) - 1;
    return upTo & ~((1u << low) - 1);
}

__global__ void rangeBitsKernel(
        uint32_t* bits,
        idx_t words,
        idx_t first,
        idx_t end) {
    for (idx_t w = idx_t(blockIdx.x) * kThreads + threadIdx.x; w < words;
         w += idx_t(gridDim.x) * kThreads) {
        bits[w] = bitsInside(w, first, end);
    }
}

__global__ void idBitsKernel(
        uint32_t* bits,
        idx_t n,
        const idx_t* ids,
        idx_t numIds) {
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < numIds;
         i += idx_t(gridDim.x) * kThreads) {
        const idx_t id = ids[i];
        if (id >= 0 && id < n) {
            atomicOr(bits + id / 32, 1u << (id % 32));
        }
    }
}

__global__ void invertBitsKernel(uint32_t* bits, idx_t words, idx_t n) {
    for (idx_t w = idx_t(blockIdx.x) * kThreads + threadIdx.x; w < words;
         w += idx_t(gridDim.x) * kThreads) {
        bits[w] = ~bits[w] & bitsInside(w, 0, n);
    }
}

template <BitOperation Operation>
__global__ void combineBitsKernel(
        uint32_t* bits,
        const uint32_t* other,
        idx_t words) {
    for (idx_t w = idx_t(blockIdx.x) * kThreads + threadIdx.x; w < words;
         w += idx_t(gridDim.x) * kThreads) {
        const uint32_t a = bits[w];
        const uint32_t b = other[w];
        bits[w] = Operation == BitOperation::And ? a & b
                : Operation == BitOperation::Or  ? a | b
                                                 : a ^ b;
    }
}

__global__ void clearTailKernel(uint32_t* bits, idx_t n) {
    bits[n / 32] &= bitsInside(n / 32, 0, n);
}

/// This thread's word of a chunk, without what lies behind vector n.
__device__ uint32_t wordOfChunk(const uint32_t* bits, idx_t n, idx_t chunk) {
    const idx_t w = chunk * kThreads + threadIdx.x;
    return w * 32 < n ? bits[w] & bitsInside(w, 0, n) : 0;
}

/// counts[c] = set bits of chunk c.
__global__ void __launch_bounds__(kThreads) countChunksKernel(
        const uint32_t* bits,
        idx_t n,
        idx_t chunks,
        uint32_t* counts) {
    __shared__ uint32_t sums[kThreads / kWarpSize];
    for (idx_t c = blockIdx.x; c < chunks; c += gridDim.x) {
        const uint32_t own = __popc(wordOfChunk(bits, n, c));
        const uint32_t before = sumOfThreadsBefore<kThreads>(own, sums);
        if (threadIdx.x == kThreads - 1) {
            counts[c] = before + own;
        }
        __syncthreads();
    }
}

/// counts[c] becomes the sum of those before it. One block.
__global__ void __launch_bounds__(kScanThreads)
        scanChunksKernel(uint32_t* counts, idx_t chunks) {
    __shared__ uint32_t sums[kScanThreads / kWarpSize];
    __shared__ uint32_t last;
    uint32_t carried = 0;
    for (idx_t first = 0; first < chunks; first += kScanThreads) {
        const idx_t c = first + threadIdx.x;
        const uint32_t own = c < chunks ? counts[c] : 0;
        const uint32_t before = sumOfThreadsBefore<kScanThreads>(own, sums);
        if (c < chunks) {
            counts[c] = carried + before;
        }
        if (threadIdx.x == kScanThreads - 1) {
            last = before + own;
        }
        __syncthreads();
        carried += last;
        __syncthreads();
    }
}

/// A chunk's ids, from place starts[c] on.
__global__ void __launch_bounds__(kThreads) idsOfChunksKernel(
        const uint32_t* bits,
        idx_t n,
        idx_t chunks,
        const uint32_t* starts,
        int32_t* ids,
        idx_t capacity) {
    __shared__ uint32_t sums[kThreads / kWarpSize];
    for (idx_t c = blockIdx.x; c < chunks; c += gridDim.x) {
        uint32_t word = wordOfChunk(bits, n, c);
        idx_t place = idx_t(starts[c]) +
                sumOfThreadsBefore<kThreads>(__popc(word), sums);
        const idx_t first = (c * kThreads + threadIdx.x) * 32;
        for (; word != 0 && place < capacity; word &= word - 1) {
            ids[place++] = int32_t(first + __ffs(word) - 1);
        }
        __syncthreads();
    }
}

} // namespace

void runRangeBits(
        uint32_t* bits,
        idx_t n,
        idx_t first,
        idx_t end,
        cudaStream_t stream) {
    if (n == 0) {
        return;
    }
    first = std::clamp<idx_t>(first, 0, n);
    end = std::clamp<idx_t>(end, first, n);
    rangeBitsKernel<<<blocksFor(filterWords(n)), kThreads, 0, stream>>>(
            bits, filterWords(n), first, end);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runAddIdBits(
        uint32_t* bits,
        idx_t n,
        const idx_t* ids,
        idx_t numIds,
        cudaStream_t stream) {
    if (n == 0 || numIds == 0) {
        return;
    }
    idBitsKernel<<<blocksFor(numIds), kThreads, 0, stream>>>(
            bits, n, ids, numIds);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runClearTail(uint32_t* bits, idx_t n, cudaStream_t stream) {
    if (n % 32 == 0) {
        return;
    }
    clearTailKernel<<<1, 1, 0, stream>>>(bits, n);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runInvertBits(uint32_t* bits, idx_t n, cudaStream_t stream) {
    if (n == 0) {
        return;
    }
    invertBitsKernel<<<blocksFor(filterWords(n)), kThreads, 0, stream>>>(
            bits, filterWords(n), n);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runCombineBits(
        BitOperation operation,
        uint32_t* bits,
        const uint32_t* other,
        idx_t n,
        cudaStream_t stream) {
    if (n == 0) {
        return;
    }
    const auto kernel = operation == BitOperation::And
            ? combineBitsKernel<BitOperation::And>
            : operation == BitOperation::Or
            ? combineBitsKernel<BitOperation::Or>
            : combineBitsKernel<BitOperation::Xor>;
    kernel<<<blocksFor(filterWords(n)), kThreads, 0, stream>>>(
            bits, other, filterWords(n));
    BITS_CUDA_CHECK(cudaGetLastError());
}

size_t idsOfBitsWorkspaceBytes(idx_t n) {
    WorkspaceSlices slices;
    slices.take<uint32_t>(chunksOf(n));
    return slices.used();
}

void runIdsOfBits(
        const uint32_t* bits,
        idx_t n,
        int32_t* ids,
        idx_t capacity,
        Workspace workspace,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const idx_t chunks = chunksOf(n);
    uint32_t* starts = slices.take<uint32_t>(chunks);
    if (capacity == 0) {
        return;
    }
    // All ones are -1.
    BITS_CUDA_CHECK(
            cudaMemsetAsync(ids, 0xFF, capacity * sizeof(int32_t), stream));
    if (n == 0) {
        return;
    }
    const unsigned blocks = unsigned(std::min(chunks, kMaxBlocks));
    countChunksKernel<<<blocks, kThreads, 0, stream>>>(bits, n, chunks, starts);
    BITS_CUDA_CHECK(cudaGetLastError());
    scanChunksKernel<<<1, kScanThreads, 0, stream>>>(starts, chunks);
    BITS_CUDA_CHECK(cudaGetLastError());
    idsOfChunksKernel<<<blocks, kThreads, 0, stream>>>(
            bits, n, chunks, starts, ids, capacity);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits

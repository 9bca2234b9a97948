#include "faiss_bits/many/PeerCopy.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

constexpr int kBlock = 512;
constexpr int kUnroll = 4;

/// Words of 16 bytes; so many loads a thread are under way.
__global__ void __launch_bounds__(kBlock)
        peerCopyKernel(const uint4* from, uint4* to, size_t words) {
    const size_t step = size_t(gridDim.x) * kBlock;
    size_t at = size_t(blockIdx.x) * kBlock + threadIdx.x;
    for (; at + (kUnroll - 1) * step < words; at += kUnroll * step) {
        uint4 some[kUnroll];
#pragma unroll
        for (int i = 0; i < kUnroll; ++i) {
            some[i] = from[at + i * step];
        }
#pragma unroll
        for (int i = 0; i < kUnroll; ++i) {
            to[at + i * step] = some[i];
        }
    }
    for (; at < words; at += step) {
        to[at] = from[at];
    }
}

bool isWhole(const void* address) {
    return reinterpret_cast<uintptr_t>(address) % sizeof(uint4) == 0;
}

} // namespace

bool canCopyByKernel(const void* target, const void* source, size_t bytes) {
    return isWhole(target) && isWhole(source) && bytes % sizeof(uint4) == 0;
}

void copyByKernel(
        void* target,
        const void* source,
        size_t bytes,
        cudaStream_t stream) {
    const size_t words = bytes / sizeof(uint4);
    if (words == 0) {
        return;
    }
    constexpr size_t kMostBlocks = 264;
    const size_t wanted = (words + kBlock * kUnroll - 1) / (kBlock * kUnroll);
    peerCopyKernel<<<
            unsigned(std::min(wanted, kMostBlocks)),
            kBlock,
            0,
            stream>>>(
            static_cast<const uint4*>(source),
            static_cast<uint4*>(target),
            words);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits::gpu::detail

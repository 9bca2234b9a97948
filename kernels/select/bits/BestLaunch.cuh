/// The launch of k = 1; included by the generated sources only.
#pragma once

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/select/bits/BestSelect.cuh"
#include "kernels/select/bits/BitsLaunch.cuh"

namespace faiss_bits {

/// Shared memory that leaves a multiprocessor no room for another block.
inline size_t idleSharedBytes(int blocksAtATime) {
    if (blocksAtATime == 0) {
        return 0;
    }
    int device = 0;
    int bytes = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    BITS_CUDA_CHECK(cudaDeviceGetAttribute(
            &bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
    // Every block takes 1 KiB besides.
    constexpr size_t kLess = 768;
    constexpr size_t kAlwaysAllowed = 48 * 1024;
    return std::min(bytes / (blocksAtATime + 1) - kLess, kAlwaysAllowed);
}

template <class Keys, bool ByPacks>
void launchBestSelectKernel(
        const SelectParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    bestSelectKernel<typename Keys::Type, typename Keys::Tile, ByPacks>
            <<<blocks,
               kBitsThreads,
               idleSharedBytes(params.blocksAtATime),
               stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

/// Rows of fewer columns are loaded as the key tile does.
constexpr uint32_t kLeastColsByPacks = 1024;
/// Aligned rows that are not whole tiles: longer ones hardly gain, and whole
/// tiles of 16-bit keys take 6% longer by packs (measured, H200).
constexpr uint32_t kMostAlignedColsByPacks = 32 * 1024;

/// Whether the kernel that loads packs from any address takes less time.
inline bool shouldLoadPacks(const SelectParams& params, uint32_t tile) {
    if (params.cols < kLeastColsByPacks) {
        return false;
    }
    const bool isAligned = params.vectorLoads != 0;
    return !isAligned ||
            (params.cols <= kMostAlignedColsByPacks && params.cols % tile != 0);
}

template <class Keys>
void launchBestSelect(
        const SelectParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    if constexpr (!Keys::Tile::kHasBias) {
        if (shouldLoadPacks(params, kBitsThreads * Keys::Tile::kItems)) {
            SelectParams byPacks = params;
            byPacks.vectorLoads = 1;
            launchBestSelectKernel<Keys, true>(byPacks, blocks, stream);
            return;
        }
    }
    launchBestSelectKernel<Keys, false>(params, blocks, stream);
}

template <class Keys>
void launchBestOfParts(
        const SelectParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    launchAfterPrevious(
            bestOfPartsKernel<typename Keys::Type>,
            blocks,
            kBestPartsThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits

/// The scan by mma.sync, for every architecture from 8.0 on: shapes of its
/// blocks, for the kernel and its launch.
#pragma once

#include "kernels/knn/fused/tensor/TensorScanLaunch.h"

#if defined(__CUDACC__)
#define BITS_SHAPE __host__ __device__
#else
#define BITS_SHAPE
#endif

namespace faiss_bits {

constexpr int kMmaThreads = 256;
constexpr int kMmaQueries = 128; ///< of a block
constexpr int kMmaVectors = 128; ///< of a step

/// Offsets in a block's shared memory. The queries stay where a row has one or
/// two slabs; else they come with the vectors, slab by slab.
struct MmaSharedLayout {
    bool resident;
    int stageBytes;
    int stages; // offsets from here on
    int norms;
    int passed;
    int bytes;

    BITS_SHAPE MmaSharedLayout(int slabs, int slabBytes, int numStages)
            : resident(slabs <= 2),
              stageBytes(resident ? slabBytes : 2 * slabBytes),
              stages(resident ? slabs * slabBytes : 0),
              norms(stages + numStages * stageBytes),
              passed(norms + (numStages + 1) * kMmaVectors * 4),
              bytes(passed + kMmaThreads / 32 * 64 * 8) {}
};

/// 3 stages, or 2 where a block of the device has too little memory.
inline int mmaStages(
        const TensorImageLayout& image,
        const DeviceTraits& device) {
    const MmaSharedLayout three(image.slabs, image.slabBytes, 3);
    return size_t(three.bytes) <= device.blockSharedBytes ? 3 : 2;
}

/// Blocks that a multiprocessor holds; a block reserves a KiB more than it
/// asks for.
inline int mmaBlocks(
        const TensorImageLayout& image,
        const DeviceTraits& device) {
    const MmaSharedLayout layout(
            image.slabs, image.slabBytes, mmaStages(image, device));
    return 2 * (size_t(layout.bytes) + 1024) <= device.sharedBytes ? 2 : 1;
}

// Stages and queryBuffers of params are not read.
TensorScanLaunch launchMmaScan;
TensorScanLaunch launchMmaBits;    ///< sets params.passed.bits
TensorScanLaunch launchMmaStrips;  ///< with params.strips
TensorScanLaunch launchMmaNearest; ///< with params.nearest

} // namespace faiss_bits

#undef BITS_SHAPE

/// Shapes of the scan's blocks on Hopper, for the kernel and its launch.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/knn/fused/tensor/TensorScanParams.h"

#if defined(__CUDACC__)
#define BITS_SHAPE __host__ __device__
#else
#define BITS_SHAPE
#endif

namespace faiss_bits {

/// False in a build for other architectures alone.
#ifdef FAISS_BITS_WGMMA
constexpr bool kHasWgmmaScan = true;
#else
constexpr bool kHasWgmmaScan = false;
#endif

constexpr int kMaxStages = 8;

struct WgmmaShape {
    int rowBytes;  ///< of a slab of the images
    bool streamed; ///< queries too, slab by slab

    /// Warpgroups that multiply and compare: two, which take half of the
    /// queries each; for short rows, where comparisons take longest, four, so
    /// that a scheduler has more to choose from: these share the vectors of a
    /// tile too.
    BITS_SHAPE constexpr int groups() const {
#ifdef TENSOR_GROUPS2
        return 2;
#endif
        return rowBytes < 128 ? 4 : 2;
    }
    BITS_SHAPE constexpr int threads() const {
        return 128 * (groups() + 1);
    }
    /// Of 64 queries, in a warpgroup, and vectors of one product.
    BITS_SHAPE constexpr int blocks() const {
        return streamed ? 1 : 2;
    }
    BITS_SHAPE constexpr int width() const {
        return streamed ? 256 : groups() == 4 ? 64 : 128;
    }
    BITS_SHAPE constexpr int queries() const {
        return 2 * 64 * blocks();
    }
    /// A step is a stage of 16 KiB of vectors where rows have one slab: short
    /// rows come several tiles at a time.
    BITS_SHAPE constexpr int tilesOfUnit() const {
        return streamed ? 2 : 128 / rowBytes;
    }
    BITS_SHAPE constexpr int unit() const {
        return tilesOfUnit() * TensorImageLayout::kTileRows;
    }
    BITS_SHAPE constexpr int stageBytes() const {
        return streamed ? 3 * 16384 : 16384;
    }
};

/// Offsets in a block's shared memory.
struct WgmmaSharedLayout {
    int stages;
    int norms;
    int passed;
    int barriers;
    int bytes;

    BITS_SHAPE WgmmaSharedLayout(
            WgmmaShape shape,
            int slabs,
            int numStages,
            int queryBuffers) {
        const int queryBytes = shape.streamed
                ? 0
                : queryBuffers * 2 * slabs * 128 * shape.rowBytes;
        stages = queryBytes;
        norms = stages + numStages * shape.stageBytes();
        // A slot more than stages: it is read after its stage was released.
        passed = norms + (numStages + 1) * shape.unit() * 4;
        barriers = passed + shape.groups() * 4 * 128 * 8;
        bytes = barriers + (2 * kMaxStages + 4) * 8;
    }
};

/// The rows of an image that a shape is for. Streamed from 5 slabs on: fewer
/// than stages would let a slot of norms be overwritten too early.
inline WgmmaShape wgmmaShapeFor(const TensorImageLayout& image) {
    return {image.rowBytes, image.slabs > 4};
}

/// Enqueues the kernel of a shape; params are complete but for stages and
/// queryBuffers, which this chooses.
void launchWgmmaScan(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        bool isL2,
        const DeviceTraits& device,
        cudaStream_t stream);

} // namespace faiss_bits

#undef BITS_SHAPE

/// Shapes of the scan's blocks on Hopper, for the kernel and its launch.
#pragma once

#include "kernels/knn/fused/tensor/TensorScanLaunch.h"

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

    /// Warpgroups that multiply and compare share a step: so many parts of the
    /// queries, and of the vectors. Four hide each other's comparisons; two
    /// where an accumulator is 256 wide.
    BITS_SHAPE constexpr int queryParts() const {
        return streamed || rowBytes < 128 ? 2 : 4;
    }
    BITS_SHAPE constexpr int vectorParts() const {
        return rowBytes < 128 ? 2 : 1;
    }
    BITS_SHAPE constexpr int groups() const {
        return queryParts() * vectorParts();
    }
    BITS_SHAPE constexpr int threads() const {
        return 128 * (groups() + 1);
    }
    BITS_SHAPE constexpr int queries() const {
        return streamed ? 128 : 256;
    }
    /// Of 64 queries, in a warpgroup, and vectors of one product.
    BITS_SHAPE constexpr int blocks() const {
        return queries() / queryParts() / 64;
    }
    BITS_SHAPE constexpr int width() const {
        return (streamed ? 256 : 128) / vectorParts();
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
    /// Of the norm steps of a unit.
    BITS_SHAPE constexpr int normBytes() const {
        return unit() * 32;
    }
};

/// Offsets in a block's shared memory. bufferWords: of 8 bytes, that a warp
/// keeps what passed in.
struct WgmmaSharedLayout {
    int slots; ///< of norm steps
    int stages;
    int norms;
    int passed;
    int barriers;
    int bytes;

    BITS_SHAPE WgmmaSharedLayout(
            WgmmaShape shape,
            int slabs,
            int numStages,
            int queryBuffers,
            int bufferWords) {
        const int queryBytes = shape.streamed
                ? 0
                : queryBuffers * 2 * slabs * 128 * shape.rowBytes;
        // A norm step is read with the first slab of its unit, and may be
        // written again when that stage may.
        slots = (numStages + slabs - 1) / slabs;
        stages = queryBytes;
        norms = stages + numStages * shape.stageBytes();
        passed = norms + slots * shape.normBytes();
        // Streamed shapes have room for PassedProducts in any case.
        const int words = shape.streamed || bufferWords > 64 ? 128 : 64;
        barriers = passed + shape.groups() * 4 * words * 8;
        bytes = barriers + (2 * kMaxStages + 4) * 8;
    }
};

/// The shape for an image. Streamed from 5 slabs on: 256 queries of them are
/// too many for shared memory.
inline WgmmaShape wgmmaShapeFor(const TensorImageLayout& image) {
    return {image.rowBytes, image.slabs > 4};
}

/// Queries up to which warpgroups take turns (launchWgmmaTurns): what a product
/// of one has.
constexpr uint32_t kMostTurnQueries = 64;

// They choose stages and queryBuffers of params.
TensorScanLaunch launchWgmmaScan;
/// The same of up to kMostTurnQueries, where they do not stream.
TensorScanLaunch launchWgmmaTurns;
TensorScanLaunch launchWgmmaBits; ///< sets params.passed.bits
/// To params.passed.products.
TensorScanLaunch launchWgmmaProducts;
TensorScanLaunch launchWgmmaStrips;  ///< with params.strips
TensorScanLaunch launchWgmmaNearest; ///< with params.nearest

} // namespace faiss_bits

#undef BITS_SHAPE

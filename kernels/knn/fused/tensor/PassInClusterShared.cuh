/// What PassInCluster.cuh is given, and how its blocks share the work and lay
/// out their memory.
#pragma once

#include "kernels/knn/fused/tensor/PassAtOnceLimits.cuh"

namespace faiss_bits::at_once {

/// Units of 128 vectors of a block of a cluster: unit i of block b is unit
/// i kBlocks + b of all.
constexpr int kUnitsOfBlock = 4;

/// What the kernel wants beside Params: the queries' images are in memory.
struct ClusterParams {
    Params pass; // its queries: n and d, vectorFacts
    const uint8_t* images;
    const float* norms;     // [n] of the queries
    const float* residuals; // [n]
    const float* inverses;  // [n]
};

template <int kBlocks>
struct ClusterShape {
    /// Rows of a tile whose limits a block finds.
    static constexpr int kOwnRows = kQueries / kBlocks;
    static constexpr int kFinders = kOwnRows / 8; // warps
    /// Words of strips of a row, all and those of a lane.
    static constexpr int kStripWords = 64;
    static constexpr int kLaneWords = kStripWords / (4 * kBlocks);
    static constexpr int kStride = kStripWords + 4; // no bank conflicts
    /// The word of half of a unit: two units have all of them, and four the
    /// same number of each.
    __device__ static constexpr int wordOfHalf(int unit, int half) {
        return (unit + half * (kLaneWords / 2)) % kLaneWords;
    }
    static_assert(kOwnRows % 8 == 0 && kLaneWords % 2 == 0);
    static constexpr int kKeyRegisters = 224;
    static constexpr int kOtherRegisters = 56;
};

template <int kBlocks, int kSlabs>
struct ClusterShared {
    using S = ClusterShape<kBlocks>;
    static constexpr int kGroups = kConsumerGroups;

    uint8_t slabs[kUnitsOfBlock][kSlabs][kSlabBytes];
    uint8_t images[kGroups][2][kSlabs][kImageSlabBytes];
    float norms[kUnitsOfBlock * kUnit];
    RowScales scales[kGroups][2][kQueries];
    RowError errors[kGroups][2][kQueries];
    uint32_t strips[kGroups][S::kOwnRows][S::kStride]; // of all blocks
    uint32_t limits[kGroups][kQueries];
    uint64_t residentFull;
    uint64_t imageFull[kGroups][2];
    uint64_t imageEmpty[kGroups][2];
    uint64_t stripsFull[kGroups];
    uint64_t limitsFull[kGroups];
};

} // namespace faiss_bits::at_once

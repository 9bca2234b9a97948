#pragma once

#include <cstdint>

#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

/// What a search by L2 has where it may scan in 8 bits (tensor/ByteScan.h):
/// each tile of queries is scanned in 8 bits or in 16, and the kernel that
/// makes the limits decides which, as it knows how many more pass by the bound
/// of 8 bits. So nobody waits for the device.
struct ByteSearch {
    /// The most that a block of a scan has: where it has some of a tile that is
    /// scanned in 8 bits and some of one that is not, both scans take its time.
    static constexpr uint32_t kTileQueries = 256;

    /// The cost of a query that is not to be scanned in 8 bits: beyond that of
    /// any tile, of some 2,000 strips a query; those of a tile add up in 32
    /// bits.
    static constexpr uint32_t kFar = 1u << 20;

    const TensorImageFacts* facts = nullptr; // of vectors; nullptr: there is no
                                             // such scan
    const float* residuals = nullptr;        // [rows] |q - q'|
    float* limits = nullptr;                 // [rows]
    /// [tiles] what their queries' limits in 8 bits let pass beside what those
    /// in 16 do, counted in strips. Zero before.
    uint32_t* costs = nullptr;
    uint32_t mostCost = 0; // of a tile that is scanned in 8 bits, below kFar
    /// With a filter that scans ask of what passed: how many of so many members
    /// of the sample it allows. As many times more pass. nullptr: all.
    const uint32_t* allowed = nullptr;
    uint32_t members = 0;

#ifdef __CUDACC__
    /// Whether a row is. Once its limit, and all of its tile's, are made.
    __device__ __forceinline__ bool takes(uint32_t row) const {
        return facts && costs[row / kTileQueries] <= mostCost;
    }
#endif
};

} // namespace faiss_bits

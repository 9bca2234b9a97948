#pragma once

#include <cstdint>

#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

/// What a search by L2 has where it may scan in 8 bits (tensor/ByteScan.h):
/// each tile of queries is scanned in 8 bits or in 16, and the kernel that
/// makes the limits decides which, as it knows how many more pass by the bound
/// of 8 bits. So nobody waits for the device.
struct ByteSearch {
    static constexpr uint32_t kTileQueries = 128;

    const TensorImageFacts* facts = nullptr; // of vectors; nullptr: there is no
                                             // such scan
    const float* residuals = nullptr;        // [rows] |q - q'|
    float* limits = nullptr;                 // [rows]
    /// [tiles] what their queries' limits in 8 bits let pass beside what those
    /// in 16 do, counted in strips. Zero before.
    uint32_t* costs = nullptr;
    uint32_t mostCost = 0; // of a tile that is scanned in 8 bits

#ifdef __CUDACC__
    /// Whether a row is. Once its limit, and all of its tile's, are made.
    __device__ __forceinline__ bool takes(uint32_t row) const {
        return facts && costs[row / kTileQueries] <= mostCost;
    }
#endif
};

} // namespace faiss_bits

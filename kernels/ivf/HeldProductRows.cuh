/// Rows of product codes, read once for a group of 32 vectors.
#pragma once

#include "kernels/ivf/ProductBlocks.cuh"

namespace faiss_bits {

/// As ProductBlocks, of parts of four components, with all codes of a group in
/// registers: of each vector its four lanes have eight codes each, and hand
/// them to each other by words. To read a code for each step asks for the whole
/// row, of 32 bytes, every time. All lanes of a warp call read().
struct HeldProductRows : ProductBlocks<ListLayout::Rows, 4> {
    using Blocks = ProductBlocks<ListLayout::Rows, 4>;
    static constexpr int kPartDims = 4;
    static constexpr int kOfLane = 8;    // codes
    static constexpr int kStepDims = 16; // of the four lanes: a word

    uint2 codes[4]; // of this lane's vectors

    /// They are on their way.
    __device__ __forceinline__ HeldProductRows(
            const ProductDecoder& decoder,
            const IvfParams& params,
            const TilePlace& place,
            int i,
            int numVectors,
            int firstComponent)
            : Blocks(decoder, params, place, i, numVectors, firstComponent) {
        const int at = kOfLane * (int(threadIdx.x) % 4);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            codes[k] = at < numCodes
                    ? __ldg(reinterpret_cast<const uint2*>(
                              from + int64_t(min(k, last)) * numCodes + at))
                    : uint2{0, 0};
        }
    }

    __device__ __forceinline__ static bool suits(
            const ProductDecoder& decoder,
            const IvfParams& params,
            const TilePlace& place) {
        return Blocks::suits(decoder, params, place) &&
                decoder.partDims == kPartDims &&
                ProductDecoder::numCodes(params) % kOfLane == 0 &&
                reinterpret_cast<uintptr_t>(place.list) % sizeof(uint2) == 0;
    }

    /// offset: a multiple of kStepDims. Behind the last component it has
    /// anything: d is a multiple of two steps, and so nobody decodes that.
    __device__ __forceinline__ Raw read(int offset) const {
        const int lane = int(threadIdx.x) % kWarpSize;
        const int word = offset / kStepDims;
        const int from = lane / 4 * 4 + word / 2;
        Raw raw;
        raw.isThere = true;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const uint32_t four = __shfl_sync(
                    kFullWarp, word % 2 ? codes[k].y : codes[k].x, from);
            raw.words[k] = four >> (8 * (lane % 4));
        }
        return raw;
    }
};

} // namespace faiss_bits

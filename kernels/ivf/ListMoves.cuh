/// Copies of the codes of vectors within a list, by warps.
#pragma once

#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/ListCodes.h"
#include "kernels/ivf/ListPlaces.cuh"

namespace faiss_bits {

/// Codes of whole bytes. Piece: a code; in Rows any part of a vector's bytes.
template <ListLayout kLayout, class Piece>
struct MoveOfPieces {
    int numPieces; // of a vector

    __device__ __forceinline__ void operator()(
            void* list,
            uint32_t to,
            uint32_t from,
            int lane) const {
        auto* pieces = static_cast<Piece*>(list);
        for (int i = lane; i < numPieces; i += kWarpSize) {
            pieces[listPlace<kLayout>(to, i, numPieces)] =
                    pieces[listPlace<kLayout>(from, i, numPieces)];
        }
    }
};

/// Interleaved codes of fewer than 8 bits. Code i of 32 vectors has bytes of
/// its own, and the same lane writes them in every call of a warp; so they come
/// out right where one warp alone writes to a group of 32 vectors. Bits of
/// others are written as they were.
struct MoveOfBits {
    int numCodes; // of a vector
    int bits;     // of a code

    __device__ __forceinline__ void operator()(
            void* list,
            uint32_t to,
            uint32_t from,
            int lane) const {
        const CodesOfVector<0, ListLayout::Interleaved> codes(
                list, from, numCodes, bits);
        const int64_t codeBytes = bits * (kListGroup / 8);
        auto* group = static_cast<uint8_t*>(list) +
                int64_t(to / kListGroup) * numCodes * codeBytes;
        const int bit = int(to % kListGroup) * bits;
        const int shift = bit % 8;
        const uint32_t mask = ((1u << bits) - 1) << shift;
        for (int i = lane; i < numCodes; i += kWarpSize) {
            const uint32_t code = codes(i) << shift;
            uint8_t* at = group + i * codeBytes + bit / 8;
            at[0] = uint8_t((at[0] & ~mask) | code);
            if (shift + bits > 8) {
                at[1] = uint8_t((at[1] & ~(mask >> 8)) | code >> 8);
            }
        }
    }
};

} // namespace faiss_bits

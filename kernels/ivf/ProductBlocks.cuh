/// Blocks of product codes (ListBlocks.cuh says what a class of blocks has).
#pragma once

#include <type_traits>

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/ivf/CodesOfFour.cuh"
#include "kernels/ivf/ListCodes.h"
#include "kernels/ivf/ListTables.cuh"

namespace faiss_bits {

/// Of product codes of 8 bits whose parts have kDims components, or where that
/// is 4 a multiple of them; d is a multiple of 4.
template <ListLayout kLayout, int kDims>
struct ProductBlocks {
    static constexpr int kParts = 4 / kDims; // of a block
    static constexpr int kBits = 8;
    static constexpr int kCodes = 1 << kBits;
    /// Components whose part of the codebook is in shared memory at a time:
    /// [kSliceDims / kDims, kCodes, kDims].
    static constexpr int kSliceDims = 16;
    static constexpr int kSliceFloats = kSliceDims * kCodes;

    const float* codebook;
    uint32_t partDims;
    uint32_t inverse;
    int numCodes;
    const uint8_t* from; // of the group, or of the first vector
    int g;
    int last; // of the four vectors, of those that are there
    int first;
    int left; // components from there on

    __device__ __forceinline__ ProductBlocks(
            const ProductDecoder& decoder,
            const IvfParams& params,
            const TilePlace& place,
            int i,
            int numVectors,
            int firstComponent)
            : codebook(decoder.codebook),
              partDims(decoder.partDims),
              inverse(decoder.inverse),
              numCodes(ProductDecoder::numCodes(params)),
              g(fourOfGroup(place, i)),
              first(firstComponent),
              left(params.d - first) {
        if constexpr (kLayout == ListLayout::Rows) {
            const int v = min(i, max(numVectors - 1, 0));
            last = max(min(numVectors - 1 - v, 3), 0);
            from = static_cast<const uint8_t*>(place.list) +
                    (place.first + v) * numCodes;
        } else {
            last = 3;
            from = codesOfGroup<kBits>(place, i, numCodes, 0);
        }
    }

    /// Whether a list is read so.
    __device__ __forceinline__ static bool suits(
            const ProductDecoder& decoder,
            const IvfParams& params,
            const TilePlace& place) {
        static_assert(kBits == 8 && (kDims == 4 || kDims == 2));
        return decoder.inverse != 0 &&
                areInBlocksOf(
                        kDims, decoder.bits, params.d, int(decoder.partDims)) &&
                reinterpret_cast<uintptr_t>(place.list) % sizeof(uint32_t) == 0;
    }

    /// Rows: a word of the codes of each vector. Interleaved: one of the codes
    /// of four vectors, of each part.
    struct Raw {
        uint32_t words[kLayout == ListLayout::Rows ? 4 : kParts] = {};
        bool isThere = false;
    };
    static constexpr int kWords = kLayout == ListLayout::Rows ? 4 : kParts;

    __device__ __forceinline__ Raw read(int offset) const {
        Raw raw;
        if (offset >= left) {
            return raw;
        }
        raw.isThere = true;
        const int part = partOf(first + offset);
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            if constexpr (kLayout == ListLayout::Interleaved) {
                raw.words[k] = CodesOfFour<kBits>::read(
                        from + (part + k) * CodesOfFour<kBits>::kGroupBytes, g);
            } else {
                const uint8_t* at =
                        from + int64_t(min(k, last)) * numCodes + part;
                if constexpr (kParts == 2) {
                    raw.words[k] = __ldg(reinterpret_cast<const uint16_t*>(at));
                } else {
                    raw.words[k] = __ldg(at);
                }
            }
        }
        return raw;
    }

    /// Looked up in the codebook where it lies.
    template <class Tables>
    __device__ __forceinline__ void decode(
            const Raw& raw,
            int offset,
            const Tables& tables,
            float4 (&x)[4]) const {
        const int c = first + offset;
        const int part = partOf(c);
        const float* rows = codebook + (int64_t(part) * kCodes) * dims() +
                (kDims == 4 ? c - part * int(partDims) : 0);
        decodeRows(raw, c, tables, x, [&](int k, uint32_t code) {
            const auto* row = reinterpret_cast<const Row*>(
                    rows + (uint32_t(k * kCodes) + code) * dims());
            return __ldg(row);
        });
    }

    /// Likewise, in the slice of components c / kSliceDims * kSliceDims and on,
    /// c = first + offset. Rows are anywhere: 32 of them take a read of the
    /// first-level cache 32 turns, and one of shared memory, by its banks, 6
    /// (of 8 bytes) or 11.
    template <class Tables>
    __device__ __forceinline__ void decode(
            const Raw& raw,
            int offset,
            const Tables& tables,
            float4 (&x)[4],
            const float* slice) const {
        const int c = first + offset;
        const auto* rows = reinterpret_cast<const Row*>(slice) +
                c % kSliceDims / kDims * kCodes;
        decodeRows(raw, c, tables, x, [&](int k, uint32_t code) {
            return rows[k * kCodes + code];
        });
    }

    /// Begins to copy the slice of components c and on, a multiple of
    /// kSliceDims, below d. kCodes threads call it.
    __device__ __forceinline__ void copySlice(int c, int d, float* slice)
            const {
        const uint32_t to =
                sharedAddress(slice) + threadIdx.x * uint32_t(sizeof(Row));
#pragma unroll
        for (int i = 0; i < kSliceDims / kDims; ++i) {
            const int at = c + i * kDims;
            if (at < d) {
                const int part = partOf(at);
                const float* row = codebook +
                        (int64_t(part) * kCodes + threadIdx.x) * dims() +
                        (kDims == 4 ? at - part * int(partDims) : 0);
                copyAsyncByL1<sizeof(Row)>(
                        to + i * kCodes * uint32_t(sizeof(Row)), row);
            }
        }
        endCopies();
    }

   private:
    using Row = std::conditional_t<kDims == 4, float4, float2>;

    /// rowOf(k, code): that of part k of the block.
    template <class Tables, class RowOf>
    __device__ __forceinline__ void decodeRows(
            const Raw& raw,
            int c,
            const Tables& tables,
            float4 (&x)[4],
            const RowOf& rowOf) const {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            x[k] = {0, 0, 0, 0};
        }
        if (!raw.isThere) {
            return;
        }
        float values[4][4]; // of vectors
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int k = 0; k < kParts; ++k) {
                const uint32_t code = kLayout == ListLayout::Rows
                        ? raw.words[j] >> (8 * k) & 0xff
                        : raw.words[k] >> (8 * j) & 0xff;
                const Row row = rowOf(k, code);
                values[j][kDims * k] = row.x;
                values[j][kDims * k + 1] = row.y;
                if constexpr (kDims == 4) {
                    values[j][2] = row.z;
                    values[j][3] = row.w;
                }
            }
        }
        const float4 centroids = tables.centroids(c);
        const float sums[4] = {
                centroids.x, centroids.y, centroids.z, centroids.w};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            x[k] = {__fadd_rn(values[0][k], sums[k]),
                    __fadd_rn(values[1][k], sums[k]),
                    __fadd_rn(values[2][k], sums[k]),
                    __fadd_rn(values[3][k], sums[k])};
        }
    }

    /// Of a part.
    __device__ __forceinline__ uint32_t dims() const {
        return kDims == 4 ? partDims : uint32_t(kDims);
    }

    __device__ __forceinline__ int partOf(int c) const {
        return kDims == 4 ? int(__umulhi(uint32_t(c), inverse)) : c / kDims;
    }
};

} // namespace faiss_bits

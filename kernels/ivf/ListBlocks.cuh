/// Blocks of four components of four vectors of a list, as estimates read them:
/// codes come in words, and are decoded in registers.
///
/// A class of blocks has
///
///     Raw                 what is read of a block, kWords registers
///     read(offset)        components c to c + 3, c = first + offset
///     decode(raw, offset, tables, x)
///                         x[i]: component c + i of the four vectors
///
/// `first` and offsets are multiples of four. Raw{} is what is not read: of
/// components behind the last, or of no vectors. Behind the last component
/// there are zeros; vectors that are not there have anything.
#pragma once

#include <cuda_fp16.h>

#include "kernels/ivf/ListTables.cuh"

namespace faiss_bits {

/// One by one, of any vectors.
template <class Vectors>
struct ListBlocks {
    Vectors vectors;
    TilePlace place;
    int i; // the first vector, from place.first on
    int numVectors;
    int first;
    int d;

    struct Raw {
        bool isThere = false;
    };
    static constexpr int kWords = 1;

    __device__ __forceinline__ Raw read(int) const {
        return {true};
    }
    template <class Tables>
    __device__ __forceinline__ void decode(
            const Raw& raw,
            int offset,
            const Tables&,
            float4 (&x)[4]) const {
        const int c = first + offset;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const auto at = [&](int j) {
                return raw.isThere && c + k < d && i + j < numVectors
                        ? vectors.vector(place, i + j)(c + k)
                        : 0.0f;
            };
            x[k] = {at(0), at(1), at(2), at(3)};
        }
    }
};

/// Of float32, a component of vectors side by side.
template <>
struct ListBlocks<FloatList<ListLayout::Interleaved>> {
    const float* from; // component `first`
    int left;          // components from there on

    __device__ __forceinline__ ListBlocks(
            const FloatList<ListLayout::Interleaved>&,
            const TilePlace& place,
            int i,
            int /*numVectors*/,
            int first,
            int d)
            : from(static_cast<const float*>(place.list) +
                   listPlace<ListLayout::Interleaved>(
                           place.first + i,
                           first,
                           d)),
              left(d - first) {}

    struct Raw {
        float4 x[4] = {};
    };
    static constexpr int kWords = 16;

    __device__ __forceinline__ Raw read(int offset) const {
        Raw raw;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if (offset + k < left) {
                raw.x[k] = __ldg(reinterpret_cast<const float4*>(
                        from + (offset + k) * kListGroup));
            }
        }
        return raw;
    }
    template <class Tables>
    __device__ __forceinline__ void decode(
            const Raw& raw,
            int,
            const Tables&,
            float4 (&x)[4]) const {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            x[k] = raw.x[k];
        }
    }
};

/// Codes of a component, or of a part, of four vectors: of kBits each, side by
/// side in groups of 32.
template <int kBits>
struct CodesOfFour {
    using Word = std::conditional_t<
            kBits == 16,
            uint2,
            std::conditional_t<kBits == 4, uint16_t, uint32_t>>;
    static constexpr int kGroupBytes = kBits * kListGroup / 8;

    /// Of vectors 4 g to 4 g + 3 of a group; `row` is where its codes of the
    /// component begin.
    __device__ __forceinline__ static Word read(const uint8_t* row, int g) {
        if constexpr (kBits == 6) {
            // Three bytes, in one word or in two.
            const auto* words = reinterpret_cast<const uint32_t*>(row);
            const int first = 3 * g / 4;
            const uint32_t low = __ldg(words + first);
            const uint32_t high =
                    __ldg(words + min(first + 1, kGroupBytes / 4 - 1));
            return __funnelshift_r(low, high, 3 * g % 4 * 8);
        } else {
            return __ldg(reinterpret_cast<const Word*>(row) + g);
        }
    }

    /// Code j, below 256, as a number.
    __device__ __forceinline__ static float number(uint32_t word, int j) {
        if constexpr (kBits == 8) {
            return numberOfBits(__byte_perm(word, kNumberBits, 0x7440 | j));
        } else {
            return numberOf(word >> (j * kBits) & ((1u << kBits) - 1));
        }
    }
};

/// The group of an interleaved vector: its codes from number `code` on.
template <int kBits>
__device__ __forceinline__ const uint8_t* codesOfGroup(
        const TilePlace& place,
        int i,
        int numCodes,
        int code) {
    const int64_t group = (place.first + i) / kListGroup;
    return static_cast<const uint8_t*>(place.list) +
            (group * numCodes + code) * CodesOfFour<kBits>::kGroupBytes;
}

/// 4 g is the vector's number in its group.
__device__ __forceinline__ int fourOfGroup(const TilePlace& place, int i) {
    return int(place.first + i) % kListGroup / 4;
}

/// Of codes of every component.
template <ListCoding kCoding>
requires(isScalar(kCoding) || kCoding == ListCoding::Float16) struct ListBlocks<
        DecodedList<kCoding, ListLayout::Interleaved>> {
    static constexpr int kBits = codeBitsOf(kCoding, ListLayout::Interleaved);
    using Codes = CodesOfFour<kBits>;

    const uint8_t* from; // codes of component `first`
    int g;
    int first;
    int left; // components from there on

    __device__ __forceinline__ ListBlocks(
            const DecodedList<kCoding, ListLayout::Interleaved>&,
            const TilePlace& place,
            int i,
            int /*numVectors*/,
            int first,
            int d)
            : from(codesOfGroup<kBits>(place, i, d, first)),
              g(fourOfGroup(place, i)),
              first(first),
              left(d - first) {}

    struct Raw {
        typename Codes::Word words[4] = {};
    };
    static constexpr int kWords = kBits == 16 ? 8 : 4;

    __device__ __forceinline__ Raw read(int offset) const {
        Raw raw;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if (offset + k < left) {
                raw.words[k] = Codes::read(
                        from + (offset + k) * Codes::kGroupBytes, g);
            }
        }
        return raw;
    }
    template <class Tables>
    __device__ __forceinline__ void decode(
            const Raw& raw,
            int offset,
            const Tables& tables,
            float4 (&x)[4]) const {
        const int c = first + offset;
        const float4 centroids = tables.centroids(c);
        const float sums[4] = {
                centroids.x, centroids.y, centroids.z, centroids.w};
        if constexpr (kCoding == ListCoding::Float16) {
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const auto two = [&](uint32_t word) {
                    return __half22float2(
                            *reinterpret_cast<const __half2*>(&word));
                };
                const float2 low = two(raw.words[k].x);
                const float2 high = two(raw.words[k].y);
                x[k] = {__fadd_rn(low.x, sums[k]),
                        __fadd_rn(low.y, sums[k]),
                        __fadd_rn(high.x, sums[k]),
                        __fadd_rn(high.y, sums[k])};
            }
        } else {
            const float4 start = tables.starts(c);
            const float4 step = tables.steps(c);
            const float starts[4] = {start.x, start.y, start.z, start.w};
            const float steps[4] = {step.x, step.y, step.z, step.w};
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const auto at = [&](int j) {
                    return __fadd_rn(
                            __fmaf_rn(
                                    Codes::number(raw.words[k], j),
                                    steps[k],
                                    starts[k]),
                            sums[k]);
                };
                x[k] = {at(0), at(1), at(2), at(3)};
            }
        }
    }
};

/// Of product codes of 8 bits whose parts have kDims components, or where that
/// is 4 a multiple of them; d is a multiple of 4.
template <ListLayout kLayout, int kDims>
struct ProductBlocks {
    static constexpr int kParts = 4 / kDims; // of a block
    static constexpr int kBits = 8;
    static constexpr int kCodes = 1 << kBits;

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
        return decoder.bits == kBits && decoder.inverse != 0 &&
                params.d % 4 == 0 &&
                (kDims == 4 ? decoder.partDims % 4 == 0
                            : decoder.partDims == kDims) &&
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

    template <class Tables>
    __device__ __forceinline__ void decode(
            const Raw& raw,
            int offset,
            const Tables& tables,
            float4 (&x)[4]) const {
        const int c = first + offset;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            x[k] = {0, 0, 0, 0};
        }
        if (!raw.isThere) {
            return;
        }
        const int part = partOf(c);
        const float* rows = codebook + (int64_t(part) * kCodes) * partDims +
                (kDims == 4 ? c - part * int(partDims) : 0);
        float values[4][4]; // of vectors
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int k = 0; k < kParts; ++k) {
                const uint32_t code = kLayout == ListLayout::Rows
                        ? raw.words[j] >> (8 * k) & 0xff
                        : raw.words[k] >> (8 * j) & 0xff;
                const float* row =
                        rows + (uint32_t(k * kCodes) + code) * partDims;
                if constexpr (kDims == 4) {
                    const float4 four =
                            __ldg(reinterpret_cast<const float4*>(row));
                    values[j][0] = four.x;
                    values[j][1] = four.y;
                    values[j][2] = four.z;
                    values[j][3] = four.w;
                } else {
                    const float2 two =
                            __ldg(reinterpret_cast<const float2*>(row));
                    values[j][2 * k] = two.x;
                    values[j][2 * k + 1] = two.y;
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

   private:
    __device__ __forceinline__ int partOf(int c) const {
        return kDims == 4 ? int(__umulhi(uint32_t(c), inverse)) : c / kDims;
    }
};

/// Calls body(blocks) for vectors i to i + 3 from place.first on, of which
/// numVectors are there, and components from `first` on. i is a multiple of
/// four, and place.first of interleaved lists one of 32.
template <class Vectors, class Body>
__device__ __forceinline__ void withBlocks(
        const Vectors& vectors,
        const TilePlace& place,
        int i,
        int numVectors,
        const IvfParams& params,
        int first,
        const Body& body) {
    if constexpr (Vectors::kCoding == ListCoding::Product) {
        const ProductDecoder decoder(params);
        const auto tryDims = [&]<int kDims>() {
            using Blocks = ProductBlocks<Vectors::kLayout, kDims>;
            if (!Blocks::suits(decoder, params, place)) {
                return false;
            }
            body(Blocks(decoder, params, place, i, numVectors, first));
            return true;
        };
        if (tryDims.template operator()<4>() ||
            tryDims.template operator()<2>()) {
            return;
        }
    }
    body(ListBlocks<Vectors>{vectors, place, i, numVectors, first, params.d});
}

} // namespace faiss_bits

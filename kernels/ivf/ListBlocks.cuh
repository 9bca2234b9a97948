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

#include "kernels/ivf/CodesOfFour.cuh"
#include "kernels/ivf/ListTables.cuh"
#include "kernels/ivf/ProductBlocks.cuh"

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

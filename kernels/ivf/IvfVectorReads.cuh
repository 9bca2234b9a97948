/// What a lane reads of its four vectors of a warp's 32: components, less those
/// of the center, and sums of squares.
///
/// Vectors 4 g to 4 g + 3 are those of lanes 4 g to 4 g + 3, which have four
/// components of every sixteen each (ListBlocks.cuh).
#pragma once

#include "kernels/ivf/IvfEstimateTerms.cuh"
#include "kernels/ivf/ListBlocks.cuh"

namespace faiss_bits {

/// Of no state.
struct IvfVectorReads {
    /// Of this lane's four, among the warp's.
    __device__ __forceinline__ static int firstVector() {
        return int(threadIdx.x) % kWarpSize / 4 * 4;
    }

    /// The first of a lane's four components of 16. The two products of eight
    /// that a matrix instruction sums have 4 t and 4 t + 1, and 4 t + 2 and 4 t
    /// + 3, as queries have them (IvfQueryTiles.cuh).
    __device__ __forceinline__ static int component() {
        return int(threadIdx.x) % 4 * 4;
    }

    /// Whether codes are looked up in shared memory.
    template <class Blocks>
    static constexpr bool kHasSlices = requires {
        Blocks::kSliceDims;
    };

    /// Blocks that are on their way while one is decoded: there are few
    /// registers besides the values.
    template <class Blocks>
    static constexpr int kWordsAhead = kHasSlices<Blocks> ? 8
            : Blocks::kWords == 16                        ? 32
                                                          : 16;
    template <class Blocks>
    __device__ __forceinline__ static typename Blocks::Raw readOf(
            const Blocks& blocks,
            int offset,
            int numVectors) {
        if (numVectors > 0) {
            return blocks.read(offset);
        }
        return {};
    }

    /// Less the center, which has component c where blocks have `offset`;
    /// body(i, r): component i of the block.
    template <class Blocks, class Tables, class Body, class... Slice>
    __device__ __forceinline__ static void decode(
            const Blocks& blocks,
            const typename Blocks::Raw& raw,
            int offset,
            int c,
            const Tables& tables,
            const Body& body,
            const Slice&... slice) {
        float4 x[4];
        blocks.decode(raw, offset, tables, x, slice...);
        const float4 four = tables.centers(c);
        const float centers[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            body(i,
                 float4{x[i].x - centers[i],
                        x[i].y - centers[i],
                        x[i].z - centers[i],
                        x[i].w - centers[i]});
        }
    }

    __device__ __forceinline__ static void addSquares(
            float (&squares)[4],
            const float4& r) {
        squares[0] = __fmaf_rn(r.x, r.x, squares[0]);
        squares[1] = __fmaf_rn(r.y, r.y, squares[1]);
        squares[2] = __fmaf_rn(r.z, r.z, squares[2]);
        squares[3] = __fmaf_rn(r.w, r.w, squares[3]);
    }

    /// Of components `begin` to begin + 15; blocks begin at component().
    template <class Blocks, class Tables, class... Slice>
    __device__ __forceinline__ static void addSquares(
            const Blocks& blocks,
            int begin,
            int numVectors,
            const Tables& tables,
            float (&squares)[4],
            const Slice&... slice) {
        decode(
                blocks,
                readOf(blocks, begin, numVectors),
                begin,
                begin + component(),
                tables,
                [&](int, const float4& r) { addSquares(squares, r); },
                slice...);
    }

    /// Sums over the four lanes of a vector; the greatest of the warp's that
    /// has a bound.
    __device__ __forceinline__ static float greatestOf(
            float (&squares)[4],
            int numVectors) {
        float most = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int distance = 1; distance < 4; distance *= 2) {
                squares[j] += __shfl_xor_sync(kFullWarp, squares[j], distance);
            }
            if (firstVector() + j < numVectors &&
                squares[j] <= ivf_estimate::kGreatest) {
                most = fmaxf(most, squares[j]);
            }
        }
#pragma unroll
        for (int distance = 4; distance < kWarpSize; distance *= 2) {
            most = fmaxf(most, __shfl_xor_sync(kFullWarp, most, distance));
        }
        return most;
    }
};

} // namespace faiss_bits

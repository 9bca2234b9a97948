/// Distances of a warp's pairs from their sums of products of digits.
#pragma once

#include "kernels/canonical/Distance.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/knn/all_pairs/digits/DigitEstimate.cuh"
#include "kernels/knn/all_pairs/digits/DigitPairs.h"

namespace faiss_bits {

/// kLevels: of DigitEstimate.
template <Metric kMetric, int kLevels>
struct DigitDistances {
    using Layout = DigitImageLayout;
    using Estimate = DigitEstimate<kMetric, kLevels>;

    static constexpr int kSums = 32; // of a level, of a thread
    /// Unsure pairs of a warp, which has 16 x 64: more leave the tile
    /// to products of float64.
    static constexpr int kMostUnsure = 64;

    const DigitPairsParams& params;

    /// The distances that the sums say, and which ones they do not.
    __device__ __forceinline__ void write(
            uint32_t firstRow,
            uint32_t firstVector,
            int warp,
            const DigitRow* queryRows,
            const DigitRow* vectorRows,
            const int32_t (&sums)[kLevels][kSums]) const {
        const int lane = threadIdx.x % kWarpSize;
        const int rowInTile = warp * 16 + lane / 4;
        const int vectorInTile = lane % 4 * 2;
        const uint32_t row = firstRow + rowInTile;
        const uint32_t vector = firstVector + vectorInTile;
        vectorRows += vectorInTile;
        const DigitRow queries[2] = {
                queryRows[rowInTile], queryRows[rowInTile + 8]};
        bool areExact = false;
        if constexpr (kMetric == Metric::L2) {
            areExact = haveExactSums(queries, vectorRows);
        }
        const float relative = __double2float_ru(
                EstimateRow<kMetric>::relativeError(params.search.d, areExact));
        uint32_t unsure = 0;
#pragma unroll
        for (int j = 0; j < kSums / 4; ++j) {
            float values[2][2];
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                const DigitRow x = vectorRows[8 * j + c];
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int at = 4 * j + 2 * r + c;
                    const Estimate pair(
                            digitSum(
                                    sums[0][at],
                                    sums[1][at],
                                    sums[2][at],
                                    sums[3][at],
                                    sums[4][at]),
                            queries[r],
                            x,
                            relative);
                    const bool isSure = pair.isSure();
                    values[r][c] = canonical::toFloat32(pair.value);
                    if constexpr (kMarksUnsure<kMetric>) {
                        values[r][c] = isSure ? values[r][c] : NAN;
                    }
                    unsure |= isSure ? 0u : 1u << at;
                }
            }
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                if (row + 8 * r < params.search.rows &&
                    vector + 8 * j < params.search.n) {
                    *reinterpret_cast<float2*>(
                            params.distances +
                            int64_t(row + 8 * r) * params.stride + vector +
                            8 * j) = make_float2(values[r][0], values[r][1]);
                }
            }
        }
        if (__any_sync(kFullWarp, unsure != 0)) {
            unsure = leftOf(unsure, row, vector, queries, vectorRows);
        }
        const uint32_t count = __reduce_add_sync(kFullWarp, __popc(unsure));
        if (count > 0) {
            list(unsure, count, firstRow, firstVector, row, vector);
        }
    }

   private:
    /// Those that are there, without those of rows that are not finite whose
    /// distance is known by that: it is written.
    __device__ __forceinline__ uint32_t
    leftOf(uint32_t unsure,
           uint32_t row,
           uint32_t vector,
           const DigitRow (&queries)[2],
           const DigitRow* vectorRows) const {
        uint32_t left = 0;
        for (; unsure != 0; unsure &= unsure - 1) {
            const int bit = __ffs(unsure) - 1;
            const bool isSecond = bit / 2 % 2 > 0;
            const uint32_t r = row + (isSecond ? 8 : 0);
            const int column = bit / 4 * 8 + bit % 2;
            if (r >= params.search.rows || vector + column >= params.search.n) {
                continue;
            }
            const DigitRow& q = isSecond ? queries[1] : queries[0];
            float known = 0;
            if (Estimate::isKnown(q, vectorRows[column], known)) {
                params.distances[r * params.stride + vector + column] = known;
            } else {
                left |= 1u << bit;
            }
        }
        return left;
    }

    /// Whether the sums of all pairs of the warp are exact: nothing is lost of
    /// the rows, and their units are not so far apart that float64 is short.
    __device__ __forceinline__ bool haveExactSums(
            const DigitRow (&queries)[2],
            const DigitRow* vectorRows) const {
        constexpr int kMostApart = 2; // exponents, from the first
        const int ref = __shfl_sync(kFullWarp, exponentOf(queries[0].scale), 0);
        bool isExact = true;
        const auto meet = [&](const DigitRow& row) {
            isExact = isExact && row.rest == 0 &&
                    (row.scale == 0 ||
                     abs(exponentOf(row.scale) - ref) <= kMostApart);
        };
        meet(queries[0]);
        meet(queries[1]);
        for (int j = 0; j < kSums / 4 && isExact; ++j) {
            meet(vectorRows[8 * j]);
            meet(vectorRows[8 * j + 1]);
        }
        return __all_sync(kFullWarp, isExact);
    }

    __device__ __forceinline__ static int exponentOf(double value) {
        return __double2hiint(value) >> 20;
    }

    __device__ __forceinline__ void list(
            uint32_t unsure,
            uint32_t count,
            uint32_t firstRow,
            uint32_t firstVector,
            uint32_t row,
            uint32_t vector) const {
        const UnsurePairList& to = params.unsure;
        const int lane = threadIdx.x % kWarpSize;
        uint32_t at = 0;
        if (lane == 0) {
            at = count > kMostUnsure ? to.capacity
                                     : atomicAdd(&to.counts[0], count);
            if (at + count > to.capacity) {
                const uint32_t rowTiles =
                        (params.search.rows + Layout::kTileRows - 1) /
                        Layout::kTileRows;
                const uint32_t tile =
                        firstVector / Layout::kTileRows * rowTiles +
                        firstRow / Layout::kTileRows;
                if (atomicExch(&to.marks[tile], 1) == 0) {
                    to.tiles[atomicAdd(&to.counts[1], 1)] = tile;
                }
            }
        }
        at = __shfl_sync(kFullWarp, at, 0);
        // What there is room for, though the tile may be listed too.
        uint32_t mine = __popc(unsure);
#pragma unroll
        for (int distance = 1; distance < kWarpSize; distance *= 2) {
            const uint32_t other = __shfl_up_sync(kFullWarp, mine, distance);
            mine += lane >= distance ? other : 0;
        }
        at += mine - __popc(unsure);
        for (; unsure != 0 && at < to.capacity; unsure &= unsure - 1, ++at) {
            const int bit = __ffs(unsure) - 1;
            to.pairs[at] = make_uint2(
                    row + bit / 2 % 2 * 8, vector + bit / 4 * 8 + bit % 2);
        }
    }
};

} // namespace faiss_bits

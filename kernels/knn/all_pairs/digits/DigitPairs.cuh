/// Products of digits on Hopper. One thread of a warpgroup copies; two
/// warpgroups multiply 64 queries and 64 vectors each. Products of digits i and
/// j are summed in int32 by i + j, which is 4 at most: 13 of four digits, 15 of
/// five, fewer where rows have only one or two. The five sums become one number
/// of float64, exactly but for a part of the last, and with the rows' norms two
/// bounds of the canonical distance.
///
/// Bound by: not profiled; reads of shared memory by products of 64 x 64, and
/// of L2, are near their limits.
#pragma once

#include "kernels/canonical/Distance.h"
#include "kernels/common/DependentLaunch.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/knn/all_pairs/digits/DigitEstimate.cuh"
#include "kernels/knn/all_pairs/digits/DigitPairs.h"
#include "kernels/knn/all_pairs/digits/DigitProduct.cuh"
#include "kernels/knn/fused/tensor/BulkPipeline.cuh"
#include "kernels/knn/fused/tensor/Wgmma.cuh"

namespace faiss_bits {

/// Of images of kDigits digits.
template <int kDigits>
struct DigitPairs {
    using Layout = DigitImageLayout;
    using Row = EstimateRow<Metric::L2>;

    static constexpr int kGroups = 2;
    static constexpr int kThreads = 128 * (kGroups + 1);
    static constexpr int kSlabBytes = kDigits * Layout::kDigitBytes;
    static constexpr int kStageBytes = (kGroups + 1) * kSlabBytes;
    static constexpr int kStages = 220 * 1024 / kStageBytes;
    static constexpr int kLevels = 5;
    static constexpr int kSums = 32; // of a level, of a thread
    /// Unsure pairs of a warp, which has 16 x 64: more leave the tile
    /// to LeftTiles.cu.
    static constexpr int kMostUnsure = 64;
    static_assert(kDigitQueries == kGroups * Layout::kTileRows);

    struct SharedStorage {
        alignas(1024) uint8_t stages[kStages][kStageBytes];
        uint64_t full[kStages];
        uint64_t empty[kStages];
    };

    SharedStorage& shared;
    const DigitPairsParams& params;

    __device__ __forceinline__ void run() {
        if (threadIdx.x == 0) {
            initRing(shared.full, shared.empty, kStages, 4 * kGroups);
            fenceBarrierInit();
        }
        __syncthreads();
        waitForPrevious();
        const uint32_t used = max(*params.queries.used, *params.vectors.used);
        if (threadIdx.x < 128) {
            wgmma::lowerRegisters<40>();
            if (threadIdx.x == 0) {
                copy(used <= 2 ? used : kDigits);
            }
        } else {
            wgmma::raiseRegisters<232>();
            consume(used);
        }
    }

   private:
    /// Calls take(tile of queries, tile of vectors) for what is the block's.
    /// Tiles of the same vectors side by side.
    template <class Take>
    __device__ __forceinline__ void forTiles(const Take& take) const {
        const uint32_t rowTiles =
                (params.rows + kDigitQueries - 1) / kDigitQueries;
        const uint32_t tiles = rowTiles *
                uint32_t((params.n + kDigitVectors - 1) / kDigitVectors);
        for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            take(tile % rowTiles, tile / rowTiles);
        }
    }

    /// The first digits; one thread calls it.
    __device__ __forceinline__ void copy(int digits) const {
        constexpr int kBytes = kSlabBytes;
        const uint32_t bytes = max(digits, 1) * Layout::kDigitBytes;
        RingPlace stage;
        forTiles([&](uint32_t rowTile, uint32_t vectorTile) {
            const size_t tileBytes = size_t(params.slabs) * kBytes;
            const uint8_t* queries =
                    params.queries.pieces + rowTile * kGroups * tileBytes;
            const uint8_t* vectors =
                    params.vectors.pieces + vectorTile * tileBytes;
            for (int slab = 0; slab < params.slabs; ++slab) {
                uint64_t* barrier = &shared.full[stage.at];
                waitFor(&shared.empty[stage.at], stage.parity ^ 1);
                arriveExpecting(barrier, (kGroups + 1) * bytes);
                uint8_t* to = shared.stages[stage.at];
                const size_t at = size_t(slab) * kBytes;
#pragma unroll
                for (int g = 0; g < kGroups; ++g) {
                    copyBulk(
                            to + g * kBytes,
                            queries + g * tileBytes + at,
                            bytes,
                            barrier);
                }
                copyBulk(to + kGroups * kBytes, vectors + at, bytes, barrier);
                stage.next(kStages);
            }
        });
    }

    __device__ __forceinline__ void consume(uint32_t used) const {
        // From lane 0, so that the compiler knows it to be the same in all.
        const int warp =
                __shfl_sync(kFullWarp, int(threadIdx.x) / kWarpSize - 4, 0);
        const int group = warp / 4;
        int32_t sums[kLevels][kSums];
        RingPlace stage;
        forTiles([&](uint32_t rowTile, uint32_t vectorTile) {
        // Old sums end here.
#pragma unroll
            for (int level = 0; level < kLevels; ++level) {
#pragma unroll
                for (int32_t& sum : sums[level]) {
                    sum = 0;
                }
            }
            if (used <= 1) {
                multiply<1>(group, stage, sums);
            } else if (used == 2) {
                multiply<2>(group, stage, sums);
            } else {
                multiply<kDigits>(group, stage, sums);
            }
            const uint32_t firstRow =
                    rowTile * kDigitQueries + group * Layout::kTileRows;
            if (firstRow < params.rows) {
                write(firstRow, vectorTile * kDigitVectors, warp % 4, sums);
            }
        });
    }

    /// The first kUsed digits of a tile.
    template <int kUsed>
    __device__ __forceinline__ void multiply(
            int group,
            RingPlace& stage,
            int32_t (&sums)[kLevels][kSums]) const {
        constexpr int kSteps = Layout::kSlabComponents / 32;
        constexpr int kDigitStep = Layout::kDigitBytes / 16;
        int before = 0;
        for (int slab = 0; slab < params.slabs; ++slab) {
            waitFor(&shared.full[stage.at], stage.parity);
            const uint32_t at = sharedAddress(shared.stages[stage.at]);
            const uint64_t a = wgmma::descriptor<64>(at + group * kSlabBytes);
            const uint64_t b = wgmma::descriptor<64>(at + kGroups * kSlabBytes);
            wgmma::fence();
#pragma unroll
            for (int step = 0; step < kSteps; ++step) {
#pragma unroll
                for (int i = 0; i < kUsed; ++i) {
#pragma unroll
                    for (int j = 0; j < kUsed; ++j) {
                        if (i + j < kLevels) {
                            multiplyDigits(
                                    sums[i + j],
                                    a + 2 * step + i * kDigitStep,
                                    b + 2 * step + j * kDigitStep);
                        }
                    }
                }
            }
            wgmma::commit();
            // The slab before has been read.
            if (slab > 0) {
                wgmma::wait<1>();
                release(before);
            }
            before = stage.at;
            stage.next(kStages);
        }
        wgmma::wait<0>();
        release(before);
    }

    /// Each warp for itself.
    __device__ __forceinline__ void release(int stage) const {
        __syncwarp();
        if (threadIdx.x % kWarpSize == 0) {
            arrive(&shared.empty[stage]);
        }
    }

    /// The distances that the sums say, and which ones they do not.
    __device__ __forceinline__ void write(
            uint32_t firstRow,
            uint32_t firstVector,
            int warp,
            const int32_t (&sums)[kLevels][kSums]) const {
        const int lane = threadIdx.x % kWarpSize;
        const uint32_t row = firstRow + warp * 16 + lane / 4;
        const uint32_t vector = firstVector + lane % 4 * 2;
        const DigitRow queries[2] = {
                params.queries.rows[row], params.queries.rows[row + 8]};
        const double relative = relativeError(queries, vector);
        const Row rows[2] = {
                Row(queries[0].size, relative), Row(queries[1].size, relative)};
        uint32_t unsure = 0;
#pragma unroll
        for (int j = 0; j < kSums / 4; ++j) {
            float values[2][2];
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                const uint32_t v = vector + 8 * j + c;
                const DigitRow x = params.vectors.rows[v];
                const Row xRow(x.size, relative);
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int at = 4 * j + 2 * r + c;
                    const DigitEstimate pair(
                            digitSum(
                                    sums[0][at],
                                    sums[1][at],
                                    sums[2][at],
                                    sums[3][at],
                                    sums[4][at]),
                            queries[r],
                            rows[r],
                            x,
                            xRow);
                    values[r][c] = canonical::toFloat32(pair.least);
                    const bool isThere =
                            row + 8 * r < params.rows && v < params.n;
                    unsure |= isThere && !pair.isSure() ? 1u << at : 0u;
                }
            }
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                if (row + 8 * r < params.rows && vector + 8 * j < params.n) {
                    *reinterpret_cast<float2*>(
                            params.distances +
                            int64_t(row + 8 * r) * params.stride + vector +
                            8 * j) = make_float2(values[r][0], values[r][1]);
                }
            }
        }
        const uint32_t count = __reduce_add_sync(kFullWarp, __popc(unsure));
        if (count > 0) {
            list(unsure, count, firstRow, firstVector, row, vector);
        }
    }

    /// 0 where the sums of all pairs of the warp are exact: nothing is lost of
    /// the rows, and their units are not so far apart that float64 is short.
    __device__ __forceinline__ double relativeError(
            const DigitRow (&queries)[2],
            uint32_t vector) const {
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
            meet(params.vectors.rows[vector + 8 * j]);
            meet(params.vectors.rows[vector + 8 * j + 1]);
        }
        return Row::relativeError(params.d, __all_sync(kFullWarp, isExact));
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
                        (params.rows + Layout::kTileRows - 1) /
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

template <int kDigits>
__global__ void __launch_bounds__(DigitPairs<kDigits>::kThreads, 1)
        digitPairsKernel(const __grid_constant__ DigitPairsParams params) {
    extern __shared__ __align__(1024) uint8_t memory[];
    using Pairs = DigitPairs<kDigits>;
    Pairs{*reinterpret_cast<typename Pairs::SharedStorage*>(memory), params}
            .run();
}

} // namespace faiss_bits

/// Products of digits on Hopper. One thread of a warpgroup copies; two
/// warpgroups multiply 64 queries and 64 vectors each. Products of digits i and
/// j are summed in int32 by i + j, which is 4 at most, or 5 of inner products
/// and cosines, whose sums may be near 0: of four digits 13 or 15, of five 15
/// or 19, fewer where rows have less digits. The sums become one number of
/// float64, exactly but for a part of the last, and with the rows' norms two
/// bounds of the canonical distance.
///
/// Bound by: products, where rows are long (docs/design/flat_digits.md).
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/all_pairs/digits/DigitDistances.cuh"
#include "kernels/knn/all_pairs/digits/DigitProduct.cuh"
#include "kernels/knn/fused/tensor/BulkPipeline.cuh"
#include "kernels/knn/fused/tensor/Wgmma.cuh"

namespace faiss_bits {

/// Of images of kDigits digits.
template <Metric kMetric, int kDigits>
struct DigitPairs {
    using Layout = DigitImageLayout;

    static constexpr int kGroups = 2;
    static constexpr int kThreads = 128 * (kGroups + 1);
    static constexpr int kSlabBytes = kDigits * Layout::kDigitBytes;
    static constexpr int kStageBytes = (kGroups + 1) * kSlabBytes;
    static constexpr int kStages = 220 * 1024 / kStageBytes;
    /// Slabs of the first warpgroup before the second begins: the ring has one
    /// more.
    static constexpr int kAhead = kStages - 1;
    static constexpr int kTiles = 2; // whose rows are there
    static constexpr int kLevels = kMetric == Metric::L2 ? 5 : 6;
    using Distances = DigitDistances<kMetric, kLevels>;
    static constexpr int kSums = Distances::kSums;
    // Registers of a thread that copies, and of one that multiplies.
    static constexpr int kFew = 24;
    static constexpr int kMany = 240;
    static_assert(kDigitQueries == kGroups * Layout::kTileRows);

    struct SharedStorage {
        alignas(1024) uint8_t stages[kStages][kStageBytes];
        /// What is known of a tile's rows: its queries, then its vectors.
        alignas(16) DigitRow rows[kTiles][kDigitQueries + kDigitVectors];
        uint64_t full[kStages];
        uint64_t empty[kStages];
        uint64_t rowsFull[kTiles];
        uint64_t rowsEmpty[kTiles];
    };

    SharedStorage& shared;
    const DigitPairsParams& params;

    __device__ __forceinline__ void run() {
        if (threadIdx.x == 0) {
            initRing(shared.full, shared.empty, kStages, 4 * kGroups);
            initRing(shared.rowsFull, shared.rowsEmpty, kTiles, 4 * kGroups);
            fenceBarrierInit();
        }
        __syncthreads();
        waitForPrevious();
        const uint32_t used = max(*params.queries.used, *params.vectors.used);
        if (threadIdx.x < 128) {
            wgmma::lowerRegisters<kFew>();
            if (threadIdx.x == 0) {
                copy(used);
            }
        } else {
            wgmma::raiseRegisters<kMany>();
            consumeDigits(used);
        }
    }

   private:
    /// Calls take(tile of queries, tile of vectors) for what is the block's.
    /// Tiles of the same vectors side by side.
    template <class Take>
    __device__ __forceinline__ void forTiles(const Take& take) const {
        const uint32_t rowTiles =
                (params.search.rows + kDigitQueries - 1) / kDigitQueries;
        const uint32_t tiles = rowTiles *
                uint32_t((params.search.n + kDigitVectors - 1) / kDigitVectors);
        for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            take(tile % rowTiles, tile / rowTiles);
        }
    }

    /// The first digits; one thread calls it.
    __device__ __forceinline__ void copy(int digits) const {
        constexpr int kBytes = kSlabBytes;
        const uint32_t bytes = max(digits, 1) * Layout::kDigitBytes;
        RingPlace stage;
        RingPlace tile;
        forTiles([&](uint32_t rowTile, uint32_t vectorTile) {
            copyRows(tile.at, tile.parity, rowTile, vectorTile);
            tile.next(kTiles);
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

    __device__ __forceinline__ void copyRows(
            int at,
            uint32_t parity,
            uint32_t rowTile,
            uint32_t vectorTile) const {
        DigitRow* to = shared.rows[at];
        uint64_t* barrier = &shared.rowsFull[at];
        waitFor(&shared.rowsEmpty[at], parity ^ 1);
        arriveExpecting(barrier, sizeof(shared.rows[at]));
        copyBulk(
                to,
                params.queries.rows + rowTile * kDigitQueries,
                kDigitQueries * sizeof(DigitRow),
                barrier);
        copyBulk(
                to + kDigitQueries,
                params.vectors.rows + vectorTile * kDigitVectors,
                kDigitVectors * sizeof(DigitRow),
                barrier);
    }

    /// As many digits as rows have, so that none is multiplied in vain.
    template <int kUsed = 1>
    __device__ __forceinline__ void consumeDigits(uint32_t used) const {
        if constexpr (kUsed < kDigits) {
            if (used > kUsed) {
                return consumeDigits<kUsed + 1>(used);
            }
        }
        consume<kUsed>();
    }

    /// Of the first kUsed digits.
    template <int kUsed>
    __device__ __forceinline__ void consume() const {
        // From lane 0, so that the compiler knows it to be the same in all.
        const int warp =
                __shfl_sync(kFullWarp, int(threadIdx.x) / kWarpSize - 4, 0);
        const int group = warp / 4;
        int32_t sums[kLevels][kSums];
        RingPlace stage;
        RingPlace tile;
        int ahead = 0; // slabs of the first warpgroup, up to kAhead
        if (group > 0) {
            waitForOther();
        }
        forTiles([&](uint32_t rowTile, uint32_t vectorTile) {
        // Old sums end here.
#pragma unroll
            for (int level = 0; level < kLevels; ++level) {
#pragma unroll
                for (int32_t& sum : sums[level]) {
                    sum = 0;
                }
            }
            multiply<kUsed>(group, stage, ahead, sums);
            if constexpr (kLevels > 5) {
                // By half of one of the level before, of which 2^8 are one.
#pragma unroll
                for (int i = 0; i < kSums; ++i) {
                    sums[4][i] += (sums[5][i] + 128) >> 8;
                }
            }
            const uint32_t firstRow =
                    rowTile * kDigitQueries + group * Layout::kTileRows;
            waitFor(&shared.rowsFull[tile.at], tile.parity);
            if (firstRow < params.search.rows) {
                Distances{params}.write(
                        firstRow,
                        vectorTile * kDigitVectors,
                        warp % 4,
                        shared.rows[tile.at] + group * Layout::kTileRows,
                        shared.rows[tile.at] + kDigitQueries,
                        sums);
            }
            __syncwarp();
            if (threadIdx.x % kWarpSize == 0) {
                arrive(&shared.rowsEmpty[tile.at]);
            }
            tile.next(kTiles);
        });
        if (group == 0 && ahead < kAhead) {
            letOtherBegin();
        }
    }

    /// The first kUsed digits of a tile.
    template <int kUsed>
    __device__ __forceinline__ void multiply(
            int group,
            RingPlace& stage,
            int& ahead,
            int32_t (&sums)[kLevels][kSums]) const {
        constexpr int kSteps = Layout::kSlabComponents / kDigitStep;
        static_assert(kSteps == 2);
        int before = -1;
        const auto slab = [&]<int kOfSlab> {
            waitFor(&shared.full[stage.at], stage.parity);
            const uint32_t at = sharedAddress(shared.stages[stage.at]);
            const uint64_t a = wgmma::descriptor<64>(at + group * kSlabBytes);
            const uint64_t b = wgmma::descriptor<64>(at + kGroups * kSlabBytes);
            wgmma::fence();
#pragma unroll
            for (int step = 0; step < kOfSlab; ++step) {
                multiplyStep<kUsed>(a + 2 * step, b + 2 * step, sums);
            }
            wgmma::commit();
            if (before >= 0) {
                wgmma::wait<1>();
                release(before);
                countAhead(group, ahead);
            }
            before = stage.at;
            stage.next(kStages);
        };
        // The second half of the last slab may have zeros alone.
        const int steps = (params.search.d + kDigitStep - 1) / kDigitStep;
        for (int i = 0; i < steps / kSteps; ++i) {
            slab.template operator()<kSteps>();
        }
        if (steps % kSteps > 0) {
            slab.template operator()<1>();
        }
        wgmma::wait<0>();
        release(before);
        countAhead(group, ahead);
    }

    template <int kUsed>
    __device__ __forceinline__ static void multiplyStep(
            uint64_t a,
            uint64_t b,
            int32_t (&sums)[kLevels][kSums]) {
        constexpr int kNext = Layout::kDigitBytes / 16; // digit
#pragma unroll
        for (int i = 0; i < kUsed; ++i) {
#pragma unroll
            for (int j = 0; j < kUsed; ++j) {
                if (i + j < kLevels) {
                    multiplyDigits(sums[i + j], a + i * kNext, b + j * kNext);
                }
            }
        }
    }

    /// The first warpgroup goes some slabs ahead, so that one multiplies while
    /// the other writes.
    __device__ __forceinline__ static void countAhead(int group, int& ahead) {
        if (group == 0 && ahead < kAhead && ++ahead == kAhead) {
            letOtherBegin();
        }
    }

    __device__ __forceinline__ static void letOtherBegin() {
        asm volatile("bar.arrive 1, %0;" ::"n"(128 * kGroups) : "memory");
    }

    __device__ __forceinline__ static void waitForOther() {
        asm volatile("bar.sync 1, %0;" ::"n"(128 * kGroups) : "memory");
    }

    /// Each warp for itself.
    __device__ __forceinline__ void release(int stage) const {
        __syncwarp();
        if (threadIdx.x % kWarpSize == 0) {
            arrive(&shared.empty[stage]);
        }
    }
};

template <Metric kMetric, int kDigits>
__global__ void __launch_bounds__(DigitPairs<kMetric, kDigits>::kThreads, 1)
        digitPairsKernel(const __grid_constant__ DigitPairsParams params) {
    extern __shared__ __align__(1024) uint8_t memory[];
    using Pairs = DigitPairs<kMetric, kDigits>;
    Pairs{*reinterpret_cast<typename Pairs::SharedStorage*>(memory), params}
            .run();
}

} // namespace faiss_bits

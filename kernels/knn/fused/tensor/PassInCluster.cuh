/// PassAtOnce.cuh for more vectors than the registers of two warpgroups have
/// room for: the blocks of a cluster have 512 each, in shared memory, and meet
/// the same queries.
///
/// A block's two warpgroups have tiles of 64 queries of their own, with the
/// keys of all its vectors in registers: while one looks for limits, or waits
/// for another block, the other multiplies. Each block finds the limits of some
/// rows of a tile: to it all send the least keys of their strips, and from it
/// all get the limits, as stores that count bytes on a barrier of the block
/// they go to.
///
/// No store can meet what is still read. Strips of a tile are sent when all
/// limits of the one before have come, and a row's limit is sent when its
/// strips have been read; and the next limit of a row when all have sent its
/// next strips, which a warp does after it read the last limit of that row.
///
/// Bound by: products and the operations on keys, in about equal parts.
/// docs/design/flat_few_vectors.md
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/fused/tensor/ClusterExchange.cuh"
#include "kernels/knn/fused/tensor/PassInClusterShared.cuh"
#include "kernels/knn/fused/tensor/Wgmma.cuh"

namespace faiss_bits::at_once {

template <int kBlocks, int kSlabs>
struct ClusterBody {
    using S = ClusterShape<kBlocks>;
    static constexpr int kPairs = 16; // of keys, a lane's of a row and unit

    const ClusterParams& params;
    ClusterShared<kBlocks, kSlabs>& shared;

    __device__ __forceinline__ void run() const {
        if (threadIdx.x == 0) {
            initBarrier(&shared.residentFull, 1);
            for (int g = 0; g < kConsumerGroups; ++g) {
                for (int i = 0; i < 2; ++i) {
                    initBarrier(&shared.imageFull[g][i], kWarpSize);
                    initBarrier(&shared.imageEmpty[g][i], 128);
                }
                initBarrier(&shared.stripsFull[g], 1);
                initBarrier(&shared.limitsFull[g], 1);
            }
            fenceBarrierInit();
        }
        __syncthreads();
        syncCluster(); // nothing is sent to a barrier that is not there
        allowNext();
        waitForPrevious();
        const int warp =
                __shfl_sync(kFullWarp, int(threadIdx.x) / kWarpSize, 0);
        if (warp < 4) {
            wgmma::lowerRegisters<S::kOtherRegisters>();
            if (warp < kConsumerGroups) {
                readImages(warp);
            } else if (warp == kConsumerGroups) {
                copyVectors();
            }
        } else {
            wgmma::raiseRegisters<S::kKeyRegisters>();
            consume(warp / 4 - 1, warp % 4);
        }
        __syncwarp();
        syncCluster(); // nor to a block that has ended
    }

   private:
    /// Of this block, and so many queries further the next.
    __device__ __forceinline__ uint32_t firstTile(int group) const {
        return blockIdx.x / kBlocks * kConsumerGroups + group;
    }
    __device__ __forceinline__ uint32_t tileStep() const {
        return gridDim.x / kBlocks * kConsumerGroups;
    }

    /// Unit i of this block, of all.
    __device__ __forceinline__ uint32_t unitOf(int i) const {
        return i * kBlocks + rankInCluster();
    }
    __device__ __forceinline__ bool hasUnit(int i) const {
        return unitOf(i) * kUnit < params.pass.n;
    }

    /// One thread of a warp.
    __device__ __forceinline__ void copyVectors() const {
        if (threadIdx.x % kWarpSize != 0) {
            return;
        }
        constexpr uint32_t kNormBytes = kUnit * sizeof(float);
        constexpr uint32_t kUnitBytes = kSlabs * kSlabBytes;
        int units = 0;
        for (int i = 0; i < kUnitsOfBlock; ++i) {
            units += hasUnit(i);
        }
        arriveExpecting(
                &shared.residentFull, units * (kUnitBytes + kNormBytes));
        for (int i = 0; i < units; ++i) {
            copyBulk(
                    shared.norms + i * kUnit,
                    params.pass.norms + unitOf(i) * kUnit,
                    kNormBytes,
                    &shared.residentFull);
            copyBulk(
                    shared.slabs[i],
                    params.pass.vectors + size_t(unitOf(i)) * kUnitBytes,
                    kUnitBytes,
                    &shared.residentFull);
        }
    }

    /// A warp: a group's tiles, with what is known of their rows.
    __device__ __forceinline__ void readImages(int group) const {
        const uint32_t lane = threadIdx.x % kWarpSize;
        const TensorImageFacts facts = *params.pass.queries.vectorFacts;
        RingPlace buffer;
        for (uint32_t tile = firstTile(group); tile < params.pass.tiles;
             tile += tileStep()) {
            QueryFacts rows[kQueries / kWarpSize];
#pragma unroll
            for (uint32_t r = 0; r < kQueries / kWarpSize; ++r) {
                const uint32_t query = tile * kQueries + r * kWarpSize + lane;
                const bool isHere = query < params.pass.queries.n;
                rows[r] = isHere
                        ? QueryFacts{params.norms[query], params.residuals[query], params.inverses[query]}
                        : QueryFacts{0.0f, 0.0f, 1.0f};
            }
            uint64_t* const full = &shared.imageFull[group][buffer.at];
            waitFor(&shared.imageEmpty[group][buffer.at], buffer.parity ^ 1);
#pragma unroll
            for (uint32_t r = 0; r < kQueries / kWarpSize; ++r) {
                const uint32_t row = r * kWarpSize + lane;
                shared.scales[group][buffer.at][row] = scalesOf(rows[r], facts);
                shared.errors[group][buffer.at][row] =
                        errorOf(params.pass, rows[r], facts);
            }
            if (lane == 0) {
                arriveExpecting(full, kSlabs * kImageSlabBytes);
                // Half of a tile of 128 rows.
                const uint8_t* from = params.images +
                        size_t(tile / 2) * kSlabs * kSlabBytes +
                        tile % 2 * kImageSlabBytes;
                for (int slab = 0; slab < kSlabs; ++slab) {
                    copyBulk(
                            shared.images[group][buffer.at][slab],
                            from + slab * kSlabBytes,
                            kImageSlabBytes,
                            full);
                }
            } else {
                arrive(full);
            }
            buffer.next(2);
        }
    }

    /// warp: of the group.
    __device__ __forceinline__ void consume(int group, int warp) const {
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t row = warp * 16 + lane / 4; // and 8 further
        uint32_t keys[kUnitsOfBlock][2][kPairs];
        RingPlace image;
        uint32_t parity = 0; // of what is sent
        waitFor(&shared.residentFull, 0);
        for (uint32_t tile = firstTile(group); tile < params.pass.tiles;
             tile += tileStep()) {
            if (warp == 0 && lane == 0) {
                // Those of the tile before have come.
                arriveExpecting(
                        &shared.stripsFull[group],
                        S::kOwnRows * S::kStripWords * sizeof(uint32_t));
                arriveExpecting(
                        &shared.limitsFull[group], kQueries * sizeof(uint32_t));
            }
            waitFor(&shared.imageFull[group][image.at], image.parity);
            uint32_t strips[2][S::kLaneWords];
            multiplyAll(group, image.at, row, keys, strips);
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                sendStrips(group, row + 8 * r, strips[r]);
            }
            if (warp < S::kFinders) {
                waitForOthers(&shared.stripsFull[group], parity);
                findLimits(group, image.at, tile, warp * 8 + lane / 4);
            }
            waitForOthers(&shared.limitsFull[group], parity);
            parity ^= 1;
            const uint32_t limits[2] = {
                    shared.limits[group][row], shared.limits[group][row + 8]};
            arrive(&shared.imageEmpty[group][image.at]);
            image.next(2);
            writeBits(tile, row, limits, keys);
        }
    }

    __device__ __forceinline__ void multiplyAll(
            int group,
            int buffer,
            uint32_t row,
            uint32_t (&keys)[kUnitsOfBlock][2][kPairs],
            uint32_t (&strips)[2][S::kLaneWords]) const {
        const RowScales scales[2] = {
                shared.scales[group][buffer][row],
                shared.scales[group][buffer][row + 8]};
        const uint64_t a = wgmma::descriptor<128>(
                sharedAddress(shared.images[group][buffer]));
        constexpr uint32_t kNone = kInfiniteKey << 16 | kInfiniteKey;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int w = 0; w < S::kLaneWords; ++w) {
                strips[r][w] = kNone;
            }
        }
#pragma unroll
        for (int unit = 0; unit < kUnitsOfBlock; ++unit) {
            if (hasUnit(unit)) {
                float values[64];
                const uint64_t b = wgmma::descriptor<128>(
                        sharedAddress(shared.slabs[unit]));
                wgmma::fence();
#pragma unroll
                for (int step = 0; step < 4 * kSlabs; ++step) {
                    wgmma::multiply<128>(
                            values,
                            a + step / 4 * (kImageSlabBytes / 16) +
                                    2 * (step % 4),
                            b + step / 4 * (kSlabBytes / 16) + 2 * (step % 4),
                            step > 0);
                }
                wgmma::commit();
                wgmma::wait<0>();
                pack(values, scales, unit, keys[unit], strips);
            } else {
#pragma unroll
                for (int j = 0; j < kPairs; ++j) {
                    keys[unit][0][j] = kNone;
                    keys[unit][1][j] = kNone;
                }
            }
        }
    }

    /// To keys, and the least of strips.
    __device__ __forceinline__ void pack(
            const float (&values)[64],
            const RowScales (&scales)[2],
            int unit,
            uint32_t (&keys)[2][kPairs],
            uint32_t (&strips)[2][S::kLaneWords]) const {
        const float2* norms = reinterpret_cast<const float2*>(
                &shared.norms[unit * kUnit + 2 * (threadIdx.x % 4)]);
#pragma unroll
        for (int j = 0; j < kPairs; ++j) {
            const float2 norm = norms[4 * j];
            const int word = S::wordOfHalf(unit, j / (kPairs / 2));
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const RowScales& s = scales[r];
                const float low = fmaf(norm.x, s.scale, s.norm);
                const float high = fmaf(norm.y, s.scale, s.norm);
                keys[r][j] = packKeys(
                        fmaf(s.factor, values[4 * j + 2 * r], low),
                        fmaf(s.factor, values[4 * j + 2 * r + 1], high));
                uint32_t& least = strips[r][word];
                least = leastKeys(least, keys[r][j]);
            }
        }
    }

    /// Of a row, to the block that finds its limit.
    __device__ __forceinline__ void sendStrips(
            int group,
            uint32_t row,
            const uint32_t (&words)[S::kLaneWords]) const {
        const uint32_t block = row / S::kOwnRows;
        const uint32_t place =
                (rankInCluster() * 4 + threadIdx.x % 4) * S::kLaneWords;
        sendWords(
                addressIn(
                        block, &shared.strips[group][row % S::kOwnRows][place]),
                addressIn(block, &shared.stripsFull[group]),
                words);
    }

    /// Of eight of this block's rows a warp, four lanes each.
    __device__ __forceinline__ void findLimits(
            int group,
            int buffer,
            uint32_t tile,
            uint32_t own) const {
        constexpr int kItems = S::kStripWords / 4;
        const uint32_t quad = threadIdx.x % 4;
        uint32_t strips[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            strips[i] = shared.strips[group][own][4 * i + quad];
        }
        const uint32_t ranked = rankedKey(strips, params.pass.rank);
        const uint32_t row = rankInCluster() * S::kOwnRows + own;
        float key;
        const uint32_t limit[1] = {
                limitOf(params.pass,
                        shared.scales[group][buffer][row],
                        shared.errors[group][buffer][row],
                        ranked,
                        key)};
        const uint32_t query = tile * kQueries + row;
        if (quad == 0 && query < params.pass.queries.n) {
            params.pass.complete[query] = key;
        }
#pragma unroll
        for (uint32_t block = 0; block < kBlocks; block += 4) {
            sendWords(
                    addressIn(block + quad, &shared.limits[group][row]),
                    addressIn(block + quad, &shared.limitsFull[group]),
                    limit);
        }
    }

    __device__ __forceinline__ void writeBits(
            uint32_t tile,
            uint32_t row,
            const uint32_t (&limits)[2],
            const uint32_t (&keys)[kUnitsOfBlock][2][kPairs]) const {
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t query = tile * kQueries + row + 8 * (lane % 2);
        uint32_t* const to =
                params.pass.bits + size_t(query) * params.pass.words;
#pragma unroll
        for (int unit = 0; unit < kUnitsOfBlock; ++unit) {
            uint32_t words[kWords];
            wordsOf(keys[unit], limits, words);
            if (lane % 4 < 2 && query < params.pass.queries.n) {
                storeWords(params.pass, to, unitOf(unit) * kWords, words);
            }
        }
    }
};

template <int kBlocks, int kSlabs>
__global__ void __launch_bounds__(kThreads, 1)
        passInClusterKernel(const __grid_constant__ ClusterParams params) {
    extern __shared__ __align__(1024) uint8_t memory[];
    using Memory = ClusterShared<kBlocks, kSlabs>;
    ClusterBody<kBlocks, kSlabs>{params, *reinterpret_cast<Memory*>(memory)}
            .run();
}

} // namespace faiss_bits::at_once

/// The warpgroups of PassAtOnce.cuh that hold keys.
#pragma once

#include "kernels/knn/fused/tensor/PassAtOnceLimits.cuh"
#include "kernels/knn/fused/tensor/Wgmma.cuh"

namespace faiss_bits::at_once {

/// Consumers alone.
__device__ __forceinline__ void syncConsumers() {
    asm volatile("bar.sync 1, %0;" ::"n"(128 * kConsumerGroups) : "memory");
}

template <int kPerGroup, int kSlabs, int kOwnStrips>
struct Consumers {
    using S = Shape<kPerGroup, kSlabs, kOwnStrips>;
    static constexpr int kPairs = 16; // of keys, a lane's of a row and unit

    const Params& params;
    Shared<kPerGroup, kSlabs, kOwnStrips>& shared;

    __device__ __forceinline__ void run() const {
        const int warp =
                __shfl_sync(kFullWarp, int(threadIdx.x) / kWarpSize - 4, 0);
        const int group = warp / 4;
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t row = warp % 4 * 16 + lane / 4; // and 8 further
        uint32_t keys[kPerGroup][2][kPairs];
        uint32_t strips[kOwnStrips]; // of the row whose limit this lane finds
        RingPlace image;
        uint32_t streamed = 0; // slabs before, of both groups
        RingPlace own;         // of the next of this group
        waitFor(&shared.residentFull, 0);
        for (uint32_t tile = blockIdx.x; tile < params.tiles;
             tile += gridDim.x) {
            waitFor(&shared.imageFull[image.at], image.parity);
            const RowScales scales[2] = {
                    shared.scales[image.at][row],
                    shared.scales[image.at][row + 8]};
            const uint64_t a = wgmma::descriptor<128>(
                    sharedAddress(shared.images[image.at]));
#pragma unroll
            for (int unit = 0; unit < kPerGroup; ++unit) {
                float values[64];
                multiplyUnit(values, a, group, unit, streamed, own);
                pack(values, scales, group, unit, row, keys[unit], strips);
            }
            streamed += S::kStreamed;
            syncConsumers();
            findLimits(image.at, tile, row + 8 * group, strips);
            syncConsumers();
            arrive(&shared.imageEmpty[image.at]);
            image.next(2);
            writeBits(tile, group, row, keys);
        }
    }

    __device__ __forceinline__ void multiplyUnit(
            float (&values)[64],
            uint64_t a,
            int group,
            int unit,
            uint32_t streamed,
            RingPlace& own) const {
#pragma unroll
        for (int slab = 0; slab < kSlabs; ++slab) {
            const int place = placeOf<kSlabs>(group, unit, slab);
            const int last = placeOf<kSlabs>(kConsumerGroups - 1, unit, slab);
            uint32_t at = place;
            if (last >= S::kResident && place >= S::kResident) {
                const uint32_t turn = streamed + (place - S::kResident);
                const uint32_t slot = turn % kStreamSlots;
                waitFor(&shared.slotFull[group][own.at], own.parity);
                own.next(3);
                at = S::kResident + slot;
            }
            const uint64_t b =
                    wgmma::descriptor<128>(sharedAddress(shared.slabs[at]));
            wgmma::fence();
#pragma unroll
            for (int step = 0; step < 4; ++step) {
                wgmma::multiply<128>(
                        values,
                        a + slab * (kImageSlabBytes / 16) + 2 * step,
                        b + 2 * step,
                        slab > 0 || step > 0);
            }
            wgmma::commit();
            if (slab > 0) { // the one before has been read
                wgmma::wait<1>();
                release(group, unit, slab - 1, streamed);
            }
        }
        wgmma::wait<0>();
        release(group, unit, kSlabs - 1, streamed);
    }

    /// A slab that was streamed may be written over.
    __device__ __forceinline__ void release(
            int group,
            int unit,
            int slab,
            uint32_t streamed) const {
        const int place = placeOf<kSlabs>(group, unit, slab);
        const int last = placeOf<kSlabs>(kConsumerGroups - 1, unit, slab);
        if (last >= S::kResident && place >= S::kResident) {
            const uint32_t turn = streamed + (place - S::kResident);
            __syncwarp();
            if (threadIdx.x % kWarpSize == 0) {
                arrive(&shared.slotEmpty[turn % kStreamSlots]);
            }
        }
    }

    /// To keys, and the least of every strip. Each group finds the limits of
    /// half of the rows, and gets the other's strips of them.
    __device__ __forceinline__ void pack(
            const float (&values)[64],
            const RowScales (&scales)[2],
            int group,
            int unit,
            uint32_t row,
            uint32_t (&keys)[2][kPairs],
            uint32_t (&strips)[kOwnStrips]) const {
        constexpr int kStrips = kOwnStrips / kPerGroup; // of a unit
        constexpr int kOfStrip = kPairs / kStrips;
        const uint32_t quad = threadIdx.x % 4;
        const float2* norms = reinterpret_cast<const float2*>(
                &shared.norms[(group * kPerGroup + unit) * kUnit + 2 * quad]);
        uint32_t least[2][kStrips];
#pragma unroll
        for (int j = 0; j < kPairs; ++j) {
            const float2 norm = norms[4 * j];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const RowScales& s = scales[r];
                const float low = fmaf(norm.x, s.scale, s.norm);
                const float high = fmaf(norm.y, s.scale, s.norm);
                const uint32_t key = packKeys(
                        fmaf(s.factor, values[4 * j + 2 * r], low),
                        fmaf(s.factor, values[4 * j + 2 * r + 1], high));
                keys[r][j] = key;
                uint32_t& best = least[r][j / kOfStrip];
                best = j % kOfStrip == 0 ? key : leastKeys(best, key);
            }
        }
#pragma unroll
        for (int s = 0; s < kStrips; ++s) {
            const int word = unit * kStrips + s;
            strips[word] = group == 0 ? least[0][s] : least[1][s];
            shared.strips[row + 8 * (1 - group)][4 * word + quad] =
                    group == 0 ? least[1][s] : least[0][s];
        }
    }

    /// Of eight rows a warp, four lanes each.
    __device__ __forceinline__ void findLimits(
            int buffer,
            uint32_t tile,
            uint32_t row,
            const uint32_t (&own)[kOwnStrips]) const {
        constexpr int kItems = 2 * kOwnStrips;
        const uint32_t quad = threadIdx.x % 4;
        uint32_t strips[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            strips[i] = i < kOwnStrips
                    ? own[i]
                    : shared.strips[row][4 * (i - kOwnStrips) + quad];
        }
        const uint32_t ranked = rankedKey(strips, params.rank);
        if (quad == 0) {
            float key;
            shared.limits[row] =
                    limitOf(params,
                            shared.scales[buffer][row],
                            shared.errors[buffer][row],
                            ranked,
                            key);
            const uint32_t query = tile * kQueries + row;
            if (query < params.queries.n) {
                params.complete[query] = key;
            }
        }
    }

    __device__ __forceinline__ void writeBits(
            uint32_t tile,
            int group,
            uint32_t row,
            const uint32_t (&keys)[kPerGroup][2][kPairs]) const {
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t limits[2] = {shared.limits[row], shared.limits[row + 8]};
        const uint32_t query = tile * kQueries + row + 8 * (lane % 2);
        uint32_t* const to = params.bits + size_t(query) * params.words;
#pragma unroll
        for (int unit = 0; unit < kPerGroup; ++unit) {
            const uint32_t first = (group * kPerGroup + unit) * kWords;
            uint32_t words[kWords];
            wordsOf(keys[unit], limits, words);
            if (lane % 4 >= 2 || query >= params.queries.n) {
                continue;
            }
            storeWords(params, to, first, words);
        }
    }
};

} // namespace faiss_bits::at_once

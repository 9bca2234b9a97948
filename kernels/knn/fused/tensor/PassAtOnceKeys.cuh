/// The warpgroups of PassAtOnce.cuh that hold keys.
#pragma once

#include <cuda_fp16.h>

#include "kernels/device/Bitonic.cuh"
#include "kernels/knn/fused/tensor/PassAtOnceShape.cuh"
#include "kernels/knn/fused/tensor/Wgmma.cuh"

namespace faiss_bits::at_once {

/// Consumers alone.
__device__ __forceinline__ void syncConsumers() {
    asm volatile("bar.sync 1, %0;" ::"n"(128 * kConsumerGroups) : "memory");
}

/// low and high as halves, not below 0; NaN becomes the largest.
__device__ __forceinline__ uint32_t packKeys(float low, float high) {
    uint32_t result;
    asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;"
        : "=r"(result)
        : "f"(high), "f"(low));
    return result;
}

__device__ __forceinline__ uint32_t leastKeys(uint32_t a, uint32_t b) {
    uint32_t result;
    asm("min.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    return result;
}

__device__ __forceinline__ uint32_t greatestKeys(uint32_t a, uint32_t b) {
    uint32_t result;
    asm("max.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    return result;
}

template <int kPerGroup, int kSlabs>
struct Consumers {
    using S = Shape<kPerGroup, kSlabs>;
    static constexpr int kPairs = 16;    // of keys, a lane's of a row and unit
    static constexpr int kOwnStrips = 8; // words, a lane's of a row

    const Params& params;
    Shared<kPerGroup, kSlabs>& shared;

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
        constexpr uint32_t kInfinite = 0x7c00;
        const uint32_t quad = threadIdx.x % 4;
        uint32_t strips[kItems];
        uint32_t low = 0x7fff7fff;
        uint32_t high = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            strips[i] = i < kOwnStrips
                    ? own[i]
                    : shared.strips[row][4 * (i - kOwnStrips) + quad];
            low = leastKeys(low, strips[i]);
            high = greatestKeys(high, strips[i]);
        }
        uint32_t least = min(low & 0xffff, low >> 16);
        uint32_t most = max(high & 0xffff, high >> 16);
#pragma unroll
        for (int lanes = 1; lanes < 4; lanes *= 2) {
            least = min(least, __shfl_xor_sync(kFullWarp, least, lanes));
            most = max(most, __shfl_xor_sync(kFullWarp, most, lanes));
        }
        // What is no number counts as infinite.
        most = min(most, kInfinite);
        least = min(least, most);
        while (__any_sync(kFullWarp, least < most)) {
            const uint32_t middle = (least + most) / 2;
            const uint32_t both = middle << 16 | middle;
            // Some sums, as one is a chain of latencies.
            constexpr int kSums = 4;
            __half2 sums[kSums];
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                const __half2 isIn =
                        __hle2(*reinterpret_cast<const __half2*>(&strips[i]),
                               *reinterpret_cast<const __half2*>(&both));
                __half2& its = sums[i % kSums];
                its = i < kSums ? isIn : __hadd2(its, isIn);
            }
            const __half2 sum = __hadd2(
                    __hadd2(sums[0], sums[1]), __hadd2(sums[2], sums[3]));
            float count = __low2float(sum) + __high2float(sum);
            count += __shfl_xor_sync(kFullWarp, count, 1);
            count += __shfl_xor_sync(kFullWarp, count, 2);
            const bool isBelow = count < float(params.rank);
            // Equal: some key between the rank'th and the next will do.
            least = isBelow                       ? min(middle + 1, most)
                    : count == float(params.rank) ? middle
                                                  : least;
            most = isBelow ? most : middle;
        }
        // The rank'th itself: the greatest that is not above.
        const uint32_t both = (most << 16 | most) | 0x80008000;
        uint32_t ranked = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t within = (both - strips[i]) >> 15 & 0x00010001;
            ranked = greatestKeys(ranked, strips[i] & within * 0xffff);
        }
        ranked = max(ranked & 0xffff, ranked >> 16);
        ranked = max(ranked, __shfl_xor_sync(kFullWarp, ranked, 1));
        ranked = max(ranked, __shfl_xor_sync(kFullWarp, ranked, 2));
        if (quad == 0) {
            writeLimit(
                    buffer, tile, row, most >= kInfinite ? kInfinite : ranked);
        }
    }

    __device__ __forceinline__ void writeLimit(
            int buffer,
            uint32_t tile,
            uint32_t row,
            uint32_t ranked) const {
        const RowScales scales = shared.scales[buffer][row];
        const RowError error = shared.errors[buffer][row];
        // As of strips in StripLimits.cu: the rank that was asked for. Of the
        // rounding to float16 half a unit, of the images some deviations, and
        // of the canonical distance. Nothing rests on it.
        float key = (__half2float(__ushort_as_half(uint16_t(ranked))) *
                             (1 + 0x1p-11f) +
                     0x1p-25f) *
                scales.inverse;
        constexpr float kOfFloat16 = 0x1p-8f;
        key += kOfFloat16 * error.norm * (error.norm + rootAbove(key)) *
                rsqrtf(float(params.queries.d));
        key *= 1 + 0x1p-22f;
        // RowBound::limitOf, rounded up.
        const float x = __fadd_ru(error.norm, rootAbove(key));
        const float square = __fmaf_ru(
                params.cut, __fadd_ru(1.0f, params.rounding), params.rounding);
        const float lengths = __fadd_ru(error.image, x);
        float off = __fmaf_ru(
                x, __fmaf_ru(x, square, error.linear), error.constant);
        off = __fmaf_ru(key, 0x1p-22f, off);
        const float limit = __fadd_ru(key, off);
        // What products below the range of float32 lose is far less than the
        // least float16 here.
        const uint32_t half = __half_as_ushort(
                __float2half_ru(__fmaf_ru(limit, scales.scale, 0x1p-24f)));
        uint32_t bits = (half | 0x8000) * 0x10001;
        if (!(lengths < 0x1p60f) || !(half < 0x7c00)) {
            bits = kAllBelow;
            key = __builtin_huge_valf();
        }
        if (error.norm != error.norm) {
            bits = kNoneBelow;
            key = __int_as_float(0x7fc00000);
        }
        shared.limits[row] = bits;
        const uint32_t query = tile * kQueries + row;
        if (query < params.queries.n) {
            params.complete[query] = key;
        }
    }

    __device__ __forceinline__ void writeBits(
            uint32_t tile,
            int group,
            uint32_t row,
            const uint32_t (&keys)[kPerGroup][2][kPairs]) const {
        constexpr int kWords = kUnit / 32;
        const uint32_t lane = threadIdx.x % kWarpSize;
        const bool isOdd = lane % 2;
        const uint32_t limits[2] = {shared.limits[row], shared.limits[row + 8]};
        const uint32_t query = tile * kQueries + row + (isOdd ? 8 : 0);
        uint32_t* const to = params.bits + size_t(query) * params.words;
#pragma unroll
        for (int unit = 0; unit < kPerGroup; ++unit) {
            const uint32_t first = (group * kPerGroup + unit) * kWords;
            uint32_t words[kWords];
#pragma unroll
            for (int w = 0; w < kWords; ++w) {
                uint32_t own[2];
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    own[r] = wordOf(&keys[unit][r][4 * w], limits[r])
                            << 2 * (lane % 4);
                }
                // Even lanes put one row together, odd ones the other.
                uint32_t all = isOdd ? own[1] : own[0];
                all |= __shfl_xor_sync(kFullWarp, isOdd ? own[0] : own[1], 1);
                all |= __shfl_xor_sync(kFullWarp, all, 2);
                words[w] = all;
            }
            if (lane % 4 >= 2 || query >= params.queries.n) {
                continue;
            }
            if (params.words % 4 == 0 && (first + kWords) * 32 <= params.n) {
                *reinterpret_cast<uint4*>(to + first) = {
                        words[0], words[1], words[2], words[3]};
                continue;
            }
#pragma unroll
            for (int w = 0; w < kWords; ++w) {
                const uint32_t column = (first + w) * 32;
                if (column < params.n) {
                    const uint32_t left = params.n - column;
                    to[first + w] =
                            words[w] & (left < 32 ? (1u << left) - 1 : ~0u);
                }
            }
        }
    }

    /// Bits 0, 8, 16 and 24 of the even keys, and those above of the odd ones,
    /// that are not above the limit.
    static __device__ __forceinline__ uint32_t
    wordOf(const uint32_t* keys, uint32_t limit) {
        constexpr uint32_t kSigns = 0x80008000;
        uint32_t signs = (limit - keys[0]) & kSigns;
#pragma unroll
        for (int i = 1; i < 4; ++i) {
            signs = signs >> 1 | ((limit - keys[i]) & kSigns);
        }
        // Bits 12 to 15, and 28 to 31, in order.
        constexpr uint32_t kSpread = 0x00204081;
        constexpr uint32_t kPlaces = 0x01010101;
        const uint32_t even = (signs >> 12 & 15) * kSpread & kPlaces;
        const uint32_t odd = (signs >> 28) * kSpread & kPlaces;
        return even | odd << 1;
    }
};

} // namespace faiss_bits::at_once

/// From the keys of PassAtOnce.cuh to limits and bits.
#pragma once

#include <cuda_fp16.h>

#include "kernels/device/Bitonic.cuh"
#include "kernels/knn/fused/tensor/PassAtOnceShape.cuh"

namespace faiss_bits::at_once {

constexpr uint32_t kInfiniteKey = 0x7c00; // a half
constexpr int kWords = kUnit / 32;

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

/// Of the halves that four lanes side by side have of a row, in words of two:
/// the rank'th in order; kInfiniteKey where there are fewer that are finite.
/// All lanes of the warp call it.
template <int kItems>
__device__ __forceinline__ uint32_t
rankedKey(const uint32_t (&strips)[kItems], uint32_t rank) {
    // The greatest of the least of some groups is no less than the key, of as
    // many groups as the rank or more.
    constexpr int kWordsOfGroups = 8;
    static_assert(4 * 2 * kWordsOfGroups >= kStripsAtOnce / 2);
    uint32_t low = 0x7fff7fff;
    uint32_t high = 0;
#pragma unroll
    for (int g = 0; g < kWordsOfGroups; ++g) {
        uint32_t group = strips[g];
#pragma unroll
        for (int i = g + kWordsOfGroups; i < kItems; i += kWordsOfGroups) {
            group = leastKeys(group, strips[i]);
        }
        low = leastKeys(low, group);
        high = __vmaxu2(high, group); // what is no number is the greatest
    }
    uint32_t least = min(low & 0xffff, low >> 16);
    uint32_t most = max(high & 0xffff, high >> 16);
#pragma unroll
    for (int lanes = 1; lanes < 4; lanes *= 2) {
        least = min(least, __shfl_xor_sync(kFullWarp, least, lanes));
        most = max(most, __shfl_xor_sync(kFullWarp, most, lanes));
    }
    // What is no number counts as infinite.
    most = min(most, kInfiniteKey);
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
        const __half2 sum =
                __hadd2(__hadd2(sums[0], sums[1]), __hadd2(sums[2], sums[3]));
        float count = __low2float(sum) + __high2float(sum);
        count += __shfl_xor_sync(kFullWarp, count, 1);
        count += __shfl_xor_sync(kFullWarp, count, 2);
        const bool isBelow = count < float(rank);
        // Equal: some key between the rank'th and the next will do.
        least = isBelow                ? min(middle + 1, most)
                : count == float(rank) ? middle
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
    return most >= kInfiniteKey ? kInfiniteKey : ranked;
}

/// From the rank'th strip's key: what a key must not be above to pass, twice,
/// with signs set, kAllBelow or kNoneBelow. key: in whose reach all have
/// passed.
__device__ __forceinline__ uint32_t
limitOf(const Params& params,
        const RowScales& scales,
        const RowError& error,
        uint32_t ranked,
        float& key) {
    // As of strips in StripLimits.cu: the rank that was asked for. Of the
    // rounding to float16 half a unit, of the images some deviations, and
    // of the canonical distance. Nothing rests on it.
    key = (__half2float(__ushort_as_half(uint16_t(ranked))) * (1 + 0x1p-11f) +
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
    float off =
            __fmaf_ru(x, __fmaf_ru(x, square, error.linear), error.constant);
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
    return bits;
}

/// Bits 0, 8, 16 and 24 of the even keys, and those above of the odd ones,
/// that are not above the limit, of lane 0 of four; of the next two bits
/// further.
__device__ __forceinline__ uint32_t
wordOf(const uint32_t* keys, uint32_t limit) {
    // Signs are the highest bits of bytes 1 and 3.
    const uint32_t first =
            __byte_perm(limit - keys[0], limit - keys[1], 0x7351);
    const uint32_t last = __byte_perm(limit - keys[2], limit - keys[3], 0x7351);
    const uint32_t even = __byte_perm(first, last, 0x5410);
    const uint32_t odd = __byte_perm(first, last, 0x7632);
    const uint32_t both = (even >> 1 & 0x40404040) | (odd & 0x80808080);
    return both >> (6 - 2 * (threadIdx.x % 4));
}

/// A unit's words of a lane's two rows: even lanes put the first together, odd
/// ones the second, both of each four.
__device__ __forceinline__ void wordsOf(
        const uint32_t (&keys)[2][16],
        const uint32_t (&limits)[2],
        uint32_t (&words)[kWords]) {
    const uint32_t lane = threadIdx.x % kWarpSize;
    const bool isOdd = lane % 2;
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
        uint32_t own[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            own[r] = wordOf(&keys[r][4 * w], limits[r]);
        }
        uint32_t all = isOdd ? own[1] : own[0];
        all |= __shfl_xor_sync(kFullWarp, isOdd ? own[0] : own[1], 1);
        all |= __shfl_xor_sync(kFullWarp, all, 2);
        words[w] = all;
    }
}

/// Words of a row from one on, without what is behind the last vector.
__device__ __forceinline__ void storeWords(
        const Params& params,
        uint32_t* to,
        uint32_t first,
        const uint32_t (&words)[kWords]) {
    if (params.words % 4 == 0 && (first + kWords) * 32 <= params.n) {
        *reinterpret_cast<uint4*>(to + first) = {
                words[0], words[1], words[2], words[3]};
        return;
    }
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
        const uint32_t column = (first + w) * 32;
        if (column < params.n) {
            const uint32_t left = params.n - column;
            to[first + w] = words[w] & (left < 32 ? (1u << left) - 1 : ~0u);
        }
    }
}

} // namespace faiss_bits::at_once

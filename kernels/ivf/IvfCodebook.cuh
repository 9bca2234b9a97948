/// A codebook of product codes in float16, and what that loses, for scans by
/// estimates (IvfProductScan.cuh).
#pragma once

#include "kernels/device/MmaFloat16.cuh"
#include "kernels/ivf/IvfBoundedScans.h"
#include "kernels/ivf/IvfDirectSums.cuh"

namespace faiss_bits {

/// Float16 numbers' bits, and what they are off by.
__device__ __forceinline__ uint32_t
roundToFloat16(float a, float b, float& offA, float& offB) {
    const uint32_t both = toFloat16(a, b);
    offA = a - __half2float(__ushort_as_half(uint16_t(both)));
    offB = b - __half2float(__ushort_as_half(uint16_t(both >> 16)));
    return both;
}

/// Some blocks, each of which finds the scale for itself and has a part for
/// each warp.
struct IvfCodebook {
    static constexpr int kThreads = kIvfDirectThreads;
    static constexpr int kWarps = kThreads / kWarpSize;
    static_assert(kWarps == kIvfCodebookParts);

    struct SharedStorage {
        float longest[kWarps];
    };

    SharedStorage& shared;
    const IvfDirectParams& params;
    int dims; // of a part

    __device__ __forceinline__ void run(int block) const {
        const int parts = params.search.lists.decoding.numParts;
        const int warp = int(threadIdx.x / kWarpSize);
        const int lane = int(threadIdx.x % kWarpSize);
        float longest = 0;
        for (int part = warp; part < parts; part += kWarps) {
            longest += longestOf(part);
        }
        if (lane == 0) {
            shared.longest[warp] = longest;
        }
        __syncthreads();
        longest = 0;
#pragma unroll
        for (int i = 0; i < kWarps; ++i) {
            longest += shared.longest[i];
        }
        if (block == 0 && threadIdx.x == 0) {
            params.codebookNorms[0] = longest;
        }
        const int part = block * kWarps + warp;
        if (part < parts) {
            const float lost = convert(part, ivfCodebookScale(longest));
            if (lane == 0) {
                params.codebookNorms[1 + part] = lost;
            }
        }
    }

   private:
    __device__ __forceinline__ const float* rowsOf(int part) const {
        return params.search.lists.decoding.codebook +
                int64_t(part) * kIvfCodebookRows * dims;
    }

    __device__ __forceinline__ static float greatestOfLanes(uint32_t bits) {
        // None is negative; what is no number is greater than all.
        return __uint_as_float(__reduce_max_sync(kFullWarp, bits));
    }
    __device__ __forceinline__ static float squareOf(float a, float b) {
        return __fmaf_rn(a, a, b * b);
    }

    /// The greatest square of a part's rows, in every lane.
    __device__ __forceinline__ float longestOf(int part) const {
        constexpr int kFours = 4; // sixteen components: of one row or more
        const auto* from = reinterpret_cast<const float4*>(rowsOf(part));
        const int steps = kIvfCodebookRows * dims / (16 * kWarpSize);
        uint32_t most = 0;
#pragma unroll 2
        for (int step = 0; step < steps; ++step) {
            const int at =
                    (step * kWarpSize + int(threadIdx.x % kWarpSize)) * kFours;
            float low[kFours];
            float high[kFours];
#pragma unroll
            for (int i = 0; i < kFours; ++i) {
                const float4 x = from[at + i];
                low[i] = squareOf(x.x, x.y);
                high[i] = squareOf(x.z, x.w);
            }
            const auto take = [&](float square) {
                most = max(most, __float_as_uint(square) & 0x7fffffff);
            };
            const float fours[kFours] = {
                    low[0] + high[0],
                    low[1] + high[1],
                    low[2] + high[2],
                    low[3] + high[3]};
            if (dims == 2) {
#pragma unroll
                for (int i = 0; i < kFours; ++i) {
                    take(low[i]);
                    take(high[i]);
                }
            } else if (dims == 4) {
#pragma unroll
                for (int i = 0; i < kFours; ++i) {
                    take(fours[i]);
                }
            } else if (dims == 8) {
                take(fours[0] + fours[1]);
                take(fours[2] + fours[3]);
            } else {
                take((fours[0] + fours[1]) + (fours[2] + fours[3]));
            }
        }
        return greatestOfLanes(most);
    }

    /// Returns the greatest square of what a row loses, times that of the
    /// scale.
    __device__ __forceinline__ float convert(int part, float scale) const {
        constexpr int kOfLane = kIvfCodebookRows / kWarpSize;
        const auto* from = reinterpret_cast<const float2*>(rowsOf(part));
        auto* to = reinterpret_cast<uint32_t*>(params.codebook) +
                part * kIvfCodebookRows * (dims / 2);
        float lost[kOfLane] = {};
        for (int c = 0; c < dims / 2; ++c) {
            float2 x[kOfLane];
#pragma unroll
            for (int i = 0; i < kOfLane; ++i) {
                const int row = i * kWarpSize + int(threadIdx.x % kWarpSize);
                x[i] = from[row * (dims / 2) + c];
            }
#pragma unroll
            for (int i = 0; i < kOfLane; ++i) {
                const int row = i * kWarpSize + int(threadIdx.x % kWarpSize);
                float offA = 0;
                float offB = 0;
                to[row * (dims / 2) + c] = roundToFloat16(
                        x[i].x * scale, x[i].y * scale, offA, offB);
                lost[i] += squareOf(offA, offB);
            }
        }
        uint32_t most = 0;
#pragma unroll
        for (int i = 0; i < kOfLane; ++i) {
            most = max(most, __float_as_uint(lost[i]) & 0x7fffffff);
        }
        return greatestOfLanes(most);
    }
};

} // namespace faiss_bits

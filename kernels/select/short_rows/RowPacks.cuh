/// The packs of four floats of a row that 8 or 16 lanes hold: which keys each
/// lane has, and how they are read.
#pragma once

#include "kernels/select/short_rows/FewOfPacksLaunch.h"
#include "kernels/select/short_rows/PackBits.cuh"

namespace faiss_bits {

/// Pack p of a lane begins at place (p * kLanes + (lane ^ turn(p))) * 4 of
/// packs of 16 bytes, in the first of which the row begins. skew: places before
/// the row.
template <int kLanes, int kPacks>
struct RowPacks {
    static constexpr int kPack = 4; // keys
    static constexpr int kSure = surePacks(kLanes, kPacks);
    using Group = LaneGroup<kLanes>;
    using Bits = PackBits<kLanes, kPacks>;

    __device__ __forceinline__ static const float* keysOf(
            const SelectParams& params,
            uint32_t row) {
        return static_cast<const float*>(params.keys) +
                params.rowStride * int64_t(row);
    }

    /// The lane's keys, of which smaller ones are better. What the row has in
    /// its first pack and in its last one comes key by key; NaN, which is
    /// within no limit, before and behind it. Returns the row's skew.
    __device__ __forceinline__ static uint32_t load(
            const SelectParams& params,
            uint32_t row,
            float (&values)[kPacks * kPack]) {
        const uintptr_t first =
                reinterpret_cast<uintptr_t>(keysOf(params, row));
        const float4* from =
                reinterpret_cast<const float4*>(first & ~uintptr_t(15));
        const uint32_t skew = uint32_t(first / sizeof(float) % kPack);
        // By the row's address: by that of a pack the assembler makes one load
        // of the pack of these, and it may end behind the caller's memory.
        const auto keyByKey = [&](int pack) {
            return keysOf(params, row) + (placeOf(pack) - int(skew));
        };
        const int left = int(skew + params.cols);
        const float nan = __uint_as_float(0x7FC00000u);
        float4 loaded[kPacks];
        loaded[0] = make_float4(nan, nan, nan, nan);
        if (skew == 0 || Group::lane() > 0) {
            loaded[0] = __ldg(from + placeOf(0) / kPack);
        } else {
            const float* key = keyByKey(0);
            loaded[0].w = __ldg(key + 3);
            if (skew <= 2) {
                loaded[0].z = __ldg(key + 2);
            }
            if (skew == 1) {
                loaded[0].y = __ldg(key + 1);
            }
        }
#pragma unroll
        for (int p = 1; p < kPacks; ++p) {
            if (p < kSure) {
                loaded[p] = __ldg(from + placeOf(p) / kPack);
                continue;
            }
            loaded[p] = make_float4(nan, nan, nan, nan);
            const int some = left - placeOf(p);
            if (some >= kPack) {
                loaded[p] = __ldg(from + placeOf(p) / kPack);
            } else if (some > 0) {
                const float* key = keyByKey(p);
                loaded[p].x = __ldg(key);
                if (some > 1) {
                    loaded[p].y = __ldg(key + 1);
                }
                if (some > 2) {
                    loaded[p].z = __ldg(key + 2);
                }
            }
        }
        const float sign = __uint_as_float(0x3F800000u ^ params.signMask);
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
            values[p * kPack] = loaded[p].x * sign;
            values[p * kPack + 1] = loaded[p].y * sign;
            values[p * kPack + 2] = loaded[p].z * sign;
            values[p * kPack + 3] = loaded[p].w * sign;
        }
        return skew;
    }

    /// number: i * kLanes + lane, of key i of a lane.
    __device__ __forceinline__ static uint32_t columnOf(
            uint32_t number,
            uint32_t skew) {
        const uint32_t lane = number % kLanes;
        const uint32_t i = number / kLanes;
        const uint32_t pack = i / kPack;
        return (pack * kLanes + (lane ^ Bits::turn(pack))) * kPack + i % kPack -
                skew;
    }

   private:
    __device__ __forceinline__ static int placeOf(int pack) {
        return pack * kLanes * kPack +
                (Group::lane() ^ Bits::turn(pack)) * kPack;
    }
};

} // namespace faiss_bits

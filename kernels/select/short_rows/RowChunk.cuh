/// Some columns of a row in the registers of kLanes lanes, kItems keys in each.
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/select/SelectParams.h"
#include "kernels/select/short_rows/LaneGroup.cuh"

namespace faiss_bits {

template <class T, bool kHasBias, int kLanes, int kItems>
struct RowChunk {
    using Group = LaneGroup<kLanes>;
    static constexpr uint32_t kColumns = kLanes * kItems;

    uint32_t cols;     // of the row
    uint32_t base = 0; // the first column
    uint32_t keys[kItems];

    __device__ __forceinline__ uint32_t columnOf(int i) const {
        return base + Group::lane() + i * kLanes;
    }
    __device__ __forceinline__ uint64_t entryOf(int i) const {
        return makeEntry(keys[i], columnOf(i));
    }

    /// Keys behind the row's end are NaN's.
    __device__ __forceinline__ void load(
            const SelectParams& params,
            uint32_t row) {
        const T* from = static_cast<const T*>(params.keys) +
                params.rowStride * int64_t(row) + base + Group::lane();
        if (base + kColumns <= cols) {
            read<false>(params, row, from);
        } else {
            read<true>(params, row, from);
        }
    }

    template <bool kCut>
    __device__ __forceinline__ void read(
            const SelectParams& params,
            uint32_t row,
            const T* from) {
        const int left = int(cols - base) - Group::lane();
        // All loads in flight before the first use, as KeyTile::loadPart has
        // them and says why.
        T loaded[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            loaded[i] = T(__uint_as_float(0x7FC00000u));
            if (!kCut || i * kLanes < left) {
                loaded[i] = from[i * kLanes];
            }
        }
        const float rowBias =
                kHasBias && params.rowBias ? params.rowBias[row] : 0.0f;
        const float floor = params.floor;
        const float sign = __uint_as_float(0x3F800000u ^ params.signMask);
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            float value = toFloat(loaded[i]);
            if (kHasBias) {
                const float bias = !kCut || i * kLanes < left
                        ? params.colBias[columnOf(i)]
                        : 0.0f;
                value = (value + bias) + rowBias;
                value = value < floor ? floor : value;
                keys[i] = numberOf(value, 1.0f);
            } else {
                keys[i] = numberOf(value, sign);
            }
        }
    }

    /// orderedKey() of value * sign, where sign is 1 or -1, in 4 instructions
    /// for 7: what a multiplication and an addition make of a NaN is 0x7FFFFFFF
    /// (CUDA C++ Programming Guide, Floating-Point Standard), which comes out
    /// as kNanKey, and of -0 it is 0.
    __device__ __forceinline__ static uint32_t numberOf(
            float value,
            float sign) {
        const int bits = __float_as_int(__fmaf_rn(value, sign, 0.0f));
        return uint32_t(bits) ^ (uint32_t(bits >> 31) | 0x80000000u);
    }

    /// Bits of this lane's keys that are below one.
    __device__ __forceinline__ uint32_t below(uint32_t key) const {
        uint32_t bits = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            bits |= keys[i] < key ? 1u << i : 0;
        }
        return bits;
    }

    /// Bits of this lane's keys that are equal to one.
    __device__ __forceinline__ uint32_t equalTo(uint32_t key) const {
        uint32_t bits = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            bits |= keys[i] == key ? 1u << i : 0;
        }
        return bits;
    }

    /// Bits of this lane's keys in columns up to one.
    __device__ __forceinline__ uint32_t upTo(uint32_t column) const {
        const uint32_t first = columnOf(0);
        const uint32_t count =
                column < first ? 0 : (column - first) / kLanes + 1;
        return count < 32 ? (1u << count) - 1 : ~0u;
    }

    __device__ __forceinline__ uint32_t least() const {
        uint32_t out = keys[0];
#pragma unroll
        for (int i = 1; i < kItems; ++i) {
            out = min(out, keys[i]);
        }
        return out;
    }
};

} // namespace faiss_bits

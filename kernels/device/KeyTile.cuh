/// How kernels read a row of keys: a tile of it at a time, a few values
/// a thread, all loads in flight before the first use (Hanak 2023, 4.1.5).
#pragma once

#include <cfloat>

#include "kernels/device/Entry.cuh"
#include "kernels/device/KeySource.h"

namespace faiss_bits {

/// 16 bytes of keys.
template <class T>
struct alignas(16) KeyPack {
    static constexpr int kCount = 16 / sizeof(T);
    T values[kCount];
};

/// What a value must be to get into the buffer.
struct Radius {
    float limit = 0;        // numbers up to and including it pass
    bool everything = true; // NaN passes too: the list is not full of numbers
    uint64_t entryLimit = kNoEntry; // entries below it pass

    /// For values whose column may be lower than that of `kth`.
    __device__ static Radius upTo(uint64_t kth) {
        const uint32_t key = entryKey(kth);
        return {keyValue(key), key == kNanKey, makeEntry(key, 0xFFFFFFFFu)};
    }

    /// For values whose column is higher than that of every listed entry:
    /// equal keys lose, so the limit is the next smaller float.
    __device__ static Radius below(uint64_t kth) {
        const uint32_t key = entryKey(kth);
        if (kth == kNoEntry) {
            return {};
        }
        if (key == kNanKey) {
            return {__uint_as_float(0x7F800000u), false, kth}; // any number
        }
        // Zero is one value: the float below it is not -0.
        const uint32_t previous = key == 0x80000000u ? key - 2 : key - 1;
        return {keyValue(previous), false, kth};
    }
};

/// A tile of keys of any type, in the order of "smallest first".
template <class T, bool HasBias>
struct KeyTile {
    // Biased keys need twice the loads for the same number of values.
    static constexpr int kItems = HasBias ? 8 : 16;
    static constexpr int kPack = KeyPack<T>::kCount;
    static constexpr bool kHasBias = HasBias;

    const KeySource& params;
    const T* row; // of keys
    float rowBias = 0;

    float values[kItems];
    uint32_t firstColumn = 0;
    uint32_t valid = 0; // bit i: values[i] is inside the segment

    __device__ KeyTile(const KeySource& p, uint32_t rowOfKeys)
            : params(p),
              row(static_cast<const T*>(p.keys) + p.rowStride * rowOfKeys) {
        if (HasBias && p.rowBias) {
            rowBias = p.rowBias[rowOfKeys];
        }
    }

    KeyTile(const KeyTile&) = default;

    /// Of the same row.
    __device__ __forceinline__ KeyTile& operator=(const KeyTile& other) {
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            values[i] = other.values[i];
        }
        firstColumn = other.firstColumn;
        valid = other.valid;
        return *this;
    }

    __device__ static uint32_t rowLength(const KeySource& p) {
        return p.cols;
    }

    __device__ __forceinline__ int columnOffset(int i) const {
        return params.vectorLoads ? (i / kPack) * (blockDim.x * kPack) +
                        threadIdx.x * kPack + i % kPack
                                  : i * blockDim.x + threadIdx.x;
    }

    /// The key that is compared; without the clamp of biased keys.
    __device__ __forceinline__ float adjust(T key, uint32_t column) const {
        if (HasBias) {
            return (toFloat(key) + params.colBias[column]) + rowBias;
        }
        return __uint_as_float(__float_as_uint(toFloat(key)) ^ params.signMask);
    }

    __device__ __forceinline__ float clamp(float value) const {
        // Not fmaxf, which would turn NaN into a number.
        return HasBias && value < params.floor ? params.floor : value;
    }

    __device__ __forceinline__ void load(uint32_t begin, uint32_t end) {
        firstColumn = begin;
        const bool whole = end - begin >= blockDim.x * kItems;
        valid = (1u << kItems) - 1;
        if (whole && params.vectorLoads) {
            loadPacks();
        } else if (whole) {
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                const uint32_t column = begin + i * blockDim.x + threadIdx.x;
                values[i] = adjust(__ldg(row + column), column);
            }
        } else {
            loadPart(end);
        }
    }

    __device__ __forceinline__ uint32_t column(int i) const {
        return firstColumn + columnOffset(i);
    }

    /// Bits of the values that pass.
    __device__ __forceinline__ uint32_t passing(const Radius& radius) const {
        if (radius.everything) {
            return valid;
        }
        uint32_t mask = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            mask |= values[i] <= radius.limit ? 1u << i : 0u;
        }
        return mask & valid;
    }

    /// False only if no value of this thread passes: one compare a value.
    __device__ __forceinline__ bool mayPass(const Radius& radius) const {
        float least = values[0];
#pragma unroll
        for (int i = 1; i < kItems; ++i) {
            least = fminf(least, values[i]);
        }
        return radius.everything || least <= radius.limit;
    }

    /// Bits of the numbers up to and including `limit`.
    __device__ __forceinline__ uint32_t upTo(float limit) const {
        uint32_t mask = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            mask |= values[i] <= limit ? 1u << i : 0u;
        }
        return mask & valid;
    }

    /// False only if upTo(limit) is 0: one compare a value.
    __device__ __forceinline__ bool anyUpTo(float limit) const {
        float least = values[0];
#pragma unroll
        for (int i = 1; i < kItems; ++i) {
            least = fminf(least, values[i]);
        }
        return least <= limit;
    }

    /// Bits of the entries up to and including `limit`.
    __device__ __forceinline__ uint32_t notAbove(uint64_t limit) const {
        uint32_t mask = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t key = orderedKey(clamp(values[i]));
            mask |= makeEntry(key, column(i)) <= limit ? 1u << i : 0u;
        }
        return mask & valid;
    }

    /// Whether values that differ may have this key: those of biased keys are
    /// not yet clamped.
    __device__ __forceinline__ bool clampsAt(uint32_t key) const {
        return HasBias && key <= orderedKey(params.floor);
    }

    __device__ __forceinline__ uint64_t entryAt(uint32_t c) const {
        return makeEntry(orderedKey(clamp(adjust(__ldg(row + c), c))), c);
    }

    /// Keys of four neighbouring columns.
    struct alignas(4 * sizeof(T)) Four {
        T values[4];
    };

    /// Keys of columns c to c + 3; Vector, where a row allows vector loads and
    /// c is a multiple of 4, for the price of one.
    template <bool Vector>
    __device__ __forceinline__ Four fourAt(uint32_t c) const {
        Four keys;
        if constexpr (!Vector) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                keys.values[i] = __ldg(row + c + i);
            }
        } else if constexpr (sizeof(T) == 4) {
            reinterpret_cast<uint4&>(keys) =
                    __ldg(reinterpret_cast<const uint4*>(row + c));
        } else {
            reinterpret_cast<uint2&>(keys) =
                    __ldg(reinterpret_cast<const uint2*>(row + c));
        }
        return keys;
    }

    __device__ __forceinline__ uint64_t
    entryOf(const Four& keys, int i, uint32_t c) const {
        return makeEntry(
                orderedKey(clamp(adjust(keys.values[i], c + i))), c + i);
    }

    /// Entry of value i, read again: an index that is not known when the
    /// kernel is compiled would push the values out of the registers.
    __device__ __forceinline__ uint64_t entry(int i) const {
        return entryAt(column(i));
    }

    /// Whether the key of value i is -0 in memory. Not for biased keys.
    __device__ __forceinline__ bool isMinusZero(int i) const {
        return isMinusZeroKey(__ldg(row + column(i)));
    }
    __device__ __forceinline__ static bool isMinusZeroKey(T key) {
        return __float_as_uint(toFloat(key)) == 0x80000000u;
    }

    /// Least entry of the group'th of `Groups` parts of this thread's values;
    /// its column is not told.
    template <int Groups>
    __device__ __forceinline__ uint64_t leastOfGroup(int group) const {
        constexpr int kSize = kItems / Groups;
        uint64_t least = kNoEntry;
#pragma unroll
        for (int i = 0; i < kSize; ++i) {
            const int item = group * kSize + i;
            const uint64_t e =
                    makeEntry(orderedKey(clamp(values[item])), 0xFFFFFFFEu);
            if (((valid >> item) & 1) && e < least) {
                least = e;
            }
        }
        return least;
    }

   private:
    __device__ __forceinline__ void loadPacks() {
        KeyPack<T> packs[kItems / kPack];
        KeyPack<float> bias[HasBias ? kItems / 4 : 1];
#pragma unroll
        for (int v = 0; v < kItems / kPack; ++v) {
            const uint32_t c =
                    firstColumn + (v * blockDim.x + threadIdx.x) * kPack;
            reinterpret_cast<uint4&>(packs[v]) =
                    __ldg(reinterpret_cast<const uint4*>(row + c));
            if constexpr (HasBias) {
                reinterpret_cast<uint4&>(bias[v]) = __ldg(
                        reinterpret_cast<const uint4*>(params.colBias + c));
            }
        }
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const T key = packs[i / kPack].values[i % kPack];
            if constexpr (HasBias) {
                values[i] =
                        (toFloat(key) + bias[i / 4].values[i % 4]) + rowBias;
            } else {
                values[i] = adjust(key, 0);
            }
        }
    }

    /// All loads in flight before the first use: where a load is conditional
    /// and what it feeds is too, the compiler lets some wait for others.
    __device__ void loadPart(uint32_t end) {
        T loaded[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t c = column(i);
            loaded[i] = T(__uint_as_float(0x7FC00000u));
            if (c < end) {
                loaded[i] = __ldg(row + c);
            } else {
                valid &= ~(1u << i);
            }
        }
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            // No bias is there behind the row's end.
            values[i] = !HasBias || (valid >> i & 1) != 0
                    ? adjust(loaded[i], column(i))
                    : toFloat(loaded[i]);
        }
    }
};

} // namespace faiss_bits

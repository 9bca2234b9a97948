/// Tiles that span their row: lines of memory, one of each piece of the row,
/// much as the teeth of a comb (CombLines.h). So each tile is a sample of the
/// row, which costs no read of its own, and no slow rise or fall of keys leads
/// it astray.
#pragma once

#include <type_traits>

#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// A row that begins at any address: its lines, and what is before the first of
/// them (the head) and behind the last (the tail), less than a line each.
template <class T>
struct CombSpan {
    static constexpr uint32_t kLineBytes = 128;
    static constexpr uint32_t kLineKeys = kLineBytes / sizeof(T);

    uint32_t headEnd; // the head is [0, headEnd)
    uint32_t lines;
    uint32_t tail; // the tail is [tail, cols)
    uint32_t numTiles;

    __device__ __forceinline__
    CombSpan(const T* row, uint32_t cols, uint32_t linesOfTile) {
        const auto address = uint32_t(reinterpret_cast<uintptr_t>(row));
        headEnd = min((0u - address) % kLineBytes / uint32_t(sizeof(T)), cols);
        lines = (cols - headEnd) / kLineKeys;
        tail = headEnd + lines * kLineKeys;
        numTiles = (lines + linesOfTile - 1) / linesOfTile;
    }
};

/// 16 bytes of keys and what is least of them, without putting each in order:
/// two 16-bit keys are compared at once.
template <class T>
struct alignas(16) CombPack {
    static constexpr int kCount = 16 / sizeof(T);
    uint32_t words[4];

    /// What stands for keys that are none of the row's: NaN of every type.
    static constexpr uint32_t kNans = 0x7FFF7FFFu;

    __device__ __forceinline__ static T key(uint32_t bits) {
        if constexpr (sizeof(T) == 4) {
            return __uint_as_float(bits);
        } else {
            const auto half = static_cast<unsigned short>(bits);
            return reinterpret_cast<const T&>(half);
        }
    }

    /// The lesser, or greater, of keys in words, pair by pair; NaN loses.
    template <bool Largest>
    __device__ __forceinline__ static uint32_t better(uint32_t a, uint32_t b) {
        if constexpr (sizeof(T) == 4) {
            const float x = __uint_as_float(a);
            const float y = __uint_as_float(b);
            return __float_as_uint(Largest ? fmaxf(x, y) : fminf(x, y));
        } else if constexpr (std::is_same_v<T, __half>) {
            const auto x = reinterpret_cast<const __half2&>(a);
            const auto y = reinterpret_cast<const __half2&>(b);
            const __half2 best = Largest ? __hmax2(x, y) : __hmin2(x, y);
            return reinterpret_cast<const uint32_t&>(best);
        } else {
            const auto x = reinterpret_cast<const __nv_bfloat162&>(a);
            const auto y = reinterpret_cast<const __nv_bfloat162&>(b);
            const __nv_bfloat162 best = Largest ? __hmax2(x, y) : __hmin2(x, y);
            return reinterpret_cast<const uint32_t&>(best);
        }
    }

    template <bool Largest>
    __device__ __forceinline__ uint32_t best() const {
        return better<Largest>(
                better<Largest>(words[0], words[1]),
                better<Largest>(words[2], words[3]));
    }

    /// Of a word that best() made, in the order of "smallest first": of all, or
    /// of 16-bit keys those of even and odd places.
    template <bool Largest>
    __device__ __forceinline__ static float valueOf(uint32_t best) {
        if constexpr (sizeof(T) == 4) {
            return inOrder<Largest>(__uint_as_float(best));
        } else {
            return fminf(even<Largest>(best), odd<Largest>(best));
        }
    }
    template <bool Largest>
    __device__ __forceinline__ static float even(uint32_t best) {
        return inOrder<Largest>(toFloat(key(best & 0xFFFFu)));
    }
    template <bool Largest>
    __device__ __forceinline__ static float odd(uint32_t best) {
        return inOrder<Largest>(toFloat(key(best >> 16)));
    }

   private:
    template <bool Largest>
    __device__ __forceinline__ static float inOrder(float value) {
        return Largest ? -value : value;
    }
};

} // namespace faiss_bits

/// k = 1 in rows of some thousand columns: a block reads a row, 16 bytes a
/// thread and load, and no key is put in order but the least of each thread.
///
/// Bound by: the read of the keys; few rows by the latency of one row's.
#pragma once

#include "kernels/device/KeyTile.cuh"
#include "kernels/select/short_rows/LeastOfRows.cuh"

namespace faiss_bits {

/// Keys without bias of a row that begins at any address. Each of kThreads
/// threads has kItems keys at a time, in packs; up to a pack of keys before the
/// first whole one, and behind the last, are one a thread.
template <class T, int kThreads, int kItems>
struct LeastOfPacks {
    static constexpr uint32_t kPack = KeyPack<T>::kCount;
    static constexpr int kPacks = kItems / int(kPack);
    static_assert(kThreads >= int(kPack));

    const SelectParams& params;
    float best = 0;
    uint32_t column = 0;

    /// Columns of a thread ascend, so the first of equal keys counts. There are
    /// at least as many as threads.
    __device__ __forceinline__ uint64_t ofThread(uint32_t row) {
        best = __uint_as_float(0x7FFFFFFFu);
        column = threadIdx.x; // if all are NaN
        const T* keys =
                static_cast<const T*>(params.keys) + params.rowStride * row;
        const uint32_t before =
                (16 - uint32_t(reinterpret_cast<uintptr_t>(keys) % 16)) % 16 /
                uint32_t(sizeof(T));
        const uint32_t begin = min(before, params.cols);
        const uint32_t packs = (params.cols - begin) / kPack;
        const uint32_t tail = begin + packs * kPack + threadIdx.x;
        // Both are on their way while the packs are read.
        T first = T(__uint_as_float(0x7FC00000u));
        T last = first;
        if (threadIdx.x < begin) {
            first = __ldg(keys + threadIdx.x);
        }
        if (tail < params.cols) {
            last = __ldg(keys + tail);
        }
        take(valueOf(first), threadIdx.x);
        for (uint32_t at = 0; at < packs; at += kThreads * kPacks) {
            takePacks(keys + begin, at, packs, begin);
        }
        take(valueOf(last), tail);
        return makeEntry(orderedKey(best), column);
    }

   private:
    __device__ __forceinline__ float valueOf(T key) const {
        return __uint_as_float(__float_as_uint(toFloat(key)) ^ params.signMask);
    }

    /// The first number, too, is better than NaN.
    __device__ __forceinline__ bool isBetter(float value) const {
        return value == value && !(best <= value);
    }

    __device__ __forceinline__ void take(float value, uint32_t c) {
        if (isBetter(value)) {
            best = value;
            column = c;
        }
    }

    /// All loads in flight before the first use.
    __device__ __forceinline__ void takePacks(
            const T* keys,
            uint32_t at,
            uint32_t packs,
            uint32_t begin) {
        const uint4* from =
                reinterpret_cast<const uint4*>(keys) + at + threadIdx.x;
        KeyPack<T> loaded[kPacks];
        const int left = int(packs - at) - int(threadIdx.x);
        if (packs - at >= kPacks * kThreads) { // in all threads or none
#pragma unroll
            for (int i = 0; i < kPacks; ++i) {
                reinterpret_cast<uint4&>(loaded[i]) =
                        __ldg(from + i * kThreads);
            }
        } else {
#pragma unroll
            for (int i = 0; i < kPacks; ++i) {
#pragma unroll
                for (int j = 0; j < int(kPack); ++j) {
                    loaded[i].values[j] = T(__uint_as_float(0x7FC00000u));
                }
                if (i * kThreads < left) {
                    reinterpret_cast<uint4&>(loaded[i]) =
                            __ldg(from + i * kThreads);
                }
            }
        }
        float values[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            values[i] = valueOf(loaded[i / kPack].values[i % kPack]);
        }
        float least = values[0];
#pragma unroll
        for (int i = 1; i < kItems; ++i) {
            least = fminf(least, values[i]);
        }
        if (isBetter(least)) {
            best = least;
            uint32_t place = 0;
#pragma unroll
            for (int i = kItems - 1; i >= 0; --i) {
                place = values[i] == least
                        ? i / kPack * (kThreads * kPack) + i % kPack
                        : place;
            }
            column = begin + (at + threadIdx.x) * kPack + place;
        }
    }
};

/// One row a block.
template <class T, int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads)
        leastOfPacksKernel(const __grid_constant__ ShortRowsParams params) {
    const uint32_t row = params.select.firstRow + blockIdx.x;
    LeastOfPacks<T, kThreads, kItems> least{params.select};
    const uint64_t entry = leastOfLanes<kThreads>(least.ofThread(row));
    if (threadIdx.x == 0) {
        writeResult<T>(params.select, row, 0, entry);
    }
}

} // namespace faiss_bits

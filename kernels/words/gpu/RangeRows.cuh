#pragma once

#include "kernels/device/LaneSums.cuh"
#include "kernels/words/gpu/FoundBuffer.cuh"
#include "kernels/words/gpu/WordLaunch.h"

/// From results in any order to those of query after query, by ascending id.
namespace faiss_bits::words {

constexpr uint32_t kRowThreads = 128;

/// A result with its place: id in the upper half, distance in the lower.
using RowEntry = uint64_t;

/// Sorted by its first letters, shorter than 32 letters first; kLongQuery
/// letters and more last. No letter is all ones in `bits`.
static __global__ void queryKeysKernel(
        const uint32_t* letters,
        const idx_t* begins,
        uint32_t count,
        uint32_t bits, // of a letter
        uint64_t* keys,
        uint32_t* numbers) {
    const uint32_t query = blockIdx.x * blockDim.x + threadIdx.x;
    if (query >= count) {
        return;
    }
    const idx_t begin = begins[query];
    const auto length = uint32_t(begins[query + 1] - begin);
    uint64_t key = length >= 32;
    const uint32_t most = 63 / bits;
    for (uint32_t i = 0; i < most; ++i) {
        key = key << bits | (i < length ? letters[begin + i] + 1 : 0);
    }
    keys[query] = length < kLongQuery ? key : ~uint64_t(0);
    numbers[query] = query;
}

/// Brings results to the rows of their queries. counts [queries] come down to
/// zero.
static __global__ void gatherRowsKernel(
        const uint64_t* found,
        idx_t total,
        const uint32_t* ids, // by place
        const idx_t* limits,
        Count* counts,
        RowEntry* rows) {
    const idx_t step = idx_t(gridDim.x) * blockDim.x;
    for (idx_t i = idx_t(blockIdx.x) * blockDim.x + threadIdx.x; i < total;
         i += step) {
        const uint64_t one = found[i];
        const uint32_t query = queryOf(one);
        const idx_t place =
                limits[query] + idx_t(atomicAdd(counts + query, ~Count(0)) - 1);
        rows[place] = uint64_t(ids[placeOf(one)]) << 32 | distanceOf(one);
    }
}

inline __device__ void writeEntry(
        RowEntry entry,
        idx_t place,
        int32_t* distances,
        idx_t* ids) {
    distances[place] = int32_t(uint32_t(entry));
    ids[place] = idx_t(entry >> 32);
}

/// Sorts a row a block by id. Ids are all different, so an entry's place is the
/// number of smaller ids: counted, or in long rows found in a map of all ids of
/// a window, a bit each, and the number of bits before every 256th.
/// Shared memory: window / 8 + (window / 256 + 1) * 4 bytes.
static __global__ void __launch_bounds__(kRowThreads) sortRowsKernel(
        const RowEntry* rows,
        const idx_t* limits,
        uint32_t numIds,
        uint32_t window, // multiple of 256
        int32_t* distances,
        idx_t* ids) {
    extern __shared__ __align__(16) uint32_t rowsShared[];
    __shared__ RowEntry few[kRowThreads];
    __shared__ uint32_t warpSums[kRowThreads / 32];
    const idx_t first = limits[blockIdx.x];
    const auto count = uint32_t(limits[blockIdx.x + 1] - first);
    rows += first;
    if (count <= kRowThreads) {
        RowEntry mine = 0;
        if (threadIdx.x < count) {
            mine = few[threadIdx.x] = rows[threadIdx.x];
        }
        __syncthreads();
        if (threadIdx.x < count) {
            uint32_t smaller = 0;
            for (uint32_t i = 0; i < count; ++i) {
                smaller += few[i] < mine;
            }
            writeEntry(mine, first + smaller, distances, ids);
        }
        return;
    }
    constexpr uint32_t kSpan = 256; // ids of a span
    uint32_t* const bits = rowsShared;
    uint32_t* const before = rowsShared + window / 32;
    idx_t written = first;
    for (uint64_t begin = 0; begin < numIds; begin += window) {
        const auto size = uint32_t(min(uint64_t(window), numIds - begin));
        const uint32_t spans = (size + kSpan - 1) / kSpan;
        for (uint32_t i = threadIdx.x; i < spans * (kSpan / 32);
             i += kRowThreads) {
            bits[i] = 0;
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < count; i += kRowThreads) {
            const uint64_t id = (rows[i] >> 32) - begin; // wraps below it
            if (id < size) {
                atomicOr(bits + id / 32, 1u << id % 32);
            }
        }
        __syncthreads();
        // Numbers of the spans of a thread, then of the threads before it.
        const uint32_t perThread = (spans + kRowThreads - 1) / kRowThreads;
        const uint32_t spansBegin = min(threadIdx.x * perThread, spans);
        const uint32_t spansEnd = min(spansBegin + perThread, spans);
        uint32_t sum = 0;
        for (uint32_t span = spansBegin; span < spansEnd; ++span) {
            before[span] = sum;
            for (uint32_t i = 0; i < kSpan / 32; ++i) {
                sum += __popc(bits[span * (kSpan / 32) + i]);
            }
        }
        const uint32_t lane = threadIdx.x % 32;
        const uint32_t upTo = sumUpToLane(sum);
        if (lane == 31) {
            warpSums[threadIdx.x / 32] = upTo;
        }
        __syncthreads();
        uint32_t base = upTo - sum, total = 0;
        for (uint32_t warp = 0; warp < kRowThreads / 32; ++warp) {
            base += warp < threadIdx.x / 32 ? warpSums[warp] : 0;
            total += warpSums[warp];
        }
        for (uint32_t span = spansBegin; span < spansEnd; ++span) {
            before[span] += base;
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < count; i += kRowThreads) {
            const RowEntry entry = rows[i];
            const uint64_t id = (entry >> 32) - begin;
            if (id >= size) {
                continue;
            }
            const auto word = uint32_t(id / 32);
            const uint32_t span = word / (kSpan / 32);
            uint32_t smaller = before[span];
            for (uint32_t j = span * (kSpan / 32); j < word; ++j) {
                smaller += __popc(bits[j]);
            }
            smaller += __popc(bits[word] & ((1u << id % 32) - 1));
            writeEntry(entry, written + smaller, distances, ids);
        }
        written += total;
        __syncthreads();
    }
}

} // namespace faiss_bits::words

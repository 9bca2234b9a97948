/// Kernels of the sort of runs.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/select/large_k/Composite.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// One block a run of at most Threads * Items entries.
template <class T, int Threads, int Items>
__global__ void __launch_bounds__(Threads) sortRunKernel(
        const __grid_constant__ SelectParams p,
        const uint64_t* entries, // [rows, stride]
        uint32_t stride,
        const uint32_t* counts) {
    using Sorter = BlockBitonic<Threads, Items>;
    constexpr uint32_t kChunk = Sorter::kRows * Threads;
    __shared__ typename Sorter::SharedStorage shared;
    const uint32_t row = blockIdx.x;
    const uint32_t count = counts ? counts[row] : stride;
    const uint64_t* run = entries + uint64_t(row) * stride;
    uint64_t items[Items];
#pragma unroll
    for (int i = 0; i < Items; ++i) {
        const uint32_t at = i * Threads + threadIdx.x;
        items[i] = at < count ? run[at] : kNoEntry;
    }
    Sorter{shared}.sort(
            items, true, [](uint64_t a, uint64_t b) { return a < b; });
    // Consecutive places belong to one thread: turned round in shared memory,
    // so that warps write consecutive words.
    for (uint32_t first = 0; first < Sorter::kSize; first += kChunk) {
        __syncthreads();
        const uint32_t mine = threadIdx.x * Items - first;
        if (mine < kChunk) {
#pragma unroll
            for (int i = 0; i < Items; ++i) {
                shared.rows[mine + i] = items[i];
            }
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < kChunk; i += Threads) {
            if (first + i < uint32_t(p.k)) {
                writeResult<T>(p, p.firstRow + row, first + i, shared.rows[i]);
            }
        }
    }
    // k is more than the run could hold.
    for (uint32_t place = Sorter::kSize + threadIdx.x; place < uint32_t(p.k);
         place += Threads) {
        writeResult<T>(p, p.firstRow + row, place, kNoEntry);
    }
}

constexpr int kRunThreads = 256;
/// Places that one block of the elementwise kernels takes of a run.
constexpr uint32_t kRunPart = 4096;

/// parts x rows blocks: the first k sorted composites of every run.
template <class T>
__global__ void __launch_bounds__(kRunThreads) writeRunsKernel(
        const __grid_constant__ SelectParams p,
        const __grid_constant__ CompositeLayout layout,
        const uint64_t* sorted, // [rows, stride]
        uint32_t stride,
        const uint32_t* counts) {
    const uint32_t row = blockIdx.y;
    const uint32_t count = counts ? counts[row] : stride;
    const uint64_t* run = sorted + uint64_t(row) * stride;
    const uint32_t begin = blockIdx.x * kRunPart;
    for (uint32_t i = threadIdx.x; i < kRunPart; i += kRunThreads) {
        const uint32_t place = begin + i;
        if (place < uint32_t(p.k)) {
            const uint64_t entry =
                    place < count ? entryOf(layout, run[place]) : kNoEntry;
            writeResult<T>(p, p.firstRow + row, place, entry);
        }
    }
}

/// parts x rows blocks: every column as it comes, and sentinels behind.
template <class T>
__global__ void __launch_bounds__(kRunThreads)
        writeAllKernel(const __grid_constant__ SelectParams p) {
    const uint32_t row = p.firstRow + blockIdx.y;
    const uint32_t begin = blockIdx.x * kRunPart;
    for (uint32_t i = threadIdx.x; i < kRunPart; i += kRunThreads) {
        const uint32_t place = begin + i;
        if (place < uint32_t(p.k)) {
            // The key of a NaN is looked up in memory: here, every key.
            const uint64_t entry =
                    place < p.cols ? makeEntry(kNanKey, place) : kNoEntry;
            writeResult<T>(p, row, int(place), entry);
        }
    }
}

} // namespace faiss_bits

/// What ScanAgain does with the lists of its slots. Included by ScanAgain.cuh.
#pragma once

#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Leaves the k nearest entries of a list, and the limit that they set.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::keepNearest(
        uint32_t slot,
        bool isLast) {
    __syncthreads();
    const uint32_t k = params.keep;
    const uint32_t count = __ldcg(params.counts + slot);
    // Some more are sorted with them in the end.
    const uint32_t most =
            isLast ? max(k, min(2 * k + 256, uint32_t(kSharedSort))) : k;
    if (count <= most) {
        if (threadIdx.x == 0) {
            shared.counts[slot] = count;
        }
        return;
    }
    unsigned long long* list = reinterpret_cast<unsigned long long*>(
            params.lists + slot * params.capacity);
    const auto forEach = [&](auto take) {
        // Several loads in flight.
        constexpr int kChunk = 8;
        for (uint32_t i = threadIdx.x; i < count; i += kChunk * kThreads) {
            uint64_t chunk[kChunk];
#pragma unroll
            for (int j = 0; j < kChunk; ++j) {
                const uint32_t at = i + j * kThreads;
                chunk[j] = at < count ? __ldcg(list + at) : kNoEntry;
            }
#pragma unroll
            for (int j = 0; j < kChunk; ++j) {
                if (chunk[j] != kNoEntry) {
                    take(chunk[j]);
                }
            }
        }
    };
    const uint64_t limit = Narrow{shared.narrow}.limit(forEach, k, k);
    if (threadIdx.x == 0) {
        shared.kept = 0;
    }
    __syncthreads();
    // Places before those that are still to be read are free.
    constexpr int kChunk = 8;
    for (uint32_t base = 0; base < count; base += kChunk * kThreads) {
        uint64_t chunk[kChunk];
#pragma unroll
        for (int j = 0; j < kChunk; ++j) {
            const uint32_t at = base + j * kThreads + threadIdx.x;
            chunk[j] = at < count ? __ldcg(list + at) : kNoEntry;
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < kChunk; ++j) {
            if (chunk[j] <= limit && chunk[j] != kNoEntry) {
                list[atomicAdd(&shared.kept, 1u)] = chunk[j];
            }
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        params.counts[slot] = shared.counts[slot] = shared.kept;
        // k entries are below what is appended from now on.
        params.limits[slot] = limit;
    }
}

/// Sorts a list and writes the row's result.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::finish(
        uint32_t slot) {
    __syncthreads();
    const int k = params.search.k;
    const uint32_t row = shared.rows[slot];
    uint64_t* list = params.lists + slot * params.capacity;
    const uint32_t count = __ldcg(params.counts + slot);
    uint64_t* entries = count <= kSharedSort ? shared.sort : list;
    if (entries != list) {
        for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
            entries[i] = list[i];
        }
    }
    sortAscending<kThreads>(entries, count);
    for (int i = threadIdx.x; i < k; i += kThreads) {
        writePlace<kMetric>(
                params.search,
                row,
                i,
                uint32_t(i) < count ? entries[i] : kNoEntry);
    }
    __syncthreads();
}

} // namespace faiss_bits

/// Rows whose candidates rankCandidates() left, as too many of them are alike
/// by their approximate keys to be compared one with another: they are sorted,
/// and the proof is made then. Included by ScanAgain.cuh.
#pragma once

#include "kernels/knn/certified/Rescore.cuh"
#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// A block has every gridDim.x-th row, whatever the flags of others are: these
/// change meanwhile, so that blocks that listed flagged rows would not find the
/// same. Rows that are proved have no flags afterwards.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::sortAlike() {
    const CertifiedParams& search = params.search;
    for (uint64_t base = blockIdx.x; base < search.rows;
         base += uint64_t(kThreads) * gridDim.x) {
        const uint64_t row = base + uint64_t(threadIdx.x) * gridDim.x;
        __syncthreads();
        if (threadIdx.x == 0) {
            shared.kept = 0;
        }
        __syncthreads();
        if (row < search.rows && search.flags[2 * row + 1] != 0) {
            shared.rows[atomicAdd(&shared.kept, 1u)] = uint32_t(row);
        }
        __syncthreads();
        const uint32_t count = shared.kept;
        for (uint32_t i = 0; i < count; ++i) {
            sortCandidates(shared.rows[i]);
        }
    }
}

template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::sortCandidates(
        uint32_t row) {
    const CertifiedParams& search = params.search;
    __syncthreads();
    const uint32_t count = uint32_t(countCandidates(search, row));
    uint64_t* list = search.entries + int64_t(row) * search.numCandidates;
    uint64_t* entries = count <= kSharedSort ? shared.sort : list;
    if (entries != list) {
        for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
            entries[i] = list[i];
        }
    }
    sortAscending<kThreads>(entries, count);
    const RowBound<kMetric> bound =
            rowBound<kMetric, kThreads>(search, row, shared.norms);
    const uint32_t k = uint32_t(search.k);
    // As rankCandidates() has it; a candidate that is no number says that
    // their order is worth too little.
    bool isProved = count > 0 && entries[count - 1] != kNoEntry;
    if (isProved && count < search.numAllowed) {
        const double key = keyValue(entryKey(entries[min(k, count) - 1]));
        const double error = bound.at(key);
        const double above = key + error;
        const float last =
                search.keys[int64_t(row) * search.numCandidates + count - 1];
        const bool isFar = count < uint32_t(search.numCandidates) ||
                double(kIsSimilarity<kMetric> ? -last : last) > above;
        isProved = count >= k && isFar && isfinite(above) &&
                isfinite(bound.leastFrom(key, error));
    }
    if (!isProved) {
        return;
    }
    for (uint32_t i = threadIdx.x; i < k; i += kThreads) {
        writePlace<kMetric>(
                search, row, int(i), i < count ? entries[i] : kNoEntry);
    }
    if (threadIdx.x == 0) {
        search.flags[2 * int64_t(row)] = 0;
        search.flags[2 * int64_t(row) + 1] = 0;
    }
}

} // namespace faiss_bits

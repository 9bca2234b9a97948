/// The limits of ScanAgain's slots. Included by ScanAgain.cuh.
#pragma once

#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// The least key that a distance may have. In the order of results only vectors
/// of lower numbers that have it too come before one that has it. A cosine is
/// at most 1 but for roundings in float64, which float32 does not show
/// (docs/bounds.md).
template <Metric kMetric>
__device__ __forceinline__ uint32_t leastKey() {
    switch (kMetric) {
        case Metric::L2:
        case Metric::L1:
        case Metric::Linf:
        case Metric::Lp:
        case Metric::Canberra:
        case Metric::BrayCurtis:
            return orderedKey(0.0f);
        case Metric::Cosine:
            return orderedKey(-1.0f);
        default: // of largest first, that of infinity
            return orderedKey(-__int_as_float(0x7F800000));
    }
}

/// What is just behind the last of the results that a row has already, as that
/// one is to be found again. kNoEntry: it has less than k, or they were not
/// ranked.
template <Metric kMetric, class Begin>
__device__ __forceinline__ uint64_t
ScanAgain<kMetric, Begin>::rankedLimit(uint32_t row) const {
    const CertifiedParams& search = params.search;
    const int last = int(params.keep) - 1;
    // Rows with the second flag are ranked where sortAlike() has been.
    const auto isRanked = [&] {
        return params.areRanked && last < search.numCandidates &&
                (search.flags[2 * int64_t(row) + 1] == 0 ||
                 params.mayBeAlike) &&
                search.columns[int64_t(row) * search.numCandidates + last] >= 0;
    };
    if (!params.haveResults && !isRanked()) {
        return kNoEntry;
    }
    const int64_t at = int64_t(row) * search.k + last;
    const int64_t id = search.ids64
            ? static_cast<const int64_t*>(search.outIds)[at]
            : static_cast<const int32_t*>(search.outIds)[at];
    const float distance = search.outDistances[at];
    const float key = kIsSimilarity<kMetric> ? 0.0f - distance : distance;
    return id < 0 ? kNoEntry : makeEntry(orderedKey(key), uint32_t(id)) + 1;
}

/// The limit of a slot as it is now, to shared memory. Returns which vector is
/// the first that is within it no more, if that is known. Thousands may be
/// infinitely near, or equal to the query: those behind the k-th of these that
/// is known are not among the results.
template <Metric kMetric, class Begin>
__device__ __forceinline__ uint32_t
ScanAgain<kMetric, Begin>::readLimit(uint32_t slot) {
    const uint64_t limit = __ldcg(
            reinterpret_cast<const unsigned long long*>(params.limits + slot));
    shared.limits[slot] = limit;
    // Of no entry the key is a NaN: nothing is beyond.
    shared.beyond[slot] = keyValue(entryKey(limit) + 1);
    return entryKey(limit) <= leastKey<kMetric>() ? entryColumn(limit) : ~0u;
}

/// Limits as they are before a step, and until it ends. Counts are not read
/// here: a block that comes late would find what others have appended.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::readLimits(
        uint32_t used) {
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < kEnds; i += kThreads) {
        shared.ends[i] = 0;
    }
    __syncthreads();
    for (uint32_t s = threadIdx.x; s < used; s += kThreads) {
        atomicMax(&shared.ends[s / kEndSlots], readLimit(s));
    }
    __syncthreads();
}

} // namespace faiss_bits

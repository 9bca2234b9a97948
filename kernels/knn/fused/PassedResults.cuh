/// From the k best of what passed to a row's results.
#pragma once

#include "kernels/device/WarpList.cuh"
#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits {

/// Whether no vector is missing in a row whose k-th entry is `kth`.
///
/// complete  see SurvivorOutput
/// hasAll    there was room for all that passed
__device__ __forceinline__ bool isProved(
        uint64_t kth,
        float complete,
        bool hasAll) {
    if (isnan(complete)) {
        return true;
    }
    if (!hasAll) {
        return false;
    }
    if (isinf(complete)) {
        return complete > 0; // minus infinity: nothing is known
    }
    return kth != kNoEntry && keyValue(entryKey(kth)) <= complete;
}

/// Writes the results of a row, and whether none is missing. All lanes of the
/// warp call it.
template <Metric kMetric, int kRows>
__device__ __forceinline__ void writePassed(
        const CertifiedParams& search,
        uint32_t row,
        const WarpList<kRows>& list,
        float complete,
        bool hasAll) {
    const int lane = threadIdx.x % kWarpSize;
    const int last = search.k - 1;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        const int place = r * kWarpSize + lane;
        if (place < search.k) {
            writePlace<kMetric>(search, row, place, list.item(r));
        }
        if (place == last) {
            search.flags[2 * int64_t(row)] =
                    !isProved(list.item(r), complete, hasAll);
            search.flags[2 * int64_t(row) + 1] = 0;
        }
    }
}

} // namespace faiss_bits

/// Lists that more has passed than they have room for.
#pragma once

#include "kernels/knn/fused/PassedLists.h"

namespace faiss_bits {

/// Whether a row's list is one. Its query is searched again, so that a scan can
/// leave it alone from then on: where half of all pairs pass, as equal vectors
/// do, to append them takes many times as long as the scan.
__device__ __forceinline__ bool isOverfull(
        const PassedLists& lists,
        uint64_t row) {
    return lists.counts && !lists.bits &&
            __ldcg(lists.counts + row) > lists.capacity;
}

} // namespace faiss_bits

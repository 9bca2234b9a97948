/// The slots of a row that eight lanes score, and distances by the definition
/// of those that sums of products leave in doubt.
#pragma once

#include "kernels/knn/fused/ScoreSlots.h"
#include "kernels/knn/fused/SlotQuery.cuh"
#include "kernels/knn/fused/SortRows.cuh"

namespace faiss_bits {

/// Of a row. A slot holds a vector until it has its distance.
struct RowSlots {
    static constexpr uint32_t kKept = kMostSlotK;

    uint64_t entries[SortRows::kMost + 2]; // rows in different banks
    uint32_t order[kKept];                 // slots of the nearest
};

/// Slots at .. end - 1 of the lane's row that have a vector and no distance,
/// which are few but far from the origin: by the definition. No part of the
/// caller, whose registers are for products. All lanes of the warp call it.
/// Returns whether none waits: where components are moved (SlotQuery.cuh), a
/// distance that may be infinite is left.
///
/// query  of the row
template <int kSteps, int kMoved>
__device__ __noinline__ bool scoreWaiting(
        const ScoreSlotsParams& params,
        RowSlots& slots,
        const float* query,
        uint32_t at,
        uint32_t end) {
    constexpr Metric kMetric = Metric::L2; // whose keys are not 0
    constexpr int kPairs = kMoved > 0 ? 4 : 2;
    constexpr double kInfinite = 0x1p127;
    using Query = SlotQuery<kMetric, kSteps>;
    const CertifiedParams& search = params.passed.search;
    const Query its(query, search.d);
    const uint32_t lane = threadIdx.x % kPairLanes;
    const float4* const rows = params.slotRows + lane;
    const uint32_t zero = uint32_t(search.d) / (kSteps * kSlotStep + 1);
    bool isDone = true;
    for (; __any_sync(kFullWarp, at < end); at += kPairs) {
        uint32_t vectors[kPairs];
        bool isWaiting[kPairs];
        bool any = false;
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            const uint64_t slot =
                    at + p < end ? slots.entries[at + p] : kNoEntry;
            isWaiting[p] = entryKey(slot) == 0;
            vectors[p] = isWaiting[p] ? entryColumn(slot) : 0;
            any |= isWaiting[p];
        }
        if (!__any_sync(kFullWarp, any)) {
            continue;
        }
        const float4* from[kPairs];
        double exact[kPairs];
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            from[p] = rows + size_t(vectors[p]) * Query::kRowPacks;
        }
        its.template distancesByMoves<kMoved>(from, search.power, exact, zero);
        __syncwarp(); // all have read the slots
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            const bool isTold = kMoved == 0 || exact[p] < kInfinite;
            isDone &= isTold || !isWaiting[p];
            if (lane == 0 && isWaiting[p] && isTold) {
                slots.entries[at + p] =
                        distanceEntry<kMetric>(exact[p], vectors[p]);
            }
        }
    }
    __syncwarp();
    return __all_sync(kFullWarp, isDone);
}

} // namespace faiss_bits

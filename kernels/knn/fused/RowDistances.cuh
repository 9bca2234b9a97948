/// Canonical distances of the vectors that rows of bits have, eight lanes a
/// row: by the definition, or by products where these tell.
#pragma once

#include "kernels/knn/fused/ScoreSlots.h"
#include "kernels/knn/fused/SlotProducts.cuh"
#include "kernels/knn/fused/SlotQuery.cuh"
#include "kernels/knn/fused/SortRows.cuh"

namespace faiss_bits {

/// Of a row. A slot holds a vector until it has its distance.
struct RowSlots {
    static constexpr uint32_t kKept = kMostSlotK;

    uint64_t entries[SortRows::kMost + 2]; // rows in different banks
    uint32_t order[kKept];                 // slots of the nearest
};

/// By the definition. All lanes of the warp call each function, here and below.
/// kMoved: SlotQuery.cuh.
template <int kSteps, int kMostMoved>
class RowByDefinition {
    static constexpr Metric kMetric = Metric::L2;
    using Query = SlotQuery<kMetric, kSteps>;

   public:
    static constexpr bool kTakesRows = false; // slots have vectors

    __device__ __forceinline__
    RowByDefinition(const ScoreSlotsParams& params, uint32_t row)
            : params_(params),
              query_(params.passed.search.queries +
                             int64_t(row) * params.passed.search.d,
                     params.passed.search.d) {}

    /// Vectors of slots from .. end - 1 to entries.
    __device__ __forceinline__ void score(
            RowSlots& slots,
            uint32_t from,
            uint32_t end) const {
        scoreBy<kMostMoved>(slots, from, end);
        if (kMostMoved == 0) {
            return;
        }
        const uint32_t infinite = orderedKey(__builtin_huge_valf());
        bool isInfinite = false;
        for (uint32_t at = from + threadIdx.x % kPairLanes; at < end;
             at += kPairLanes) {
            isInfinite |= entryKey(slots.entries[at]) >= infinite;
        }
        if (__any_sync(kFullWarp, isInfinite)) {
            scoreBy<0>(slots, from, end);
        }
    }

   private:
    /// Slots may have entries already.
    template <int kMoved>
    __device__ __forceinline__ void scoreBy(
            RowSlots& slots,
            uint32_t at,
            uint32_t end) const {
        constexpr int kPairs = kMostMoved > 0 ? 4 : 2;
        const uint32_t lane = threadIdx.x % kPairLanes;
        const float4* const vectors = params_.slotRows + lane;
        for (; __any_sync(kFullWarp, at < end); at += kPairs) {
            uint32_t its[kPairs];
            bool isMine[kPairs];
            const float4* from[kPairs];
            double exact[kPairs];
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                // Of no number: it stays that, and has no vector.
                isMine[p] = at + p < end && slots.entries[at + p] != kNoEntry;
                its[p] = isMine[p] ? entryColumn(slots.entries[at + p]) : 0;
                from[p] = vectors + size_t(its[p]) * Query::kRowPacks;
            }
            query_.template distancesByMoves<kMoved>(
                    from, params_.passed.search.power, exact);
            __syncwarp(); // all have read the slots
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                if (lane == 0 && isMine[p]) {
                    slots.entries[at + p] =
                            distanceEntry<kMetric>(exact[p], its[p]);
                }
            }
            __syncwarp();
        }
    }

    const ScoreSlotsParams& params_;
    const Query query_;
};

/// Slots at .. end - 1 of the lane's row that have a vector and no distance: by
/// the definition. They are few, and so this is no part of the caller, whose
/// registers are for products.
///
/// query  of the row
template <int kSteps>
__device__ __noinline__ void scoreWaiting(
        const ScoreSlotsParams& params,
        RowSlots& slots,
        const float* query,
        uint32_t at,
        uint32_t end) {
    constexpr Metric kMetric = Metric::L2; // whose keys are not 0
    constexpr int kPairs = 2;
    using Query = SlotQuery<kMetric, kSteps>;
    const CertifiedParams& search = params.passed.search;
    const Query its(query, search.d);
    const uint32_t lane = threadIdx.x % kPairLanes;
    const float4* const rows = params.slotRows + lane;
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
        its.distances(from, search.power, exact);
        __syncwarp(); // all have read the slots
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            if (lane == 0 && isWaiting[p]) {
                slots.entries[at + p] =
                        distanceEntry<kMetric>(exact[p], vectors[p]);
            }
        }
    }
    __syncwarp();
}

/// By products, and what these leave in doubt by the definition.
template <int kSteps, int kMoved>
class RowByProducts {
    static constexpr Metric kMetric = Metric::L2;
    using Products = SlotProducts<kSteps, kMoved>;

   public:
    /// Slots have rows of the image: each lane has one of eight here, and so
    /// finds its vector in the instructions of one.
    static constexpr bool kTakesRows = true;

    __device__ __forceinline__
    RowByProducts(const ScoreSlotsParams& params, uint32_t row)
            : params_(params),
              components_(
                      params.passed.search.queries +
                      int64_t(row) * params.passed.search.d),
              query_(components_, params.passed.search.d) {
        constexpr double kMostOfLimit = 0x1p10;
        const bool isFar =
                query_.square() > kMostOfLimit * params.complete[row];
        isFar_ = __any_sync(kFullWarp, isFar);
    }

    /// Whether a row of the warp is so far from the origin that products tell
    /// little.
    __device__ __forceinline__ bool isFar() const {
        return isFar_;
    }

    /// Whether products left so many in doubt that they took longer than they
    /// saved, as where neighbours are nearer than the limit by far.
    __device__ __forceinline__ bool toldLittle() const {
        constexpr uint32_t kMostDoubts = 16; // of the warp's four rows
        return doubts_ > kMostDoubts;
    }

    /// Rows of slots from .. end - 1 to entries.
    __device__ __forceinline__ void score(
            RowSlots& slots,
            uint32_t from,
            uint32_t end) {
        const uint32_t doubts = estimate(slots, from, end);
        doubts_ += doubts;
        if (doubts > 0) {
            scoreWaiting<kSteps>(params_, slots, components_, from, end);
        }
    }

   private:
    /// But for those whose products leave a doubt, which get their vectors.
    /// Returns how many these are in the warp.
    __device__ __forceinline__ uint32_t
    estimate(RowSlots& slots, uint32_t at, uint32_t end) const {
        const uint32_t lane = threadIdx.x % kPairLanes;
        const float4* const vectors = params_.slotRows + lane;
        const auto* const squares = reinterpret_cast<const double*>(
                params_.slotRows +
                params_.passed.search.n * Products::kRowPacks);
        uint32_t doubts = 0;
        for (; __any_sync(kFullWarp, at < end); at += kPairLanes) {
            // Each lane has one of eight.
            const uint32_t slot = at + lane;
            const uint32_t its = slot < end
                    ? params_.words.rows.vectorOf(uint32_t(slots.entries[slot]))
                    : 0;
            const double square = __ldg(squares + its);
            const double low = query_.products(vectors, its, 0);
            double high = 0;
            if (__any_sync(kFullWarp, at + Products::kPairs < end)) {
                high = query_.products(vectors, its, Products::kPairs);
            }
            const auto found = query_.estimate(low, high, square);
            if (slot < end) {
                const bool isSure = found.isSure();
                doubts += !isSure;
                // `most` is not below 0. Others wait with their vectors.
                slots.entries[slot] =
                        isSure ? distanceEntry<kMetric>(found.most, its) : its;
            }
        }
        __syncwarp();
        return __reduce_add_sync(kFullWarp, doubts);
    }

    const ScoreSlotsParams& params_;
    const float* const components_;
    const Products query_;
    bool isFar_;
    uint32_t doubts_ = 0; // of the warp
};

} // namespace faiss_bits

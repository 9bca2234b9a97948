/// The second search of other certified searches: all steps of a search for the
/// rows that these did not prove.
#pragma once

#include <cooperative_groups.h>

#include "kernels/knn/certified/FlaggedRows.cuh"
#include "kernels/knn/nearest/FewDimsExact.cuh"
#include "kernels/knn/nearest/FewDimsScan.cuh"

namespace faiss_bits {

/// Blocks that wait for one another, and go on from one part of a step to the
/// next. Most often there are no such rows, and one kernel that finds none
/// costs less than the four of a first search.
template <Metric kMetric, int kDims>
class FewDimsAgain {
   public:
    using Flagged = FlaggedRows<kFewDimsThreads>;
    using Exact = FewDimsExact<kMetric, kDims, true>;

    union Shared {
        typename Flagged::SharedStorage flagged;
        FewDimsScanShared<kDims> scan;
        typename Exact::Shared exact;
    };

    __device__ FewDimsAgain(const FewDimsParams& params, Shared& shared)
            : params_(params), search_(params.search), shared_(shared) {}

    __device__ __forceinline__ void run() {
        const Flagged flagged{shared_.flagged, search_.flags, search_.rows};
        if (!flagged.areThere(params_.counts)) {
            return;
        }
        const auto grid = cooperative_groups::this_grid();
        if (firstThread() == 0) {
            *params_.numFlagged = 0;
        }
        grid.sync();
        list();
        grid.sync();
        const uint32_t slots = *params_.numFlagged;
        scan(slots);
        grid.sync();
        Exact(params_, slots, shared_.exact).run();
        grid.sync();
        for (uint32_t slot = firstThread(); slot < slots; slot += threads()) {
            writePlace<kMetric>(
                    search_, params_.flagged[slot], 0, params_.best[slot]);
        }
        if (firstThread() == 0 && search_.numRepeated) {
            atomicAdd(search_.numRepeated, (unsigned long long)slots);
        }
    }

   private:
    static __device__ __forceinline__ uint32_t firstThread() {
        return blockIdx.x * kFewDimsThreads + threadIdx.x;
    }

    static __device__ __forceinline__ uint32_t threads() {
        return gridDim.x * kFewDimsThreads;
    }

    /// The rows, in any order, and for none of them a limit or a vector.
    __device__ __forceinline__ void list() {
        const uint32_t lane = threadIdx.x % kWarpSize;
        for (uint32_t first = firstThread() - lane; first < search_.rows;
             first += threads()) {
            const uint32_t row = first + lane;
            const bool isFlagged = row < search_.rows &&
                    (search_.flags[2 * row] | search_.flags[2 * row + 1]) != 0;
            const uint32_t mask = __ballot_sync(kFullWarp, isFlagged);
            uint32_t slot = 0;
            if (lane == 0 && mask) {
                slot = atomicAdd(params_.numFlagged, __popc(mask));
            }
            slot = __shfl_sync(kFullWarp, slot, 0) +
                    __popc(mask & ((1u << lane) - 1));
            if (isFlagged) {
                params_.flagged[slot] = row;
                params_.limits[slot] = kNanKey;
                params_.best[slot] = kNoEntry;
            }
        }
    }

    /// Few have a thread each.
    __device__ __forceinline__ void scan(uint32_t slots) {
        if (slots <= kFewDimsThreads) {
            FewDimsScan<kMetric, kDims, 1, true>(params_, slots, shared_.scan)
                    .run(1);
            return;
        }
        using Scan = FewDimsScan<kMetric, kDims, kFewDimsAgainQueries, true>;
        const uint32_t tiles = (slots + Scan::kSlots - 1) / Scan::kSlots;
        constexpr uint32_t kMostStrips = 8; // of a block at a time
        Scan(params_, slots, shared_.scan)
                .run(min(
                        kMostStrips,
                        (params_.strips * tiles + gridDim.x - 1) / gridDim.x));
    }

    const FewDimsParams& params_;
    const CertifiedParams& search_;
    Shared& shared_;
};

/// Of a multiprocessor, at least.
template <int kDims>
constexpr int kFewDimsAgainBlocks = kDims <= 8 ? 5 : 4;

template <Metric kMetric, int kDims>
__global__ __launch_bounds__(
        kFewDimsThreads,
        kFewDimsAgainBlocks<
                kDims>) void fewDimsAgainKernel(const __grid_constant__
                                                        FewDimsParams params) {
    using Again = FewDimsAgain<kMetric, kDims>;
    __shared__ typename Again::Shared shared;
    waitForPrevious();
    Again(params, shared).run();
}

} // namespace faiss_bits

/// From bits of what may be in range to what is, by canonical distances.
///
/// A warp an item: it lists the vectors of the item's bits in shared memory, in
/// order, and scores them four at a time, eight lanes each. Items of different
/// rows and the same vectors are at work at the same time, so that a vector
/// that many queries want comes from L2.
///
/// Bound by: reads of 4 d bytes a candidate.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/LaneMask.cuh"
#include "kernels/knn/certified/CanonicalPair.cuh"
#include "kernels/range/RangeWords.cuh"

namespace faiss_bits {

constexpr int kRangeScoreThreads = 256;

template <Metric kMetric>
struct RangeScores {
    static constexpr int kWarps = kRangeScoreThreads / kWarpSize;
    static constexpr int kTogether = kWarpSize / kPairLanes;
    /// Vectors of 32 words, which come together.
    static constexpr uint32_t kStep = 32 * kWarpSize;
    static constexpr uint32_t kRoom = 2 * kStep;
    static_assert(kMostItemWords * 32 <= 1 << 16); // places have 16 bits

    struct SharedStorage {
        uint16_t places[kWarps][kRoom];
    };

    SharedStorage& shared;
    const RangeScoreParams& params;

    __device__ __forceinline__ void run() {
        const RangeItems& items = params.candidates.items;
        const uint32_t warp = threadIdx.x / kWarpSize;
        // Whole rows: those of the same vectors side by side.
        const bool isWhole = params.numItems % items.perRow == 0 &&
                params.firstItem % items.perRow == 0;
        const int64_t rows = isWhole ? params.numItems / items.perRow : 1;
        for (int64_t i = int64_t(blockIdx.x) * kWarps + warp;
             i < params.numItems;
             i += int64_t(gridDim.x) * kWarps) {
            const int64_t item =
                    isWhole ? i % rows * items.perRow + i / rows : i;
            const uint32_t kept = runItem(params.firstItem + item);
            if (threadIdx.x % kWarpSize == 0) {
                params.kept[item] = kept;
            }
        }
    }

   private:
    __device__ __forceinline__ uint32_t runItem(int64_t item) {
        const int64_t begin = params.offsets[item];
        if (params.offsets[item + 1] == begin) {
            return 0;
        }
        const RangeItems& items = params.candidates.items;
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t row = uint32_t(item / items.perRow);
        const uint64_t firstWord = item % items.perRow * items.itemWords;
        const int64_t at = begin - params.offsets[params.firstItem];
        uint16_t* places = shared.places[threadIdx.x / kWarpSize];
        uint32_t count = 0;
        uint32_t kept = 0;
        for (uint32_t w = 0; w < items.itemWords; w += kWarpSize) {
            uint32_t bits =
                    candidateWord(params.candidates, row, firstWord + w + lane);
            const uint32_t own = __popc(bits);
            uint32_t upTo = own;
#pragma unroll
            for (int lanes = 1; lanes < kWarpSize; lanes *= 2) {
                const uint32_t before = __shfl_up_sync(kFullWarp, upTo, lanes);
                upTo += lane >= lanes ? before : 0;
            }
            uint32_t place = count + upTo - own;
            for (; bits; bits &= bits - 1) {
                places[place++] =
                        uint16_t((w + lane) * 32 + __ffs(int(bits)) - 1);
            }
            count += __shfl_sync(kFullWarp, upTo, kWarpSize - 1);
            if (count > kRoom - kStep) {
                __syncwarp();
                kept += score(row, firstWord * 32, places, count, at + kept);
                count = 0;
                __syncwarp();
            }
        }
        __syncwarp();
        kept += score(row, firstWord * 32, places, count, at + kept);
        __syncwarp();
        return kept;
    }

    /// Writes what is in range of the listed vectors, from place `at` on;
    /// returns how many.
    __device__ __forceinline__ uint32_t
    score(uint32_t row,
          int64_t firstVector,
          const uint16_t* places,
          uint32_t count,
          int64_t at) {
        const CertifiedParams& search = params.search;
        const float* q = search.queries + int64_t(row) * search.d;
        const uint32_t group = threadIdx.x % kWarpSize / kPairLanes;
        uint32_t kept = 0;
        for (uint32_t i = 0; i < count; i += kTogether) {
            const bool exists = i + group < count;
            const int64_t vector =
                    firstVector + (exists ? places[i + group] : places[0]);
            double exact = 0;
            withVectors(search.vectors, [&](const auto* data) {
                exact = pairDistance<kMetric>(
                        data + vector * search.vectors.rowStride,
                        search.vectors.columnStride,
                        q,
                        exists ? search.d : 0,
                        search.power);
            });
            // As an entry, which NaN is not, and of a zero without a sign.
            const uint64_t entry =
                    distanceEntry<kMetric>(exact, uint32_t(vector));
            const float distance = entryDistance<kMetric>(entry);
            const bool isIn = exists && entry != kNoEntry &&
                    threadIdx.x % kPairLanes == 0 &&
                    isInRange(distance, params.radius, kIsSimilarity<kMetric>);
            const uint32_t all = __ballot_sync(kFullWarp, isIn);
            if (isIn) {
                const int64_t place = at + kept + __popc(all & lanesBefore());
                params.distances[place] = distance;
                params.columns[place] = uint32_t(vector);
            }
            kept += __popc(all);
        }
        return kept;
    }
};

template <Metric kMetric>
__global__ __launch_bounds__(kRangeScoreThreads) void rangeScoresKernel(
        const __grid_constant__ RangeScoreParams params) {
    using Scores = RangeScores<kMetric>;
    __shared__ typename Scores::SharedStorage shared;
    waitForPrevious();
    Scores{shared, params}.run();
}

} // namespace faiss_bits

/// Canonical distances of what may be in range.
///
/// The candidates lie side by side, those of the same vectors near each other,
/// so that a vector that many queries want comes from L2. A warp takes 32 at a
/// time, and scores four, eight lanes each.
///
/// Bound by: reads of 4 d bytes a candidate; in few dimensions by the float64
/// operations and conversions of a pair.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/certified/CanonicalPair.cuh"
#include "kernels/range/RangeWords.cuh"

namespace faiss_bits {

constexpr int kRangeScoreThreads = 256;

template <Metric kMetric>
struct RangeScores {
    static constexpr int kTogether = kWarpSize / kPairLanes;

    const RangeScoreParams& params;

    __device__ __forceinline__ void run() const {
        const int64_t total = *params.total;
        if (total > params.most) {
            return;
        }
        // One after another in the order of the list, so that those at work
        // at a time want the same vectors; the next is asked for ahead.
        uint32_t taken = take();
        for (;;) {
            const int64_t first = __shfl_sync(kFullWarp, taken, 0);
            if (first >= total) {
                return;
            }
            taken = take();
            score(first, int(min(total - first, int64_t(kWarpSize))));
        }
    }

   private:
    /// In lane 0.
    __device__ __forceinline__ uint32_t take() const {
        return threadIdx.x % kWarpSize == 0
                ? atomicAdd(params.next, uint32_t(kWarpSize))
                : 0;
    }

    __device__ __forceinline__ void score(int64_t first, int count) const {
        const CertifiedParams& search = params.search;
        const int lane = threadIdx.x % kWarpSize;
        const int64_t own = first + min(lane, count - 1);
        const uint32_t row = __float_as_uint(params.distances[own]);
        const uint32_t column = params.columns[own];
        float distance = 0; // of the candidate of this lane
        for (int i = 0; i < count; i += kTogether) {
            const int source = i + lane / kPairLanes;
            const uint32_t itsRow = __shfl_sync(kFullWarp, row, source);
            const uint32_t itsColumn = __shfl_sync(kFullWarp, column, source);
            double exact = 0;
            withVectors(search.vectors, [&](const auto* data) {
                exact = pairDistance<kMetric>(
                        data + int64_t(itsColumn) * search.vectors.rowStride,
                        search.vectors.columnStride,
                        search.queries + int64_t(itsRow) * search.d,
                        search.d,
                        search.power);
            });
            const float found = canonical::toFloat32(exact);
            const float mine = __shfl_sync(
                    kFullWarp, found, lane % kTogether * kPairLanes);
            distance = lane / kTogether == i / kTogether ? mine : distance;
        }
        if (lane < count) {
            params.distances[own] =
                    isInRange(distance, params.radius, kIsSimilarity<kMetric>)
                    ? distance + 0.0f // a zero without a sign
                    : nanf("");
        }
    }
};

template <Metric kMetric>
__global__ __launch_bounds__(kRangeScoreThreads) void rangeScoresKernel(
        const __grid_constant__ RangeScoreParams params) {
    waitForPrevious();
    RangeScores<kMetric>{params}.run();
}

} // namespace faiss_bits

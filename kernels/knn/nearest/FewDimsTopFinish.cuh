/// From the least values of strips to the nearest vectors of a query, by a
/// warp.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/LaneMask.cuh"
#include "kernels/device/RankedOf.cuh"
#include "kernels/device/WarpList.cuh"
#include "kernels/knn/certified/CanonicalPair.cuh"
#include "kernels/knn/nearest/FewDimsStage.cuh"
#include "kernels/knn/nearest/FewDimsTopKernels.h"
#include "kernels/knn/nearest/ShortDistance.h"

namespace faiss_bits {

/// Strips that may have one of the k nearest are met again in float32, a vector
/// a lane; what may be one of them is buffered, and has its canonical distance
/// computed 32 at a time. Places are 32 * kRows at most. All lanes call each
/// function.
template <Metric kMetric, int kDims, int kRows>
class FewDimsTopFinish {
   public:
    static constexpr uint32_t kRoom = 2 * kWarpSize;

    __device__ FewDimsTopFinish(
            const FewDimsTopParams& params,
            uint32_t row,
            uint32_t* buffer)
            : params_(params),
              search_(params.search),
              row_(row),
              buffer_(buffer) {}

    /// Returns how many vectors were scored.
    __device__ __forceinline__ uint32_t run() {
        findLimit();
        loadQuery<kMetric>(params_.scan, row_, near_);
        const uint32_t strips = params_.units * kFewDimsTopStrips;
        for (uint32_t first = 0; first < strips && !isDone_;
             first += kWarpSize) {
            meetStrips(first, strips);
        }
        if (count_ > 0 && !isDone_) {
            score();
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const uint32_t place = r * kWarpSize + lane();
            if (place < uint32_t(search_.k)) {
                writePlace<kMetric>(search_, row_, int(place), list_.item(r));
            }
        }
        return scored_;
    }

   private:
    static __device__ __forceinline__ uint32_t lane() {
        return threadIdx.x % kWarpSize;
    }

    __device__ __forceinline__ float leastOf(uint32_t strip) const {
        return params_
                .least[int64_t(row_) * params_.units * kFewDimsTopStrips +
                       strip];
    }

    __device__ __forceinline__ float errorOf(uint32_t strip) const {
        return params_
                .errors[int64_t(row_) * params_.units +
                        strip / kFewDimsTopStrips];
    }

    /// A vector of the strip is as near as that (Entry.cuh's order).
    __device__ __forceinline__ uint32_t mostOf(uint32_t strip) const {
        const float error = errorOf(strip);
        return orderedKey(
                error < INFINITY ? leastOf(strip) + 2 * error : INFINITY);
    }

    /// The k-th least of groups of strips: none of the k nearest is farther.
    __device__ __forceinline__ void findLimit() {
        uint32_t limit;
        if constexpr (kRows == 1) {
            limit = leastByLeast();
        } else {
            limit = leastByRank();
        }
        limit_ = keyValue(limit);
        bound_ = makeEntry(limit + 1, 0);
    }

    /// Of 64 groups, the least again and again.
    __device__ __forceinline__ uint32_t leastByLeast() const {
        const uint32_t none = orderedKey(INFINITY);
        const uint32_t strips = params_.units * kFewDimsTopStrips;
        uint32_t even = none;
        uint32_t odd = none;
        for (uint32_t s = lane(); s < strips; s += 2 * kWarpSize) {
            even = min(even, mostOf(s));
            if (s + kWarpSize < strips) {
                odd = min(odd, mostOf(s + kWarpSize));
            }
        }
        uint32_t limit;
        for (int found = 0; found < search_.k;) {
            limit = __reduce_min_sync(kFullWarp, min(even, odd));
            if (limit == none) {
                break;
            }
            found += __popc(__ballot_sync(kFullWarp, even == limit)) +
                    __popc(__ballot_sync(kFullWarp, odd == limit));
            even = even == limit ? none : even;
            odd = odd == limit ? none : odd;
        }
        return limit;
    }

    /// Of 512 groups, by halving.
    __device__ __forceinline__ uint32_t leastByRank() const {
        constexpr int kGroups = 16; // of a lane
        const uint32_t none = orderedKey(INFINITY);
        const uint32_t strips = params_.units * kFewDimsTopStrips;
        uint32_t keys[kGroups];
#pragma unroll
        for (int i = 0; i < kGroups; ++i) {
            keys[i] = none;
        }
        for (uint32_t first = lane(); first < strips;
             first += kGroups * kWarpSize) {
#pragma unroll
            for (int i = 0; i < kGroups; ++i) {
                const uint32_t s = first + i * kWarpSize;
                keys[i] = s < strips ? min(keys[i], mostOf(s)) : keys[i];
            }
        }
        uint32_t least = none;
        uint32_t most = 0;
        int count = 0;
#pragma unroll
        for (int i = 0; i < kGroups; ++i) {
            const bool isKey = keys[i] < none;
            least = min(least, keys[i]);
            most = isKey ? max(most, keys[i]) : most;
            count += isKey;
        }
        if (__reduce_add_sync(kFullWarp, count) < search_.k) {
            return none;
        }
        return rankedOf(
                keys,
                uint32_t(search_.k),
                __reduce_min_sync(kFullWarp, least),
                __reduce_max_sync(kFullWarp, most));
    }

    /// Up to 32 of them, a lane each.
    __device__ __forceinline__ void meetStrips(
            uint32_t first,
            uint32_t strips) {
        const uint32_t mine = first + lane();
        const bool isThere = mine < strips;
        const float least = isThere ? leastOf(mine) : 0.0f;
        const bool isNear = isThere && !(least > limit_);
        const float error = isNear ? errorOf(mine) : 0.0f;
        uint32_t wanted = __ballot_sync(kFullWarp, isNear);
        while (wanted) {
            const int from = __ffs(wanted) - 1;
            wanted &= wanted - 1;
            const float limit = limit_;
            meetStrip(first + from, __shfl_sync(kFullWarp, error, from));
            if (isDone_) {
                return;
            }
            if (limit_ < limit) {
                wanted &= __ballot_sync(kFullWarp, !(least > limit_));
            }
        }
    }

    __device__ __forceinline__ void meetStrip(uint32_t strip, float error) {
        const int64_t begin = int64_t(strip) << params_.logStrip;
        const int64_t end =
                min(begin + (int64_t(1) << params_.logStrip), search_.n);
        for (int64_t from = begin; from < end && !isDone_; from += kWarpSize) {
            const int64_t v = from + lane();
            // No distance is farther from it than `error`, by L2 neither from
            // this sum of squares (docs/bounds.md).
            const bool mayBe = v < end && !(valueOf(v) - error > limit_);
            const uint32_t those = __ballot_sync(kFullWarp, mayBe);
            if (mayBe) {
                buffer_[count_ + __popc(those & lanesBefore())] = uint32_t(v);
            }
            count_ += __popc(those);
            __syncwarp();
            if (count_ >= kWarpSize) {
                score();
            }
        }
    }

    __device__ __forceinline__ float valueOf(int64_t v) const {
        float x[kDims];
        loadVector(params_.scan, v, x);
        float value = 0;
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            if constexpr (kMetric == Metric::L2) {
                const float t = x[c] - near_[c];
                value = fmaf(t, t, value);
            } else {
                value = fmaf(x[c], near_[c], value);
            }
        }
        return value;
    }

    /// The first 32 of the buffer, or as many as there are.
    __device__ __forceinline__ void score() {
        const uint32_t taken = min(count_, uint32_t(kWarpSize));
        uint64_t entry = kNoEntry;
        if (lane() < taken) {
            const uint32_t v = buffer_[lane()];
            entry = distanceEntry<Metric::L2>(keyOf(v), v);
        }
        const uint32_t rest = buffer_[kWarpSize + lane()];
        __syncwarp();
        buffer_[lane()] = rest;
        __syncwarp();
        count_ -= taken;
        scored_ += taken;
        list_.add(entry < bound_ ? entry : kNoEntry);
        uint64_t last = kNoEntry;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const uint64_t mine = __shfl_sync(
                    kFullWarp, list_.item(r), (search_.k - 1) % kWarpSize);
            last = (search_.k - 1) / kWarpSize == r ? mine : last;
        }
        if (last < bound_) {
            bound_ = last;
            limit_ = keyValue(entryKey(last));
            // What comes later has higher ids, and is no nearer.
            isDone_ = entryKey(last) <= orderedKey(nearest());
        }
    }

    /// Nothing is nearer.
    static constexpr float kNearest = kMetric == Metric::L2 ? 0.0f
            : kMetric == Metric::Cosine                     ? -1.0f
                                        : -__builtin_huge_valf();

    /// To a query of zeros all vectors are as near, but those with NaN for a
    /// distance. By bits, so that no denormal counts as zero; read again, as
    /// there are no registers for it.
    __device__ __forceinline__ float nearest() const {
        if constexpr (kMetric == Metric::L2) {
            return kNearest;
        }
        const uint32_t bits = lane() < uint32_t(search_.d)
                ? __float_as_uint(
                          search_.queries[int64_t(row_) * search_.d + lane()])
                : 0;
        return __any_sync(kFullWarp, bits << 1 != 0) ? kNearest : 0.0f;
    }

    /// The canonical distance, a similarity's with its sign turned.
    __device__ __forceinline__ double keyOf(uint32_t v) const {
        float given[kDims];
        double x[kDims];
        double q[kDims];
        loadVector(search_, v, given);
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            x[c] = given[c];
        }
        loadQuery<kMetric>(search_, row_, given);
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            q[c] = given[c];
        }
        return shortKey<kMetric>(x, q);
    }

    const FewDimsTopParams& params_;
    const CertifiedParams& search_;
    const uint32_t row_;
    uint32_t* const buffer_; // [kRoom], of the warp
    float near_[kDims];      // the query that the scan met
    float limit_ = 0;        // no key above it is wanted
    uint64_t bound_ = 0;     // only entries before it are
    bool isDone_ = false;
    uint32_t count_ = 0; // in the buffer
    uint32_t scored_ = 0;
    WarpList<kRows> list_;
};

/// Of a multiprocessor, at least.
template <int kDims, int kRows>
constexpr int kFewDimsTopBlocks = kRows > 1 ? 4
        : kDims <= 4                        ? 6
        : kDims <= 6                        ? 5
        : kDims <= 8                        ? 4
        : kDims <= 12                       ? 3
                                            : 2;

template <Metric kMetric, int kDims, int kRows>
__global__ __launch_bounds__(
        kFewDimsTopWarps* kWarpSize,
        kFewDimsTopBlocks<
                kDims,
                kRows>) void fewDimsTopFinishKernel(const __grid_constant__
                                                            FewDimsTopParams
                                                                    params) {
    using Finish = FewDimsTopFinish<kMetric, kDims, kRows>;
    __shared__ uint32_t buffers[kFewDimsTopWarps][Finish::kRoom];
    allowNext();
    waitForPrevious();
    const uint32_t warp = threadIdx.x / kWarpSize;
    const uint32_t row = blockIdx.x * kFewDimsTopWarps + warp;
    const uint32_t scored = row < params.search.rows
            ? Finish(params, row, buffers[warp]).run()
            : 0;
    if (unsigned long long* sum = params.search.numRescored) {
        if (threadIdx.x % kWarpSize == 0) {
            buffers[warp][0] = scored;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned long long all = 0;
            for (uint32_t w = 0; w < kFewDimsTopWarps; ++w) {
                all += buffers[w][0];
            }
            atomicAdd(sum, all);
        }
    }
}

} // namespace faiss_bits

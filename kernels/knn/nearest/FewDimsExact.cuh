/// Canonical distances of the strips that may have a query's nearest vector.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/certified/CanonicalPair.cuh"
#include "kernels/knn/nearest/FewDimsStage.cuh"
#include "kernels/knn/nearest/ShortDistance.h"

namespace faiss_bits {

/// A block has a strip and a tile of slots, of which it lists those that want
/// the strip. A thread has one of these, and all vectors of a unit where such
/// queries are many, else a part of them.
template <Metric kMetric, int kDims, bool kAgain>
class FewDimsExact {
   public:
    struct Shared {
        alignas(16) double vectors[kFewDimsUnit * kDims];
        uint16_t slots[kMostFewDimsTile]; // of the tile
        uint32_t count;
    };

    __device__ FewDimsExact(
            const FewDimsParams& params,
            uint32_t slots,
            Shared& shared)
            : params_(params),
              search_(params.search),
              slots_(slots),
              shared_(shared) {}

    __device__ __forceinline__ void run() {
        tile_ = fewDimsTile(slots_, params_.strips);
        const uint32_t tiles = (slots_ + tile_ - 1) / tile_;
        for (uint32_t i = blockIdx.x; i < tiles * params_.strips;
             i += gridDim.x) {
            firstSlot_ = i % tiles * tile_;
            runStrip(i / tiles);
        }
    }

   private:
    __device__ __forceinline__ void runStrip(uint32_t strip) {
        list(strip);
        const uint32_t count = shared_.count;
        if (count == 0) {
            return;
        }
        const int64_t units = int64_t(1) << params_.logUnits;
        const int64_t begin = strip * units * kFewDimsUnit;
        const int64_t end = min(begin + units * kFewDimsUnit, search_.n);
        for (int64_t unit = begin; unit < end; unit += kFewDimsUnit) {
            __syncthreads();
            stage(unit, end);
            __syncthreads();
            meetUnit(unit, uint32_t(min(end - unit, int64_t(kFewDimsUnit))));
        }
        if (search_.numRescored && threadIdx.x == 0) {
            atomicAdd(
                    search_.numRescored,
                    (unsigned long long)(end - begin) * count);
        }
    }

    /// In any order.
    __device__ __forceinline__ void list(uint32_t strip) {
        __syncthreads(); // the strip before is done with
        if (threadIdx.x == 0) {
            shared_.count = 0;
        }
        __syncthreads();
        const float* least = params_.least + int64_t(strip) * search_.rows;
        const uint64_t begin = uint64_t(strip)
                << (params_.logUnits + kLogFewDimsUnit);
        for (uint32_t i = threadIdx.x; i < tile_; i += kFewDimsThreads) {
            const uint32_t slot = firstSlot_ + i;
            // Not known, a limit is NaN.
            const bool wants = slot < slots_ &&
                    !(least[slot] > keyValue(params_.limits[slot])) &&
                    !isBehind(slot, begin);
            const uint32_t mask = __ballot_sync(kFullWarp, wants);
            const int lane = threadIdx.x % kWarpSize;
            uint32_t place = 0;
            if (lane == 0 && mask) {
                place = atomicAdd(&shared_.count, __popc(mask));
            }
            place = __shfl_sync(kFullWarp, place, 0) +
                    __popc(mask & ((1u << lane) - 1));
            if (wants) {
                shared_.slots[place] = uint16_t(i);
            }
        }
        __syncthreads();
    }

    /// Whether a vector before `begin` is known that is equal to the query, or
    /// infinitely near: none of a higher number comes before it.
    __device__ __forceinline__ bool isBehind(uint32_t slot, uint64_t begin)
            const {
        const uint64_t best =
                __ldcg(reinterpret_cast<const unsigned long long*>(
                        params_.best + slot));
        const float nearest = kMetric == Metric::L2 ? 0.0f : -INFINITY;
        return entryKey(best) <= orderedKey(nearest) &&
                entryColumn(best) < begin;
    }

    __device__ __forceinline__ void stage(int64_t unit, int64_t end) {
        for (uint32_t i = threadIdx.x; i < kFewDimsUnit && unit + i < end;
             i += kFewDimsThreads) {
            float x[kDims];
            loadVector(search_, unit + i, x);
#pragma unroll
            for (int c = 0; c < kDims; ++c) {
                shared_.vectors[i * kDims + c] = x[c];
            }
        }
    }

    __device__ __forceinline__ void meetUnit(int64_t unit, uint32_t vectors) {
        constexpr uint32_t kMostParts = 32;
        const uint32_t count = shared_.count;
        uint32_t logParts = 0;
        while ((count << logParts) < kFewDimsThreads &&
               (1u << logParts) < kMostParts) {
            ++logParts;
        }
        const uint32_t ofPart = kFewDimsUnit >> logParts;
        for (uint32_t i = threadIdx.x; i < count << logParts;
             i += kFewDimsThreads) {
            const uint32_t part = i / count;
            const uint32_t slot = firstSlot_ + shared_.slots[i - part * count];
            const uint32_t from = part * ofPart;
            if (from < vectors) {
                meet(unit, from, min(from + ofPart, vectors), slot);
            }
        }
    }

    __device__ __forceinline__ double keyOf(
            uint32_t v,
            const double (&query)[kDims]) const {
        double x[kDims];
#pragma unroll
        for (int c = 0; c < kDims; c += 2) {
            const double2 two = *reinterpret_cast<const double2*>(
                    shared_.vectors + v * kDims + c);
            x[c] = two.x;
            x[c + 1] = two.y;
        }
        return shortDistance<kMetric>(x, query);
    }

    /// One query, and vectors of the unit in their order.
    __device__ __forceinline__ void meet(
            int64_t unit,
            uint32_t from,
            uint32_t to,
            uint32_t slot) {
        float given[kDims];
        loadQuery<kMetric>(search_, rowOfSlot<kAgain>(params_, slot), given);
        double query[kDims];
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            query[c] = given[c];
        }
        constexpr uint32_t kNone = ~0u;
        uint32_t nearest = kNone;
        double least = INFINITY;
        constexpr uint32_t kAtOnce = 4; // sums that do not wait for each other
        for (uint32_t first = from; first < to; first += kAtOnce) {
            double keys[kAtOnce];
#pragma unroll
            for (uint32_t i = 0; i < kAtOnce; ++i) {
                keys[i] = keyOf(min(first + i, to - 1), query);
            }
#pragma unroll
            for (uint32_t i = 0; i < kAtOnce; ++i) {
                if (keys[i] < least) { // beyond the end not: the last again
                    // Of those that round to the same the first.
                    if (nearest == kNone ||
                        canonical::toFloat32(keys[i]) <
                                canonical::toFloat32(least)) {
                        nearest = first + i;
                    }
                    least = keys[i];
                }
            }
        }
        for (uint32_t v = from; v < to && nearest == kNone; ++v) {
            if (keyOf(v, query) == INFINITY) { // not NaN, which is none
                nearest = v;
            }
        }
        if (nearest != kNone) {
            // The key has the sign of a distance already.
            const uint64_t entry =
                    distanceEntry<Metric::L2>(least, uint32_t(unit) + nearest);
            atomicMin(
                    reinterpret_cast<unsigned long long*>(params_.best + slot),
                    (unsigned long long)entry);
        }
    }

    const FewDimsParams& params_;
    const CertifiedParams& search_;
    const uint32_t slots_;
    uint32_t tile_ = 0;
    uint32_t firstSlot_ = 0;
    Shared& shared_;
};

template <Metric kMetric, int kDims>
__global__ __launch_bounds__(kFewDimsThreads) void fewDimsExactKernel(
        const __grid_constant__ FewDimsParams params) {
    using Exact = FewDimsExact<kMetric, kDims, false>;
    __shared__ typename Exact::Shared shared;
    allowNext();
    waitForPrevious();
    Exact(params, params.search.rows, shared).run();
}

} // namespace faiss_bits

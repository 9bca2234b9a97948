/// A limit for each query from its distances to a sample of the vectors.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/Narrow.cuh"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/RankedLimit.cuh"

namespace faiss_bits {

constexpr int kSampleLimitThreads = 512;

/// One block a query. The keys of its sample stay in registers.
template <Metric kMetric, int Items>
struct SampleLimit {
    using Narrow = BlockNarrow<kSampleLimitThreads>;
    static constexpr int kWarps = kSampleLimitThreads / kWarpSize;
    static constexpr double kOfBFloat16 = 0x1p-6;
    /// Of members that are not there, or not allowed, or no number.
    static constexpr uint32_t kNone = ~0u;
    static constexpr float kInfinite = __builtin_huge_valf();

    struct SharedStorage {
        typename Narrow::SharedStorage narrow;
        uint32_t least[2][kWarps];
        double norms[2 * kWarps];
        uint32_t found;
        uint32_t passing;
        float reach;
    };

    SharedStorage& shared;
    const SampleLimitParams& params;

    __device__ void run(uint32_t row) {
        uint32_t keys[Items];
        load(row, keys);
        RowBound<kMetric> bound;
        // That of images is thread 0's alone, as is what follows from it.
        if (!params.search.imageFacts || threadIdx.x == 0) {
            bound = rowBound<kMetric, kSampleLimitThreads>(
                    params.search, row, shared.norms);
        }
        const uint32_t ranked = rankedKey(keys);
        if (threadIdx.x == 0) {
            double key = ranked == kNone
                    ? __longlong_as_double(0x7ff0000000000000ll)
                    : double(keyValue(ranked));
            if (areDistances()) {
                key += params.columnBias ? bound.norm * bound.norm : 0.0;
                key = fmax(key, 0.0);
            }
            if (kMetric == Metric::Cosine && areDistances()) {
                key = 0.5 * key - 1;
            }
            const float limit = write(row, key, bound);
            shared.passing = 0;
            shared.reach = reachOf(limit, ranked, bound);
        }
        leaveOverfull(row, keys);
    }

   private:
    /// Squared ones: for cosines those of images, 2 - 2 cos.
    __device__ __forceinline__ bool areDistances() const {
        return kMetric == Metric::L2 ||
                (kMetric == Metric::Cosine && params.ofImages);
    }

    __device__ __forceinline__ float write(
            uint32_t row,
            double key,
            const RowBound<kMetric>& bound) const {
        if (params.ofImages) {
            // What images lack (inner products, whose keys have their signs
            // turned).
            key += roundingError(bound, params.search.d, key, kOfBFloat16) -
                    bound.centerProduct.value;
        }
        return writeLimit(params, row, key, bound);
    }

    /// Members of the sample with keys up to it pass the limit, as far as is
    /// known; no number: there is no limit, or no query. Nothing rests on it.
    __device__ __forceinline__ float reachOf(
            float limit,
            uint32_t ranked,
            const RowBound<kMetric>& bound) const {
        if (kMetric == Metric::Cosine && areDistances()) {
            // Limits have other units.
            return fabsf(limit) < kInfinite ? keyValue(ranked) : limit;
        }
        const bool isApart = areDistances() && params.columnBias;
        return float(
                limit - (isApart ? bound.norm * bound.norm : 0.0) -
                (params.ofImages ? 0.0 : bound.centerProduct.value));
    }

    /// A query that more pass than its list has room for, as where thousands of
    /// vectors are alike: to append them takes longer than all else.
    __device__ __forceinline__ void leaveOverfull(
            uint32_t row,
            const uint32_t (&keys)[Items]) {
        __syncthreads();
        const float reach = shared.reach;
        if (!(fabsf(reach) < kInfinite)) {
            return;
        }
        const uint32_t last = orderedKey(reach);
        uint32_t found = 0;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            found += keys[i] <= last;
        }
        found = __reduce_add_sync(kFullWarp, found);
        if (threadIdx.x % kWarpSize == 0 && found > 0) {
            // One warp meets the number: nobody waits for all of them.
            const uint32_t others = atomicAdd(&shared.passing, found);
            if (others < params.overfull && others + found >= params.overfull) {
                // Nothing passes, and nothing is proved.
                params.limits[row] = -kInfinite;
                params.complete[row] = -kInfinite;
            }
        }
    }

    __device__ __forceinline__ static uint32_t column(int i) {
        return i * kSampleLimitThreads + threadIdx.x;
    }

    /// With a bias the query's norm is not in them yet.
    __device__ __forceinline__ void load(
            uint32_t row,
            uint32_t (&keys)[Items]) {
        const float* values = params.values + int64_t(row) * params.samples;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const bool exists = column(i) < params.samples &&
                    (!params.allowedBits ||
                     (params.allowedBits[column(i) / 32] >> (column(i) % 32) &
                      1));
            float key = exists ? values[column(i)] : nanf("");
            key = kIsSimilarity<kMetric> && !areDistances() ? -key : key;
            if (areDistances() && params.columnBias && exists) {
                key += params.columnBias[column(i)];
            }
            keys[i] = key == key ? orderedKey(key) : kNone;
        }
    }

    /// The key of the asked rank; kNone if fewer are numbers. Of thread 0.
    __device__ __forceinline__ uint32_t
    rankedKey(const uint32_t (&keys)[Items]) {
        // A step takes 1.2 us of all keys of 32 a thread, and narrowing 4 or so
        // (measured, H200).
        constexpr uint32_t kMostSteps = Items > 8 ? 5 : 32;
        if (params.rank <= kMostSteps) {
            return stepTo(params.rank, keys);
        }
        if (threadIdx.x == 0) {
            shared.found = 0;
        }
        __syncthreads();
        uint32_t found = 0;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            found += keys[i] != kNone;
        }
        found = __reduce_add_sync(kFullWarp, found);
        if (threadIdx.x % kWarpSize == 0) {
            atomicAdd(&shared.found, found);
        }
        __syncthreads();
        if (shared.found < params.rank) {
            return kNone;
        }
        const auto forEach = [&](auto take) {
#pragma unroll
            for (int i = 0; i < Items; ++i) {
                if (keys[i] != kNone) {
                    take(makeEntry(keys[i], column(i)));
                }
            }
        };
        return entryKey(
                Narrow{shared.narrow}.limit(forEach, params.rank, params.room));
    }

    /// The rank'th key, from one to the next: every thread shows its least, and
    /// the one whose key is taken goes on to its next.
    __device__ __forceinline__ uint32_t
    stepTo(uint32_t rank, const uint32_t (&keys)[Items]) {
        const int warp = threadIdx.x / kWarpSize;
        const int lane = threadIdx.x % kWarpSize;
        uint32_t own = 0;
        int place = -1; // of it
        goOn(keys, own, place);
        for (uint32_t i = 1;; ++i) {
            uint32_t(&least)[kWarps] = shared.least[i % 2];
            const uint32_t ofWarp = __reduce_min_sync(kFullWarp, own);
            if (lane == 0) {
                least[warp] = ofWarp;
            }
            __syncthreads();
            const uint32_t mine = lane < kWarps ? least[lane] : kNone;
            const uint32_t next = __reduce_min_sync(kFullWarp, mine);
            if (i == rank || next == kNone) {
                return next;
            }
            const uint32_t warps = __ballot_sync(kFullWarp, mine == next);
            if (warp == __ffs(warps) - 1) {
                const uint32_t lanes = __ballot_sync(kFullWarp, own == next);
                if (lane == __ffs(lanes) - 1) {
                    goOn(keys, own, place);
                }
            }
        }
    }

    /// From a key of this thread to the next; equal ones by their places.
    __device__ __forceinline__ static void goOn(
            const uint32_t (&keys)[Items],
            uint32_t& own,
            int& place) {
        uint32_t next = kNone;
        int nextPlace = Items;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const bool isLater = keys[i] > own || (keys[i] == own && i > place);
            if (isLater && keys[i] < next) {
                next = keys[i];
                nextPlace = i;
            }
        }
        own = next;
        place = nextPlace;
    }
};

/// Blocks of a multiprocessor: a block is mostly a wait, and with registers for
/// one alone a limit takes twice as long.
constexpr int limitBlocks(int items) {
    return items <= 8 ? 2 : 1;
}

template <Metric kMetric, int Items>
__global__ __launch_bounds__(
        kSampleLimitThreads,
        limitBlocks(
                Items)) void sampleLimitKernel(const SampleLimitParams params) {
    using Limit = SampleLimit<kMetric, Items>;
    __shared__ typename Limit::SharedStorage shared;
    allowNext();
    waitForPrevious();
    Limit{shared, params}.run(blockIdx.x);
}

} // namespace faiss_bits

// The k nearest of a direct search, of estimates of the keys of columns: what
// may be among them gets canonical keys, and these are sorted.
//
// Bound by: the wait for memory, some six times one after another, and two more
// for every kAtOnce candidates.

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/LaunchesTogether.h"
#include "kernels/device/AsyncCopy.cuh"
#include "kernels/ivf/IvfDirectFinish.cuh"
#include "kernels/ivf/IvfFloorBound.h"
#include "kernels/ivf/IvfFloorsKeys.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 512;
constexpr int kRoom = 4 * kMostFloorK; // for candidates
static_assert(kRoom <= kThreads);      // one a thread

template <Metric kMetric, ListCoding kCoding>
struct IvfFloorsFinish {
    using Finish = DirectFinish<kThreads, kRoom>;
    using Keys = IvfFloorsKeys<kMetric, kCoding, kThreads>;
    static constexpr int kOfThread = 4; // groups, of those that are read once
    static constexpr uint32_t kAtOnce = kThreads / kPairLanes; // candidates
    /// Beyond k more than so many candidates take longer than a closer limit.
    static constexpr uint32_t kMostMore = 96;
    static constexpr uint32_t kEvery = kNanKey - 1; // key

    struct SharedStorage {
        typename Finish::SharedStorage finish;
        const uint8_t* codes[kMostDirectProbes]; // of probes
        typename Keys::SharedStorage keys;
        uint32_t numLimiting; // estimates that were found and set a limit
    };

    SharedStorage& shared;
    const IvfDirectParams& params;
    const uint32_t row;

    __device__ __forceinline__ void run() const {
        Finish finish{shared.finish, params, row};
        const uint32_t k = uint32_t(params.search.k);
        // All that is read here comes in one wait.
        uint32_t least[kOfThread];
        const float bound = __uint_as_float(params.bounds[2 * row]);
        const typename Keys::Ahead ahead(params.search, row);
        const uint32_t total = finish.begin(least);
        ahead.write(shared.keys);
        const ListsAhead lists(shared, params);
        uint32_t limit = findGroups(least, total, k, bound);
        lists.write(shared);
        const uint32_t numGroups = shared.finish.numGroups;
        const bool areListed = numGroups > kRoom;
        if (areListed) {
            finish.listGroups(total, limit);
        }
        finish.collect(areListed, numGroups, limit);
        if (shared.finish.count > k + kMostMore) {
            limit = closerLimit(
                    shared, params, row, areListed, numGroups, limit, bound);
            finish.collect(areListed, numGroups, limit);
        }
        if (shared.finish.count > kRoom) {
            scoreAll(shared, params, row, total, limit);
            finish.run();
        } else {
            score();
            finish.write(shared.finish.count, k);
        }
    }

   private:
    /// Where the codes of the row's lists lie, asked for while groups are
    /// found; by the threads that have written these lists.
    struct ListsAhead {
        static constexpr int kOfThread = kMostDirectProbes / kThreads;
        const uint8_t* codes[kOfThread];
        uint32_t nprobe;

        __device__ __forceinline__
        ListsAhead(const SharedStorage& shared, const IvfDirectParams& params)
                : nprobe(params.search.nprobe) {
#pragma unroll
            for (int i = 0; i < kOfThread; ++i) {
                const uint32_t p = threadIdx.x + i * kThreads;
                codes[i] = nullptr;
                if (p < nprobe) {
                    const uint32_t list = shared.finish.lists[p];
                    if (list < params.search.lists.numLists) {
                        codes[i] = static_cast<const uint8_t*>(
                                params.search.lists.vectors[list]);
                    }
                }
            }
        }

        __device__ __forceinline__ void write(SharedStorage& shared) const {
#pragma unroll
            for (int i = 0; i < kOfThread; ++i) {
                const uint32_t p = threadIdx.x + i * kThreads;
                if (p < nprobe) {
                    shared.codes[p] = codes[i];
                }
            }
        }
    };

    /// Of a key that the estimates of k vectors are not above.
    __device__ __forceinline__ static uint32_t limitOf(
            const IvfDirectParams& params,
            uint32_t key,
            float bound) {
        constexpr auto kLimitOf = kIsScalar<kCoding>
                ? ivf_code::limitOfCodes<kMetric>
                : ivf_code::limitOf<kMetric>;
        const float limit = __double2float_ru(
                kLimitOf(double(keyValue(key)), bound, params.search.d));
        // No number: some list has no bound.
        return limit == limit ? min(orderedKey(limit), kEvery) : kEvery;
    }

    /// Groups of 32 columns that have all estimates up to a limit, which k
    /// vectors are not above; of more than there is room for some. The block is
    /// in step then. What has no estimate sets no limit, and is within any.
    __device__ __forceinline__ uint32_t findGroups(
            uint32_t (&some)[kOfThread],
            uint32_t total,
            uint32_t k,
            float bound) const {
        auto& found = shared.finish;
        constexpr uint32_t kAtOnce = kThreads * kOfThread;
        // Those of a thread stay in registers, unless there are more.
        const bool areFew = total <= kAtOnce;
        const auto forEachFrom = [&](uint32_t lowest, auto take) {
            for (uint32_t at = threadIdx.x; at < total; at += kAtOnce) {
                if (!areFew) {
                    Finish{shared.finish, params, row}.loadLeast(
                            at, total, some);
                }
#pragma unroll
                for (int i = 0; i < kOfThread; ++i) {
                    if (some[i] >= lowest && some[i] != kNanKey) {
                        take(makeEntry(some[i], at + i * kThreads));
                    }
                }
            }
        };
        const uint32_t lowest = lowestLimiting();
        const auto forEach = [&](auto take) { forEachFrom(lowest, take); };
        if (threadIdx.x == 0) {
            found.numGroups = 0;
            found.count = 0;
            shared.numLimiting = 0;
        }
        __syncthreads();
        uint32_t limit = kEvery;
        if (total > k) {
            limit =
                    limitOf(params,
                            typename Finish::Limit{found.narrow}.of(forEach, k),
                            bound);
        }
        const auto collect = [&] {
            forEachFrom(0, [&](uint64_t entry) {
                if (entryKey(entry) <= limit) {
                    if (entryKey(entry) >= lowest) {
                        atomicAdd(&shared.numLimiting, 1u);
                    }
                    const uint32_t to = atomicAdd(&found.numGroups, 1u);
                    if (to < kRoom) {
                        found.groups[to] = entryColumn(entry);
                    }
                }
            });
            __syncthreads();
        };
        collect();
        // Fewer than k set a limit, and none is above the greatest of them.
        if (shared.numLimiting < k && limit != kEvery) {
            __syncthreads(); // all have read the number
            if (threadIdx.x == 0) {
                found.numGroups = 0;
            }
            __syncthreads();
            limit = kEvery;
            collect();
        }
        return limit;
    }

    /// Of an estimate that is a number.
    __device__ __forceinline__ static uint32_t lowestLimiting() {
        return orderedKey(-FLT_MAX);
    }

    /// No more than the limit so far, of which some groups have all estimates:
    /// of the estimates themselves, where the least of the groups say little,
    /// as of fewer groups than k. What was collected is forgotten. Out of line,
    /// so that it costs the others no registers.
    __device__ static __noinline__ uint32_t closerLimit(
            SharedStorage& shared,
            const IvfDirectParams& params,
            uint32_t row,
            bool areListed,
            uint32_t numGroups,
            uint32_t limit,
            float bound) {
        const uint32_t k = uint32_t(params.search.k);
        auto& found = shared.finish;
        const Finish finish{shared.finish, params, row};
        const uint32_t lowest = lowestLimiting();
        const auto forEach = [&](auto take) {
            finish.forKeys(
                    areListed,
                    numGroups,
                    limit,
                    [&](uint32_t key, uint32_t column) {
                        if (key >= lowest) {
                            take(makeEntry(key, column));
                        }
                    });
        };
        __syncthreads(); // all have read the numbers
        if (threadIdx.x == 0) {
            found.count = 0;
            shared.numLimiting = 0;
        }
        const uint32_t key =
                entryKey(typename Finish::Narrow{found.narrow}.limit(
                        forEach, k, k + k / 8 + 8));
        uint32_t own = 0;
        forEach([&](uint64_t entry) { own += entryKey(entry) <= key; });
        atomicAdd(&shared.numLimiting, own);
        __syncthreads();
        return shared.numLimiting < k ? limit
                                      : min(limit, limitOf(params, key, bound));
    }

    /// The canonical key of a vector of a probe, by eight lanes, in all of
    /// them; by all lanes of the warp.
    __device__ __forceinline__ uint32_t
    keyOf(uint32_t probe, uint32_t vector) const {
        return Keys{shared.keys, params.search}.of(
                shared.finish.lists[probe], shared.codes[probe], vector);
    }

    /// Asks for the codes of the candidates from one on, of interleaved lists,
    /// where those of 32 vectors are in the same lines.
    __device__ __forceinline__ void prefetchFrom(uint32_t first) const {
        constexpr uint32_t kLine = 128;
        const auto& found = shared.finish;
        const uint32_t bytes = uint32_t(params.search.d) * kListGroup;
        for (uint32_t i = first + threadIdx.x / kWarpSize; i < found.count;
             i += kThreads / kWarpSize) {
            const uint8_t* codes = shared.codes[found.groups[i]] +
                    int64_t(found.columns[i] / kListGroup) * bytes;
            for (uint32_t at = threadIdx.x % kWarpSize * kLine; at < bytes;
                 at += kWarpSize * kLine) {
                prefetchToL2(codes + at);
            }
        }
    }

    /// What was collected: keys in place of estimates, and ids.
    __device__ __forceinline__ void score() const {
        auto& found = shared.finish;
        const Finish finish{shared.finish, params, row};
        const uint32_t count = found.count;
        const uint32_t own = threadIdx.x;
        // In place of their groups probes, and of columns what they are of
        // these; ids come while keys are made.
        int64_t id = -1;
        if (own < count) {
            const uint32_t column = found.columns[own];
            const uint32_t probe = finish.probeOf(column);
            const uint32_t vector = column - found.first[probe];
            found.groups[own] = probe;
            found.columns[own] = vector;
            id = finish.idAt(probe, vector);
        }
        __syncthreads();
        // Product codes are few bytes, which the scan has just read.
        if constexpr (kIsScalar<kCoding>) {
            prefetchFrom(kAtOnce);
        }
        const uint32_t ofWarp =
                threadIdx.x / kWarpSize * kWarpSize / kPairLanes;
        for (uint32_t first = ofWarp; first < count; first += kAtOnce) {
            const uint32_t i = first + threadIdx.x % kWarpSize / kPairLanes;
            const uint32_t one = min(i, count - 1);
            const uint32_t key = keyOf(found.groups[one], found.columns[one]);
            if (i < count && threadIdx.x % kPairLanes == 0) {
                found.keys[i] = key;
            }
        }
        if (own < count) {
            found.ids[own] = id;
        }
        __syncthreads();
    }

    /// More than there is room for: keys in place of the estimates of all
    /// within the limit, for a finish of keys. Out of line, so that it costs
    /// the others no registers.
    __device__ static __noinline__ void scoreAll(
            SharedStorage& shared,
            const IvfDirectParams& params,
            uint32_t row,
            uint32_t total,
            uint32_t limit) {
        constexpr uint32_t kTogether = kWarpSize / kPairLanes; // vectors
        const IvfFloorsFinish self{shared, params, row};
        const Finish finish{shared.finish, params, row};
        const int64_t stride = params.search.stride;
        const uint32_t lane = threadIdx.x % kWarpSize;
        for (uint32_t g = threadIdx.x / kWarpSize; g < total;
             g += kThreads / kWarpSize) {
            uint32_t* keys =
                    params.keys + row * stride + int64_t(g) * kListGroup;
            // What is not to be found is above any limit.
            const uint32_t wanted =
                    __ballot_sync(kFullWarp, keys[lane] <= limit);
            const uint32_t probe = finish.probeOf(g * kListGroup);
            const uint32_t first = g * kListGroup - shared.finish.first[probe];
            uint32_t key = kNanKey;
            for (uint32_t v = 0; v < kListGroup; v += kTogether) {
                const uint32_t some = wanted >> v & ((1u << kTogether) - 1);
                if (some == 0) {
                    continue; // in all lanes
                }
                const uint32_t j = lane / kPairLanes;
                const uint32_t one = some >> j & 1 ? j : __ffs(some) - 1;
                const uint32_t found = self.keyOf(probe, first + v + one);
                const uint32_t own = __shfl_sync(
                        kFullWarp, found, lane % kTogether * kPairLanes);
                if (lane / kTogether * kTogether == v && (wanted >> lane & 1)) {
                    key = own;
                }
            }
            keys[lane] = key;
            const uint32_t least = __reduce_min_sync(kFullWarp, key);
            if (lane == 0) {
                params.least[row * (stride / kListGroup) + g] = least;
            }
        }
        __syncthreads();
    }
};

/// A block a row.
template <Metric kMetric, ListCoding kCoding>
__global__ __launch_bounds__(kThreads) void floorsFinishKernel(
        const __grid_constant__ IvfDirectParams params) {
    using Finish = IvfFloorsFinish<kMetric, kCoding>;
    extern __shared__ __align__(16) uint8_t floorsFinishMemory[];
    allowNext();
    waitForPrevious();
    Finish{*reinterpret_cast<typename Finish::SharedStorage*>(
                   floorsFinishMemory),
           params,
           blockIdx.x}
            .run();
}

} // namespace

template <Metric kMetric, ListCoding kCoding>
void launchIvfFloorsFinish(const IvfDirectParams& params, cudaStream_t stream) {
    const auto kernel = floorsFinishKernel<kMetric, kCoding>;
    launchTogether(
            kernel,
            dim3(params.search.rows),
            kThreads,
            sizeof(typename IvfFloorsFinish<kMetric, kCoding>::SharedStorage),
            stream,
            params);
}

template void launchIvfFloorsFinish<Metric::L2, ListCoding::Scalar8>(
        const IvfDirectParams&,
        cudaStream_t);
template void launchIvfFloorsFinish<Metric::InnerProduct, ListCoding::Scalar8>(
        const IvfDirectParams&,
        cudaStream_t);
template void launchIvfFloorsFinish<Metric::L2, ListCoding::Product>(
        const IvfDirectParams&,
        cudaStream_t);
template void launchIvfFloorsFinish<Metric::InnerProduct, ListCoding::Product>(
        const IvfDirectParams&,
        cudaStream_t);

} // namespace faiss_bits

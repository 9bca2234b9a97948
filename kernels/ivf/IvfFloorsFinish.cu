// The k nearest of a direct search, of estimates of the keys of fours of
// columns: the vectors of what may be among them get canonical keys, and these
// are sorted.
//
// Bound by: the wait for memory, some seven times one after another.

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/common/LaunchesTogether.h"
#include "kernels/ivf/IvfBoundedScans.h"
#include "kernels/ivf/IvfDirectFinish.cuh"
#include "kernels/ivf/IvfDirectSums.cuh"
#include "kernels/ivf/IvfFloorBound.h"
#include "kernels/ivf/IvfFloors.h"
#include "kernels/ivf/IvfIdTest.cuh"
#include "kernels/knn/certified/JoinSlots.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 512;
constexpr int kOfFour = kIvfFloorVectors; // vectors of an estimate
constexpr int kRoom = 16 * kMostFloorK;   // for candidates

template <Metric kMetric, ListCoding kCoding>
struct IvfFloorsFinish {
    using Finish = DirectFinish<kThreads, kRoom>;
    using Terms = canonical::Terms<kMetric>;
    static constexpr int kOfThread = 4; // groups, of those that are read once
    static constexpr uint32_t kMostFours = kRoom / kOfFour;
    static constexpr uint32_t kEvery = kNanKey - 1; // key
    static constexpr int kMostPadded =
            kMostBookTableDims; // more than kMostFloorDims

    struct SharedStorage {
        typename Finish::SharedStorage finish;
        double query[kMostPadded];
        float2 steps[kMostFloorDims]; // of scalar codes: a step and a start
        uint32_t numFours;
        uint32_t numLimiting; // groups that were found and set a limit
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
        const IvfQueryAhead<kThreads> query(params.search, row);
        const int c = int(threadIdx.x);
        const bool hasStep = kIsScalar<kCoding> && c < params.search.d;
        float2 step = {0, 0};
        if (hasStep) {
            step = {params.search.steps[c], params.search.starts[c]};
        }
        const uint32_t total = finish.begin(least);
        query.write(shared.query, kMostPadded);
        if (hasStep) {
            shared.steps[c] = step;
        }
        const uint32_t limit = findGroups(least, total, k, bound);
        if (shared.finish.numGroups <= kRoom) {
            findFours(limit);
        }
        if (shared.finish.numGroups > kRoom || shared.numFours > kMostFours) {
            scoreAll(shared, params, row, total, limit);
            finish.run();
        } else {
            score(limit);
            finish.write(shared.finish.count, k);
        }
    }

   private:
    /// Of a key that the estimates of k vectors are not above.
    __device__ __forceinline__ uint32_t
    limitOf(uint32_t key, float bound) const {
        const float limit = __double2float_ru(ivf_code::limitOf<kMetric>(
                double(keyValue(key)), bound, params.search.d));
        // No number: some list has no bound.
        return limit == limit ? min(orderedKey(limit), kEvery) : kEvery;
    }

    __device__ __forceinline__ const float* estimates() const {
        return params.search.distances +
                int64_t(row) * (params.search.stride / kOfFour);
    }

    /// Groups of 32 columns that have all keys up to a limit, which k vectors
    /// are not above; of more than there is room for some. The block is in step
    /// then. What has no estimate sets no limit, and is within any.
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
        const uint32_t lowest = orderedKey(-FLT_MAX);
        const auto forEach = [&](auto take) { forEachFrom(lowest, take); };
        if (threadIdx.x == 0) {
            found.numGroups = 0;
            found.count = 0;
            shared.numFours = 0;
            shared.numLimiting = 0;
        }
        __syncthreads();
        uint32_t limit = kEvery;
        if (total > k) {
            limit = limitOf(
                    typename Finish::Limit{found.narrow}.of(forEach, k), bound);
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

    /// Of the groups that were found; of more than there is room for some. The
    /// block is in step then.
    __device__ __forceinline__ void findFours(uint32_t limit) const {
        auto& found = shared.finish;
        constexpr uint32_t kFours = kListGroup / kOfFour; // of a group
        const uint32_t count = found.numGroups * kFours;
        for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
            const uint32_t four =
                    found.groups[i / kFours] * kFours + i % kFours;
            const float value = estimates()[four];
            if (value >= -INFINITY && orderedKey(value) <= limit) {
                const uint32_t to = atomicAdd(&shared.numFours, 1u);
                if (to < kMostFours) {
                    found.columns[to] = four;
                }
            }
        }
        __syncthreads();
    }

    struct Scored {
        uint32_t key;
        int64_t id; // in the first lane, where it is wanted
    };

    /// A slot's sum of a vector of codes as the scans take them: rows of bytes,
    /// of parts of a power of two; or interleaved. All codes come in one wait,
    /// and with them centroids, and rows of the codebook in another.
    __device__ __forceinline__ double slotOf(uint32_t list, uint32_t vector)
            const {
        constexpr bool kIsProduct = kCoding == ListCoding::Product;
        constexpr int kAhead = 16;
        constexpr int kStep = kAhead * kPairLanes;
        const IvfParams& search = params.search;
        const ListDecoding& decoding = search.lists.decoding;
        const int lane = int(threadIdx.x % kPairLanes);
        const int d = search.d;
        const int logDims = kIsProduct ? 31 - __clz(d / decoding.numParts) : 0;
        const auto* codes =
                static_cast<const uint8_t*>(search.lists.vectors[list]);
        codes += kIsProduct ? int64_t(vector) * decoding.numParts
                            : int64_t(vector / kListGroup) * d * kListGroup +
                        vector % kListGroup;
        const float* centroid = decoding.centroids
                ? decoding.centroids + int64_t(list) * d
                : nullptr;
        double sums[1] = {};
#pragma unroll 1
        for (int begin = lane; begin < d; begin += kStep) {
            uint32_t some[kAhead];
            float centers[kAhead];
            float xs[kAhead];
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                const int c = begin + i * kPairLanes;
                const int at = kIsProduct ? c >> logDims : c * int(kListGroup);
                some[i] = c < d ? __ldg(codes + at) : 0;
                centers[i] = c < d && centroid ? __ldg(centroid + c) : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                const int c = begin + i * kPairLanes;
                xs[i] = 0;
                if (c < d) {
                    if constexpr (kIsProduct) {
                        const int row = (c >> logDims) * kIvfCodebookRows +
                                int(some[i]);
                        xs[i] =
                                __ldg(decoding.codebook + (row << logDims) +
                                      (c & ((1 << logDims) - 1)));
                    } else {
                        const float2 step = shared.steps[c];
                        xs[i] = __fmaf_rn(float(some[i]), step.x, step.y);
                    }
                }
            }
            // Behind the last component all are zeros, which no sum notices;
            // nor does it notice 0 for -0, where there is no centroid.
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                Terms::add(
                        sums,
                        double(__fadd_rn(xs[i], centers[i])),
                        shared.query[begin + i * kPairLanes],
                        search.power);
            }
        }
        return sums[0];
    }

    /// The canonical key of a column, by eight lanes, in all of them; by all
    /// lanes of the warp. What is not to be found has none. kWithId: its id,
    /// which comes meanwhile.
    template <bool kWithId>
    __device__ __forceinline__ Scored keyOf(uint32_t column) const {
        const IvfParams& search = params.search;
        const uint32_t probe =
                Finish{shared.finish, params, row}.probeOf(column);
        Scored scored;
        const uint32_t list = shared.finish.lists[probe];
        const uint32_t vector = column - shared.finish.first[probe];
        const uint32_t length = listLength(search.lists, list);
        const uint32_t nearest = min(vector, length - 1);
        if (kWithId && threadIdx.x % kPairLanes == 0) {
            scored.id = listId(search.lists, list, nearest);
        }
        bool isThere =
                vector < length && isSelected(search.lists, list, vector);
        if (isThere && search.lists.idTest.kind != ListIdTest::Kind::None) {
            isThere = passesIdTest(
                    search.lists.idTest, listId(search.lists, list, vector));
        }
        double sums[1] = {slotOf(list, nearest)};
        joinSlots<Terms>(sums);
        scored.key = isThere
                ? entryKey(distanceEntry<kMetric>(Terms::finish(sums), 0))
                : kNanKey;
        return scored;
    }

    /// What was found: keys and ids of what is within the limit.
    __device__ __forceinline__ void score(uint32_t limit) const {
        auto& found = shared.finish;
        constexpr uint32_t kAtOnce = kThreads / kPairLanes;
        const uint32_t count = shared.numFours * kOfFour;
        for (uint32_t first = 0; first < count; first += kAtOnce) {
            const uint32_t i = first + threadIdx.x / kPairLanes;
            const bool isOne = i < count;
            const Scored scored = keyOf<true>(
                    found.columns[isOne ? i / kOfFour : 0] * kOfFour +
                    (isOne ? i % kOfFour : 0));
            if (isOne && threadIdx.x % kPairLanes == 0 &&
                scored.key <= limit) { // NaN is not
                const uint32_t to = atomicAdd(&found.count, 1u);
                found.keys[to] = scored.key;
                found.ids[to] = scored.id;
            }
        }
        __syncthreads();
    }

    /// More than there is room for: keys of all within the limit, for a finish
    /// of keys. Out of line, so that it costs the others no registers.
    __device__ static __noinline__ void scoreAll(
            SharedStorage& shared,
            const IvfDirectParams& params,
            uint32_t row,
            uint32_t total,
            uint32_t limit) {
        const IvfFloorsFinish self{shared, params, row};
        const IvfParams& search = params.search;
        const uint32_t lane = threadIdx.x % kWarpSize;
        const float* estimates = self.estimates();
        for (uint32_t g = threadIdx.x / kWarpSize; g < total;
             g += kThreads / kWarpSize) {
            uint32_t least = kNanKey;
            for (uint32_t v = 0; v < kListGroup; v += kOfFour) {
                const uint32_t column = g * kListGroup + v;
                const float estimate = estimates[column / kOfFour];
                uint32_t key = kNanKey;
                if (estimate >= -INFINITY && orderedKey(estimate) <= limit) {
                    key = self.template keyOf<false>(column + lane / kPairLanes)
                                  .key;
                }
                if (lane % kPairLanes == 0) {
                    params
                            .keys[int64_t(row) * search.stride + column +
                                  lane / kPairLanes] = key;
                }
                least = min(least, key);
            }
            least = __reduce_min_sync(kFullWarp, least);
            if (lane == 0) {
                params.least[int64_t(row) * (search.stride / kListGroup) + g] =
                        least;
            }
        }
        __syncthreads();
    }
};

static_assert(kWarpSize / kPairLanes == kOfFour);
static_assert(kThreads >= kMostFloorDims); // a step a thread

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
            allowSharedBytes(
                    kernel,
                    sizeof(typename IvfFloorsFinish<kMetric, kCoding>::
                                   SharedStorage)),
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

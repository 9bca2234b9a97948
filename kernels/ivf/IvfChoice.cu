// What may be among the k nearest of each row, by the bounds that estimates
// have left: a limit of upper bounds, or candidates by lower bounds.
//
// Neither has to be sorted. The k-th least of the 256 least keys, two of each
// thread's, is no less than the k-th of all: k halves of threads have one that
// is no greater. What is within that is collected, about 1.3 k keys in any order, and
// among these a key is found that k of them are no greater than, and few more.
//
// Bound by: the read of the bounds, once, to registers.

#include <type_traits>

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/IvfChoice.h"
#include "kernels/ivf/IvfColumns.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarpSize;
/// Of keys that are collected. No more are where they are distinct; else the
/// k-th is not looked for among them.
constexpr int kRoom = 512;
/// Parts of a row, each with a least key.
constexpr int kParts = 2 * kThreads;
static_assert(kIvfMostChoiceK <= kParts / 2 && kIvfMostChosen <= kRoom);
/// The greatest key of a bound; NaN comes after it.
constexpr uint32_t kMostKey = 0xFF800000u; // of infinity
constexpr uint32_t kLeastKey = 0x007FFFFFu; // of minus infinity

/// A key that k of the lanes' are no greater than, and k + spare at most where
/// that can be; kMostKey if there are fewer than k. All lanes of the warp call
/// it; what is not there is greater than kMostKey.
template <int kCount>
__device__ __forceinline__ uint32_t
keyOfRank(const uint32_t (&keys)[kCount], uint32_t k, uint32_t spare) {
    const auto numUpTo = [&](uint32_t key) {
        uint32_t count = 0;
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            count += keys[i] <= key ? 1 : 0;
        }
        return __reduce_add_sync(kFullWarp, count);
    };
    uint32_t least = ~0u;
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
        least = min(least, keys[i]);
        most = max(most, keys[i] <= kMostKey ? keys[i] : 0);
    }
    uint32_t low = __reduce_min_sync(kFullWarp, least);
    uint32_t high = __reduce_max_sync(kFullWarp, most);
    if (numUpTo(kMostKey) < k) {
        return kMostKey;
    }
    // k are no greater than `high`.
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const uint32_t count = numUpTo(middle);
        if (count < k) {
            low = middle + 1;
            continue;
        }
        high = middle;
        if (count <= k + spare) {
            break;
        }
    }
    return high;
}

struct Shared {
    uint32_t keys[kRoom];
    int32_t columns[kRoom];
    uint32_t least[kParts];
    uint32_t sums[kWarps];
    uint32_t limit;
    uint32_t count;
};

/// A block's row: kValues of its bounds a thread.
template <int kValues>
struct RowOfBounds {
    static constexpr int kMasks = (kValues + 31) / 32;

    Shared& shared;
    const float* row;
    uint32_t columns;
    float bounds[kValues];

    __device__ __forceinline__ RowOfBounds(
            Shared& storage,
            const float* of,
            uint32_t count)
            : shared(storage), row(of), columns(count) {
#pragma unroll
        for (int i = 0; i < kValues; ++i) {
            const uint32_t column = i * kThreads + threadIdx.x;
            bounds[i] = column < columns ? row[column] : NAN;
        }
    }

    /// A key that k of the row's are no greater than, and about 1.3 k at most
    /// where they are distinct and in any order.
    __device__ __forceinline__ uint32_t firstLimit(uint32_t k) const {
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            float least = bounds[part];
#pragma unroll
            for (int i = 2 + part; i < kValues; i += 2) {
                least = fminf(least, bounds[i]); // the number of two
            }
            shared.least[part * kThreads + threadIdx.x] = orderedKey(least);
        }
        __syncthreads();
        if (threadIdx.x < kWarpSize) {
            uint32_t some[kParts / kWarpSize];
#pragma unroll
            for (int i = 0; i < kParts / kWarpSize; ++i) {
                some[i] = shared.least[i * kWarpSize + threadIdx.x];
            }
            const uint32_t limit = keyOfRank(some, k, k / 16 + 2);
            if (threadIdx.x == 0) {
                shared.limit = limit;
            }
        }
        __syncthreads();
        return shared.limit;
    }

    /// Collects what is no greater than `limit`, in any order, as far as there
    /// is room. Returns how many they are. All threads call it, and none reads
    /// what was collected before.
    __device__ __forceinline__ uint32_t collect(uint32_t limit) const {
        if (threadIdx.x == 0) {
            shared.count = 0;
        }
        __syncthreads();
        const float most = keyValue(limit);
        uint32_t masks[kMasks] = {};
#pragma unroll
        for (int i = 0; i < kValues; ++i) {
            masks[i / 32] |= bounds[i] <= most ? 1u << i % 32 : 0;
        }
        uint32_t count = 0;
#pragma unroll
        for (int m = 0; m < kMasks; ++m) {
            count += __popc(masks[m]);
        }
        const int lane = threadIdx.x % kWarpSize;
        uint32_t until = count; // sum of the lanes up to this one
#pragma unroll
        for (int distance = 1; distance < kWarpSize; distance *= 2) {
            const uint32_t other = __shfl_up_sync(kFullWarp, until, distance);
            until += lane >= distance ? other : 0;
        }
        uint32_t first = 0;
        if (lane == kWarpSize - 1 && until > 0) {
            first = atomicAdd(&shared.count, until);
        }
        uint32_t at =
                __shfl_sync(kFullWarp, first, kWarpSize - 1) + until - count;
#pragma unroll
        for (int m = 0; m < kMasks; ++m) {
            for (uint32_t mask = masks[m]; mask && at < kRoom;
                 mask &= mask - 1) {
                const uint32_t column =
                        (m * 32 + __ffs(mask) - 1) * kThreads + threadIdx.x;
                shared.keys[at] = orderedKey(row[column]);
                shared.columns[at] = int32_t(column);
                ++at;
            }
        }
        __syncthreads();
        count = shared.count;
        __syncthreads();
        return count;
    }

    /// Of `count` keys that were collected up to `limit`: a key that k of the
    /// row's are no greater than, and hardly more.
    __device__ __forceinline__ uint32_t
    nextLimit(uint32_t limit, uint32_t count, uint32_t k) const {
        if (count > kRoom) {
            return limit;
        }
        if (threadIdx.x < kWarpSize) {
            const uint32_t next = count <= kRoom / 2
                    ? keyOfCollected<kRoom / 2>(count, k)
                    : keyOfCollected<kRoom>(count, k);
            if (threadIdx.x == 0) {
                shared.limit = next;
            }
        }
        __syncthreads();
        return shared.limit;
    }

    template <int kMost>
    __device__ __forceinline__ uint32_t
    keyOfCollected(uint32_t count, uint32_t k) const {
        uint32_t some[kMost / kWarpSize];
#pragma unroll
        for (int i = 0; i < kMost / kWarpSize; ++i) {
            const uint32_t at = i * kWarpSize + threadIdx.x;
            some[i] = at < count ? shared.keys[at] : ~0u;
        }
        return keyOfRank(some, k, k / 32 + 1);
    }

    /// Of the row's, how many are no greater. All threads call it.
    __device__ __forceinline__ uint32_t numUpTo(uint32_t key) const {
        const float most = keyValue(key);
        uint32_t count = 0;
#pragma unroll
        for (int i = 0; i < kValues; ++i) {
            count += bounds[i] <= most ? 1 : 0;
        }
        count = __reduce_add_sync(kFullWarp, count);
        if (threadIdx.x % kWarpSize == 0) {
            shared.sums[threadIdx.x / kWarpSize] = count;
        }
        __syncthreads();
        const uint32_t sum = __reduce_add_sync(
                kFullWarp, ofWarps<kWarps>(shared.sums, 0u));
        __syncthreads();
        return sum;
    }

    /// The greatest key that no more than `most` of the row's are up to, and
    /// the least one behind it, which is there: more than `most` are up to
    /// kMostKey. All threads call it.
    __device__ __forceinline__ uint32_t
    cutAt(uint32_t most, uint32_t& behind) const {
        // More than `most` are up to `high`, and fewer keys than `low` are not.
        uint32_t low = kLeastKey;
        uint32_t high = kMostKey;
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;
            if (numUpTo(middle) > most) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        behind = high;
        return high - 1;
    }
};

template <int kValues>
__global__ __launch_bounds__(kThreads, kValues <= 24 ? 8 : kValues <= 40 ? 6 : 4) void limitsKernel(
        const __grid_constant__ IvfLimitParams params) {
    __shared__ Shared shared;
    allowNext();
    waitForPrevious();
    const IvfParams& search = params.search;
    const RowOfBounds<kValues> row(
            shared,
            search.distances + int64_t(blockIdx.x) * search.stride,
            uint32_t(search.stride));
    const auto k = uint32_t(search.k);
    uint32_t limit = row.firstLimit(k);
    limit = row.nextLimit(limit, row.collect(limit), k);
    if (threadIdx.x == 0) {
        const int64_t last = int64_t(blockIdx.x + 1) * search.k - 1;
        params.nearest[last] = keyValue(limit);
        params.places[last] = limit == kMostKey ? -1 : 0;
    }
}

template <int kValues>
__global__ __launch_bounds__(kThreads, kValues <= 24 ? 8 : kValues <= 40 ? 6 : 4) void choiceKernel(
        const __grid_constant__ IvfChoiceParams params) {
    __shared__ Shared shared;
    __shared__ uint32_t numTaken;
    allowNext();
    waitForPrevious();
    const IvfRescoreParams& rescore = params.rescore;
    const IvfParams& search = rescore.search;
    const uint32_t number = blockIdx.x;
    const auto most = uint32_t(rescore.candidates);
    const RowOfBounds<kValues> row(
            shared,
            search.isLower
                    ? search.distances + int64_t(number) * search.stride
                    : search.foundKeys + int64_t(number) * search.room,
            search.isLower ? uint32_t(search.stride)
                           : min(search.numFound[number], search.room));
    const auto k = uint32_t(search.k);
    uint32_t first = row.firstLimit(k);
    uint32_t count = row.collect(first);
    const uint32_t nearest = row.nextLimit(first, count, k);
    // The k bounds up to that belong to vectors that are no farther than this:
    // what has a lower bound beyond it is not among the k nearest.
    const float width = __uint_as_float(search.widths[number]);
    const uint32_t key =
            orderedKey(__fadd_ru(keyValue(nearest), width));
    uint32_t limit = min(key, kMostKey); // NaN: not known
    if (limit > first || count > kRoom) {
        count = row.collect(limit);
    }
    const auto numWithin = [&] {
        uint32_t within = 0;
        for (uint32_t i = threadIdx.x; i < min(count, uint32_t(kRoom));
             i += kThreads) {
            within += shared.keys[i] <= limit ? 1 : 0;
        }
        within = __reduce_add_sync(kFullWarp, within);
        if (threadIdx.x % kWarpSize == 0) {
            shared.sums[threadIdx.x / kWarpSize] = within;
        }
        __syncthreads();
        const uint32_t sum = __reduce_add_sync(
                kFullWarp, ofWarps<kWarps>(shared.sums, 0u));
        __syncthreads();
        return sum;
    };
    uint32_t next = ~0u;
    if (count > kRoom || numWithin() > most) {
        // Those with the least lower bounds; whether that is enough shows
        // when their distances are known.
        limit = row.cutAt(most, next);
        count = row.collect(limit);
    }
    if (threadIdx.x == 0) {
        numTaken = 0;
        const int64_t last = int64_t(number + 1) * (most + 1) - 1;
        params.chosen[last] = next == ~0u ? -1 : 0;
        params.lowerBounds[last] = keyValue(next);
    }
    __syncthreads();
    const int64_t begin = int64_t(number) * most;
    for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
        if (shared.keys[i] > limit) {
            continue;
        }
        const uint32_t at = atomicAdd(&numTaken, 1u);
        const int32_t column = shared.columns[i];
        const uint64_t place = search.isLower
                ? placeOfColumn(search, number, uint32_t(column))
                : search.found[int64_t(number) * search.room + column];
        const uint32_t group = rescore.firstGroups[place >> 32] +
                uint32_t(place) / kIvfGroup;
        rescore.places[begin + at] = place;
        rescore.ranks[begin + at] = atomicAdd(&rescore.groupCounts[group], 1u);
    }
    __syncthreads();
    for (uint32_t i = numTaken + threadIdx.x; i < most; i += kThreads) {
        rescore.places[begin + i] = kIvfNoPlace;
        rescore.distances[begin + i] = NAN;
    }
}

/// kernel(values a thread), of as few as hold a row.
template <class Call>
void withValues(idx_t columns, const Call& call) {
    const auto holds = [&](int values) { return columns <= values * kThreads; };
    if (holds(8)) {
        call(std::integral_constant<int, 8>());
    } else if (holds(16)) {
        call(std::integral_constant<int, 16>());
    } else if (holds(24)) {
        call(std::integral_constant<int, 24>());
    } else if (holds(40)) {
        call(std::integral_constant<int, 40>());
    } else {
        call(std::integral_constant<int, 80>());
    }
}

} // namespace

void launchIvfLimits(const IvfLimitParams& params, cudaStream_t stream) {
    withValues(params.search.stride, [&](auto values) {
        launchAfterPrevious(
                limitsKernel<values()>,
                dim3(params.search.rows),
                kThreads,
                0,
                stream,
                params);
    });
}

void launchIvfChoice(const IvfChoiceParams& params, cudaStream_t stream) {
    const IvfRescoreParams& rescore = params.rescore;
    const IvfParams& search = rescore.search;
    const auto clear = [&](uint32_t* what, size_t count) {
        BITS_CUDA_CHECK(
                cudaMemsetAsync(what, 0, count * sizeof(uint32_t), stream));
    };
    clear(rescore.groupCounts, rescore.mostGroups);
    clear(rescore.numPlaced, kIvfPlaced);
    withValues(search.isLower ? search.stride : search.room, [&](auto values) {
        launchAfterPrevious(
                choiceKernel<values()>,
                dim3(search.rows),
                kThreads,
                0,
                stream,
                params);
    });
}

} // namespace faiss_bits

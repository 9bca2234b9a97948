// What may be among the k nearest of each row, by the bounds that estimates
// have left: a limit of upper bounds, or candidates by lower bounds.
//
// Neither has to be sorted. The k-th least of the 256 least keys, two of each
// thread's, is no less than the k-th of all: k halves of threads have one that
// is no greater. What is within that is collected, about 1.3 k keys in any
// order, and among these a key is found that k of them are no greater than, and
// few more.
//
// Bound by: the read of the bounds, once, to registers.

#include <type_traits>

#include "kernels/common/DependentLaunch.h"
#include "kernels/ivf/IvfColumns.cuh"
#include "kernels/ivf/RowOfBounds.cuh"

namespace faiss_bits {

namespace {

/// Of a multiprocessor, beside each other's registers.
template <int kValues>
constexpr int kBlocks = kValues <= 24 ? 8
        : kValues <= 40               ? 6
                                      : 4;

template <int kValues>
__global__ __launch_bounds__(kBoundThreads, kBlocks<kValues>) void limitsKernel(
        const __grid_constant__ IvfLimitParams params) {
    __shared__ BoundStorage shared;
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
        params.places[last] = limit == kMostBoundKey ? -1 : 0;
    }
}

/// What a row's candidates need of its probes, where these are few: each would
/// wait for five reads one after another.
struct ProbesOfRow {
    static constexpr uint32_t kMost = kMostChoiceProbes;
    static_assert(kMost <= kBoundThreads);

    struct Storage {
        uint32_t columns[kMost]; // where they begin
        uint32_t lists[kMost];
        uint32_t groups[kMost]; // first ones
        uint32_t pairs[kMost];  // among those of the list
    };

    Storage& storage;
    const IvfChoiceParams& params;
    uint32_t row;

    /// Behind a barrier they are there.
    __device__ __forceinline__ void read() const {
        const IvfParams& search = params.rescore.search;
        const uint32_t probe = threadIdx.x;
        if (probe >= search.nearProbes) {
            return;
        }
        const uint32_t list = probedList(search, row, probe);
        const uint32_t* columns =
                search.columns + int64_t(row) * (search.nearProbes + 1) + probe;
        storage.columns[probe] = columns[0];
        storage.lists[probe] = list;
        // No candidate is of a list that is not there; the last one ends here.
        storage.groups[probe] =
                params.countsGroups ? params.rescore.firstGroups[list] : 0;
        if (params.byLists && columns[1] > columns[0]) {
            storage.pairs[probe] =
                    search.pairRanks[int64_t(row) * search.lastProbe + probe];
        }
    }

    __device__ __forceinline__ uint32_t probeOf(uint32_t column) const {
        uint32_t low = 0;
        uint32_t high = params.rescore.search.nearProbes;
        while (high - low > 1) {
            const uint32_t middle = (low + high) / 2;
            (storage.columns[middle] <= column ? low : high) = middle;
        }
        return low;
    }
};

template <int kValues>
__global__ __launch_bounds__(kBoundThreads, kBlocks<kValues>) void choiceKernel(
        const __grid_constant__ IvfChoiceParams params) {
    __shared__ BoundStorage shared;
    __shared__ ProbesOfRow::Storage ofProbes;
    __shared__ uint32_t numTaken;
    allowNext();
    waitForPrevious();
    const IvfRescoreParams& rescore = params.rescore;
    const IvfParams& search = rescore.search;
    const uint32_t number = blockIdx.x;
    const auto most = uint32_t(rescore.candidates);
    const ProbesOfRow probes{ofProbes, params, number};
    const bool hasProbes =
            search.isLower && search.nearProbes <= ProbesOfRow::kMost;
    const RowOfBounds<kValues> row(
            shared,
            search.isLower ? search.distances + int64_t(number) * search.stride
                           : search.foundKeys + int64_t(number) * search.room,
            search.isLower ? uint32_t(search.stride)
                           : min(search.numFound[number], search.room));
    // While the row is on its way.
    const float width = __uint_as_float(search.widths[number]);
    if (hasProbes) {
        probes.read();
    }
    const auto k = uint32_t(search.k);
    const uint32_t first = row.firstLimit(k);
    uint32_t count = row.collect(first);
    const uint32_t nearest = row.nextLimit(first, count, k);
    // The k bounds up to that belong to vectors that are no farther than this:
    // what has a lower bound beyond it is not among the k nearest.
    const uint32_t key = orderedKey(__fadd_ru(keyValue(nearest), width));
    uint32_t limit = min(key, kMostBoundKey); // NaN: not known
    if (limit > first || count > kBoundRoom) {
        count = row.collect(limit);
    }
    const auto numWithin = [&] {
        uint32_t within = 0;
        for (uint32_t i = threadIdx.x; i < min(count, uint32_t(kBoundRoom));
             i += kBoundThreads) {
            within += shared.keys[i] <= limit ? 1 : 0;
        }
        within = __reduce_add_sync(kFullWarp, within);
        if (threadIdx.x % kWarpSize == 0) {
            shared.sums[threadIdx.x / kWarpSize] = within;
        }
        __syncthreads();
        const uint32_t sum = __reduce_add_sync(
                kFullWarp, ofWarps<kBoundWarps>(shared.sums, 0u));
        __syncthreads();
        return sum;
    };
    uint32_t next = ~0u;
    if (count > kBoundRoom || numWithin() > most) {
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
    for (uint32_t i = threadIdx.x; i < count; i += kBoundThreads) {
        if (shared.keys[i] > limit) {
            continue;
        }
        const uint32_t at = atomicAdd(&numTaken, 1u);
        const int32_t column = shared.columns[i];
        uint64_t place = 0;
        uint32_t firstGroup = 0; // of its list
        if (hasProbes) {
            const uint32_t probe = probes.probeOf(uint32_t(column));
            place = uint64_t(ofProbes.lists[probe]) << 32 |
                    (uint32_t(column) - ofProbes.columns[probe]);
            firstGroup = ofProbes.groups[probe];
            if (params.byLists) {
                params.chosen[begin + number + at] =
                        int32_t(ofProbes.pairs[probe]);
            }
        } else {
            place = search.isLower
                    ? placeOfColumn(search, number, uint32_t(column))
                    : search.found[int64_t(number) * search.room + column];
            firstGroup =
                    params.countsGroups ? rescore.firstGroups[place >> 32] : 0;
        }
        rescore.places[begin + at] = place;
        if (params.countsGroups) {
            const uint32_t group = firstGroup + uint32_t(place) / kIvfGroup;
            rescore.ranks[begin + at] =
                    atomicAdd(&rescore.groupCounts[group], 1u);
        }
    }
    __syncthreads();
    for (uint32_t i = numTaken + threadIdx.x; i < most; i += kBoundThreads) {
        rescore.places[begin + i] = kIvfNoPlace;
        rescore.distances[begin + i] = NAN;
    }
}

/// kernel(values a thread), of as few as hold a row.
template <class Call>
void withValues(idx_t columns, const Call& call) {
    const auto holds = [&](int values) {
        return columns <= values * kBoundThreads;
    };
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
                kBoundThreads,
                0,
                stream,
                params);
    });
}

void launchIvfChoice(const IvfChoiceParams& params, cudaStream_t stream) {
    const IvfParams& search = params.rescore.search;
    withValues(search.isLower ? search.stride : search.room, [&](auto values) {
        launchAfterPrevious(
                choiceKernel<values()>,
                dim3(search.rows),
                kBoundThreads,
                0,
                stream,
                params);
    });
}

} // namespace faiss_bits

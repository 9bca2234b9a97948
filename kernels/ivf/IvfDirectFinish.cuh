/// The k nearest of a direct search: of the keys of all columns of a row those
/// that are not above a limit, by their ids.
///
/// Bound by: the wait for memory, some five times one after another.
#pragma once

#include <cfloat>

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/ivf/IvfDirectParams.h"
#include "kernels/ivf/IvfFoundSort.cuh"
#include "kernels/ivf/IvfGroupLimit.cuh"
#include "kernels/ivf/IvfGroupList.cuh"
#include "kernels/ivf/IvfLeastAhead.cuh"
#include "kernels/ivf/IvfLowestIds.cuh"
#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

/// kRoom: for what is sorted, more than k; a power of two.
template <int kThreads, int kRoom>
struct DirectFinish {
    using Narrow = BlockNarrow<kThreads>;
    using Limit = IvfGroupLimit<kThreads>;
    using Lowest = IvfLowestIds<kThreads>;
    /// Where ids lie is asked for while groups are found, so that ids come in
    /// one wait; smaller blocks are many, and each waits beside others.
    static constexpr bool kAsksPlaces = kThreads >= 512;
    /// Up to so many are compared with each other.
    static constexpr uint32_t kMostCompared = 256;

    struct SharedStorage {
        union {
            Narrow::SharedStorage narrow;
            Lowest::SharedStorage lowest;
        };
        // Of the row's probes: the first column, and the list.
        uint32_t first[kMostDirectProbes];
        uint32_t lists[kMostDirectProbes];
        /// Their ids.
        const void* idsOf[kAsksPlaces ? kMostDirectProbes : 1];
        uint32_t groups[kRoom]; // 32 columns each
        uint32_t keys[kRoom];
        uint32_t columns[kRoom];
        int64_t ids[kRoom];
        uint32_t numGroups;
        uint32_t count;
    };

    SharedStorage& shared;
    const IvfDirectParams& params;
    const uint32_t row;

    __device__ __forceinline__ void run() {
        const uint32_t k = uint32_t(params.search.k);
        Least least;
        const uint32_t total = begin(least);
        const uint32_t limit =
                findGroups(least, total, k, [](uint32_t key) { return key; });
        const uint32_t numGroups = shared.numGroups;
        const bool areListed = numGroups > kRoom;
        if (areListed) {
            listGroups(total, limit);
        }
        collect(areListed, numGroups, limit);
        if (shared.count > kRoom) {
            collectCrowded(shared, params, row, areListed, numGroups, limit);
        } else {
            findIds();
        }
        write(shared.count, k);
    }

    // The parts of it.

    /// Of a thread's groups, kThreads apart: keys stay in registers, unless
    /// there are more.
    using Least = uint32_t[8];

    /// The row's lists, and the first groups' least keys; returns how many
    /// groups of 32 columns it has. The block is in step after findGroups().
    template <int kOfThread>
    __device__ __forceinline__ uint32_t begin(uint32_t (&least)[kOfThread]) {
        const IvfParams& search = params.search;
        const uint32_t* columns =
                search.columns + int64_t(row) * (search.nprobe + 1);
        static_assert(kThreads * kOfThread <= kIvfLeastAhead);
        uint32_t behind = columns[search.nprobe];
        if (hasIvfLeastAhead(params)) {
            loadLeast(threadIdx.x, uint32_t(search.stride / kListGroup), least);
        } else {
            loadLeast(threadIdx.x, behind / kListGroup, least);
        }
        // What is made of it is made here: not before these loads.
        asm volatile("" : "+r"(behind));
        for (uint32_t p = threadIdx.x; p < search.nprobe; p += kThreads) {
            shared.first[p] = columns[p];
            const uint32_t list = probedList(search, row, p);
            shared.lists[p] = list;
            if (kAsksPlaces && list < search.lists.numLists &&
                search.lists.idKind != ListIds::Places) {
                copyAsyncByL1<sizeof(void*)>(
                        sharedAddress(&shared.idsOf[p]),
                        &search.lists.ids[list]);
            }
        }
        return behind / kListGroup;
    }

    /// Of groups `at` and on, kThreads apart, of which `end` are there.
    template <int kOfThread>
    __device__ __forceinline__ void loadLeast(
            uint32_t at,
            uint32_t end,
            uint32_t (&least)[kOfThread]) const {
        const uint32_t* from = leastOfRow();
#pragma unroll
        for (int i = 0; i < kOfThread; ++i) {
            const uint32_t group = at + i * kThreads;
            least[i] = group < end ? from[group] : kNanKey;
        }
    }

    /// Groups that have all keys up to a limit, which is limitOf(key) for a key
    /// that k of all are not above, if there are so many. Of more than there is
    /// room for some.
    template <class LimitOf>
    __device__ __forceinline__ uint32_t
    findGroups(Least& some, uint32_t total, uint32_t k, LimitOf limitOf) {
        constexpr int kOfThread = sizeof(Least) / sizeof(uint32_t);
        constexpr uint32_t kAtOnce = kThreads * kOfThread;
        const bool areFew = total <= kAtOnce;
        const auto forEach = [&](auto take) {
            for (uint32_t at = threadIdx.x; at < total; at += kAtOnce) {
                if (!areFew) {
                    loadLeast(at, total, some);
                }
#pragma unroll
                for (int i = 0; i < kOfThread; ++i) {
                    if (some[i] != kNanKey) {
                        take(makeEntry(some[i], at + i * kThreads));
                    }
                }
            }
        };
        if (threadIdx.x == 0) {
            shared.numGroups = 0;
            shared.count = 0;
        }
        __syncthreads();
        uint32_t limit = kNanKey - 1;
        if (total > k) {
            limit = limitOf(Limit{shared.narrow}.of(forEach, k));
        }
        forEach([&](uint64_t entry) {
            if (entryKey(entry) <= limit) {
                const uint32_t to = atomicAdd(&shared.numGroups, 1u);
                if (to < kRoom) {
                    shared.groups[to] = entryColumn(entry);
                }
            }
        });
        __syncthreads();
        // Fewer than k have a key at all, and are not above the greatest.
        return shared.numGroups < k ? kNanKey - 1 : limit;
    }

    /// The least keys of the row's groups.
    __device__ __forceinline__ uint32_t* leastOfRow() const {
        return params.least +
                int64_t(row) * (params.search.stride / kListGroup);
    }

    /// After findGroups(), of more groups than there is room for: areListed.
    __device__ __forceinline__ void listGroups(uint32_t total, uint32_t limit)
            const {
        listIvfGroups<kThreads>(leastOfRow(), total, limit, &shared.numGroups);
    }

    /// A group's number.
    __device__ __forceinline__ uint32_t
    groupAt(bool areListed, uint32_t i) const {
        return areListed ? leastOfRow()[i] : shared.groups[i];
    }

    /// Calls take(key, column) for the keys of groups up to a limit.
    template <class Take>
    __device__ __forceinline__ void forKeys(
            bool areListed,
            uint32_t numGroups,
            uint32_t limit,
            Take take) const {
        constexpr int kFours = kListGroup / 4; // of a group
        constexpr int kOfThread = 2;
        const auto* keys = reinterpret_cast<const uint4*>(
                params.keys + int64_t(row) * params.search.stride);
        const uint32_t fours = numGroups * kFours;
        for (uint32_t at = threadIdx.x; at < fours;
             at += kThreads * kOfThread) {
            uint4 some[kOfThread];
            uint32_t places[kOfThread];
#pragma unroll
            for (int i = 0; i < kOfThread; ++i) {
                const uint32_t from = at + i * kThreads;
                some[i] = make_uint4(kNanKey, kNanKey, kNanKey, kNanKey);
                if (from < fours) {
                    const uint32_t group = groupAt(areListed, from / kFours);
                    places[i] = group * kFours + from % kFours;
                    some[i] = keys[places[i]];
                }
            }
#pragma unroll
            for (int i = 0; i < kOfThread; ++i) {
                const uint32_t four[] = {
                        some[i].x, some[i].y, some[i].z, some[i].w};
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    if (four[j] <= limit) { // NaN is not
                        take(four[j], places[i] * 4 + j);
                    }
                }
            }
        }
    }

    /// Keys up to a limit, and how many there are; of more than there is room
    /// for some.
    __device__ __forceinline__ void collect(
            bool areListed,
            uint32_t numGroups,
            uint32_t limit) {
        forKeys(areListed,
                numGroups,
                limit,
                [&](uint32_t key, uint32_t column) {
                    const uint32_t to = atomicAdd(&shared.count, 1u);
                    if (to < kRoom) {
                        shared.keys[to] = key;
                        shared.columns[to] = column;
                    }
                });
        if constexpr (kAsksPlaces) {
            waitForAllCopies();
        }
        __syncthreads();
    }

    /// The probe that has a column: the last one that begins no later; empty
    /// ones before it begin there too.
    __device__ __forceinline__ uint32_t probeOf(uint32_t column) const {
        uint32_t low = 0;
        uint32_t high = params.search.nprobe;
        while (high - low > 1) {
            const uint32_t middle = (low + high) / 2;
            (shared.first[middle] <= column ? low : high) = middle;
        }
        return low;
    }

    /// After collect().
    __device__ __forceinline__ int64_t idOf(uint32_t column) const {
        const uint32_t probe = probeOf(column);
        return idAt(probe, column - shared.first[probe]);
    }

    /// The same of a vector of a probe.
    __device__ __forceinline__ int64_t
    idAt(uint32_t probe, uint32_t vector) const {
        const IvfLists& lists = params.search.lists;
        if constexpr (kAsksPlaces) {
            const void* ids = shared.idsOf[probe];
            if (lists.idKind == ListIds::Given64) {
                return static_cast<const int64_t*>(ids)[vector];
            }
            if (lists.idKind == ListIds::Given32) {
                return static_cast<const int32_t*>(ids)[vector];
            }
        }
        return listId(lists, shared.lists[probe], vector);
    }

    __device__ __forceinline__ void findIds() {
        for (uint32_t i = threadIdx.x; i < shared.count; i += kThreads) {
            shared.ids[i] = idOf(shared.columns[i]);
        }
        __syncthreads();
    }

    /// More than there is room for: a closer limit, and of what is tied with it
    /// the lowest ids. Out of line, so that it costs the others no registers.
    __device__ static __noinline__ void collectCrowded(
            SharedStorage& shared,
            const IvfDirectParams& params,
            uint32_t row,
            bool areListed,
            uint32_t numGroups,
            uint32_t limit) {
        DirectFinish finish{shared, params, row};
        const uint32_t k = uint32_t(params.search.k);
        __syncthreads(); // all have read the count
        const auto forEach = [&](auto take) {
            finish.forKeys(
                    areListed,
                    numGroups,
                    limit,
                    [&](uint32_t key, uint32_t column) {
                        take(makeEntry(key, column));
                    });
        };
        const uint32_t last =
                entryKey(Narrow{shared.narrow}.limit(forEach, k, kRoom));
        if (threadIdx.x == 0) {
            shared.count = 0;
        }
        __syncthreads();
        // These have room, and are k or more, or those tied with `last` fill
        // them up.
        if (last > 0) {
            finish.collect(areListed, numGroups, last - 1);
        }
        finish.findIds();
        const uint32_t before = shared.count;
        if (before >= k) {
            return;
        }
        const auto forTies = [&](auto take) {
            finish.forKeys(
                    areListed,
                    numGroups,
                    last,
                    [&](uint32_t key, uint32_t column) {
                        if (key == last) {
                            take(orderedId(finish.idOf(column)));
                        }
                    });
        };
        __syncthreads(); // all have read the count
        Lowest{shared.lowest}.find(
                forTies, k - before, [&](uint32_t i, int64_t id) {
                    shared.keys[before + i] = last;
                    shared.ids[before + i] = id;
                });
        if (threadIdx.x == 0) {
            shared.count = k;
        }
        __syncthreads();
    }

    /// The results, of what was collected; what is no number is none.
    __device__ __forceinline__ void write(uint32_t count, uint32_t k) {
        if (count <= kMostCompared) {
            // A place is the number of those before, which a warp counts; where
            // a list was probed twice, the same id is there twice.
            for (uint32_t i = threadIdx.x / kWarpSize; i < count;
                 i += kThreads / kWarpSize) {
                const uint32_t key = shared.keys[i];
                const int64_t id = shared.ids[i];
                uint32_t place = 0;
                for (uint32_t first = 0; first < count; first += kWarpSize) {
                    const uint32_t j = first + threadIdx.x % kWarpSize;
                    bool comes = false;
                    if (j < count) {
                        const uint32_t other = shared.keys[j];
                        const int64_t otherId = shared.ids[j];
                        comes = other < key ||
                                (other == key &&
                                 (otherId < id || (otherId == id && j < i)));
                    }
                    place += __popc(__ballot_sync(kFullWarp, comes));
                }
                if (threadIdx.x % kWarpSize == 0) {
                    put(place, k, key, id);
                }
            }
        } else {
            sortIvfFound<kThreads>(shared.keys, shared.ids, count);
            for (uint32_t i = threadIdx.x; i < min(count, k); i += kThreads) {
                put(i, k, shared.keys[i], shared.ids[i]);
            }
        }
        for (uint32_t i = count + threadIdx.x; i < k; i += kThreads) {
            put(i, k, kNanKey, -1);
        }
    }

   private:
    __device__ __forceinline__ void put(
            uint32_t place,
            uint32_t k,
            uint32_t key,
            int64_t id) const {
        if (place >= k) {
            return;
        }
        const float value = key == kNanKey ? FLT_MAX : keyValue(key);
        const int64_t at = int64_t(row) * k + place;
        params.outDistances[at] = params.largest
                ? (key == kNanKey ? -value : 0.0f - value)
                : value;
        params.outIds[at] = key == kNanKey ? -1 : id;
    }
};

} // namespace faiss_bits

/// Results of a row with few candidates, by a warp: it sorts their distances in
/// registers, and looks their ids up.
#pragma once

#include <cfloat>
#include <type_traits>

#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/IvfChoice.h"
#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

/// A row's candidates, kItems a lane.
template <int kItems>
struct FewResults {
    static constexpr int kMost = kItems * kWarpSize;
    static_assert(kMost <= kIvfMostChosen);

    /// Of a warp.
    struct Storage {
        uint64_t entries[kMost]; // in order: key, candidate
        int64_t ids[kMost];      // theirs, where distances are equal
    };

    const IvfResultParams& params;
    Storage& storage;
    uint32_t row;
    uint64_t items[kItems]; // in order, lane by lane: key, candidate

    /// Or the row is lost.
    __device__ __forceinline__ void run() {
        sort();
        const bool isAnyTied = anyTied();
        share();
        if (isLost()) {
            if (threadIdx.x % kWarpSize == 0) {
                params.lostRows[atomicAdd(params.numLost, 1u)] =
                        params.firstRow + row;
                // What the next search need not look beyond.
                const uint32_t key =
                        entryKey(storage.entries[params.search.k - 1]);
                const float value = key == kNanKey ? NAN : keyValue(key);
                params.outDistances[int64_t(row + 1) * params.search.k - 1] =
                        params.largest ? -value : value;
            }
        } else if (isAnyTied) {
            putTied();
        } else {
            putAll();
        }
    }

    __device__ __forceinline__ const float* distances() const {
        return params.rescored.distances +
                int64_t(row) * params.rescored.candidates;
    }

    __device__ __forceinline__ int64_t idOf(uint32_t candidate) const {
        const int64_t at =
                int64_t(row) * params.rescored.candidates + candidate;
        const uint64_t place = params.rescored.places[at];
        return listId(
                params.search.lists, uint32_t(place >> 32), uint32_t(place));
    }

    __device__ __forceinline__ void sort() {
        const auto most = uint32_t(params.rescored.candidates);
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t candidate =
                    uint32_t(i * kWarpSize) + threadIdx.x % kWarpSize;
            const float value = candidate < most ? distances()[candidate] : NAN;
            items[i] = makeEntry(
                    orderedKey(params.largest ? -value : value), candidate);
        }
        sortItems<2, 1>();
    }

    /// A step of a bitonic network of the warp's items, lane by lane, and those
    /// after it: runs of kSize, at this distance.
    template <int kSize, int kDistance>
    __device__ __forceinline__ void sortItems() {
        const int lane = threadIdx.x % kWarpSize;
        if constexpr (kDistance >= kItems) {
            constexpr int kLanes = kDistance / kItems;
            const bool isUp = (lane * kItems & kSize) == 0;
            const bool wantsLess = ((lane & kLanes) == 0) == isUp;
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                const uint64_t other =
                        __shfl_xor_sync(kFullWarp, items[i], kLanes);
                items[i] = (other < items[i]) == wantsLess ? other : items[i];
            }
        } else {
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                if ((i & kDistance) == 0) {
                    const bool isUp = ((lane * kItems + i) & kSize) == 0;
                    const uint64_t one = items[i];
                    const uint64_t two = items[i + kDistance];
                    const bool swaps = (two < one) == isUp;
                    items[i] = swaps ? two : one;
                    items[i + kDistance] = swaps ? one : two;
                }
            }
        }
        if constexpr (kDistance > 1) {
            sortItems<kSize, kDistance / 2>();
        } else if constexpr (kSize < kMost) {
            sortItems<2 * kSize, kSize>();
        }
    }

    /// Whether what is no candidate may belong to the result.
    __device__ __forceinline__ bool isLost() const {
        const IvfParams& search = params.search;
        const uint32_t last = entryKey(storage.entries[search.k - 1]);
        if (!search.isLower && search.numFound[row] > search.room) {
            return true;
        }
        const int64_t next =
                int64_t(row + 1) * (params.rescored.candidates + 1) - 1;
        if (params.rescored.chosen[next] < 0) {
            return false;
        }
        return last == kNanKey ||
                !(keyValue(last) < params.rescored.lowerBounds[next]);
    }

    __device__ __forceinline__ bool anyTied() const {
        const int lane = threadIdx.x % kWarpSize;
        const uint32_t other =
                __shfl_down_sync(kFullWarp, entryKey(items[0]), 1);
        bool isTied = false;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t key = entryKey(items[i]);
            const uint32_t next = i + 1 < kItems
                    ? entryKey(items[(i + 1) % kItems])
                    : lane + 1 < kWarpSize ? other
                                           : kNanKey;
            isTied |= lane * kItems + i < params.search.k && key == next &&
                    key != kNanKey;
        }
        return __any_sync(kFullWarp, isTied);
    }

    __device__ __forceinline__ void put(int place, uint32_t key, int64_t id)
            const {
        const int64_t at = int64_t(row) * params.search.k + place;
        const float value = keyValue(key);
        const bool isThere = key != kNanKey;
        const float empty = params.largest ? -FLT_MAX : FLT_MAX;
        params.outDistances[at] = !isThere ? empty
                : params.largest           ? 0.0f - value // no -0
                                           : value;
        params.outIds[at] = isThere ? id : -1;
    }

    /// Lanes side by side have places side by side.
    __device__ __forceinline__ void share() const {
        const int lane = threadIdx.x % kWarpSize;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            storage.entries[lane * kItems + i] = items[i];
        }
        __syncwarp();
    }

    __device__ __forceinline__ void putAll() const {
#pragma unroll 4
        for (int place = threadIdx.x % kWarpSize; place < params.search.k;
             place += kWarpSize) {
            const uint64_t entry = storage.entries[place];
            const uint32_t key = entryKey(entry);
            put(place, key, key == kNanKey ? -1 : idOf(entryColumn(entry)));
        }
    }

    /// With those of equal distances by their ids.
    __device__ __forceinline__ void putTied() const {
        for (int place = threadIdx.x % kWarpSize; place < kMost;
             place += kWarpSize) {
            const uint64_t entry = storage.entries[place];
            storage.ids[place] =
                    entryKey(entry) == kNanKey ? -1 : idOf(entryColumn(entry));
        }
        __syncwarp();
        const auto keyOf = [&](int place) {
            return entryKey(storage.entries[place]);
        };
        for (int place = threadIdx.x % kWarpSize; place < kMost;
             place += kWarpSize) {
            const uint32_t key = keyOf(place);
            const int64_t id = storage.ids[place];
            int rank = place;
            if (key != kNanKey) {
                while (rank > 0 && keyOf(rank - 1) == key) {
                    --rank;
                }
                int before = 0;
                for (int i = rank; i < kMost && keyOf(i) == key; ++i) {
                    const int64_t other = storage.ids[i];
                    before += other < id || (other == id && i < place) ? 1 : 0;
                }
                rank += before;
            }
            if (rank < params.search.k) {
                put(rank, key, id);
            }
        }
    }
};

/// kernel(items), of as few items a lane as hold the candidates and the k of a
/// row.
template <class Call>
void withFewItems(const IvfResultParams& params, const Call& call) {
    const int most = params.rescored.candidates > params.search.k
            ? params.rescored.candidates
            : params.search.k;
    if (most <= kWarpSize) {
        call(std::integral_constant<int, 1>());
    } else if (most <= 2 * kWarpSize) {
        call(std::integral_constant<int, 2>());
    } else if (most <= 4 * kWarpSize) {
        call(std::integral_constant<int, 4>());
    } else {
        call(std::integral_constant<int, 8>());
    }
}

} // namespace faiss_bits

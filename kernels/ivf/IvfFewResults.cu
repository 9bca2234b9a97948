// Results of rows with few candidates: a warp sorts their distances in
// registers, and looks their ids up.
//
// Bound by: the sort, some 1,200 instructions of a warp for 256 candidates.

#include <algorithm>
#include <cfloat>

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/IvfChoice.h"
#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

/// A row's candidates, kItems a lane.
template <int kItems>
struct FewResults {
    static constexpr int kMost = kItems * kWarpSize;
    using Sort = BlockBitonic<kWarpSize, kItems>;
    static_assert(kMost <= kIvfMostChosen);

    /// Of a warp, where distances are equal.
    struct Ties {
        int64_t ids[kMost];
        uint32_t keys[kMost];
    };

    const IvfResultParams& params;
    Ties& ties;
    uint32_t row;
    uint64_t items[kItems]; // in order, lane by lane: key, candidate

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
            const float value =
                    candidate < most ? distances()[candidate] : NAN;
            items[i] = makeEntry(
                    orderedKey(params.largest ? -value : value), candidate);
        }
        // Of one warp: nothing goes through shared memory.
        auto& unused = reinterpret_cast<typename Sort::SharedStorage&>(ties);
        Sort{unused}.sort(
                items, true, [](uint64_t a, uint64_t b) { return a < b; });
    }

    /// The key at a place, in every lane.
    __device__ __forceinline__ uint32_t keyAt(int place) const {
        uint32_t key = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            key = place % kItems == i ? entryKey(items[i]) : key;
        }
        return __shfl_sync(kFullWarp, key, place / kItems);
    }

    /// Whether what is no candidate may belong to the result.
    __device__ __forceinline__ bool isLost() const {
        const IvfParams& search = params.search;
        const uint32_t last = keyAt(search.k - 1);
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

    __device__ __forceinline__ void put(int place, uint32_t candidate, int64_t id)
            const {
        const int64_t at = int64_t(row) * params.search.k + place;
        params.outDistances[at] = distances()[candidate];
        params.outIds[at] = id;
    }

    __device__ __forceinline__ void putNone(int place) const {
        const int64_t at = int64_t(row) * params.search.k + place;
        params.outDistances[at] = params.largest ? -FLT_MAX : FLT_MAX;
        params.outIds[at] = -1;
    }

    /// forItem(place, key, candidate) of this lane's.
    template <class ForItem>
    __device__ __forceinline__ void forItems(const ForItem& forItem) const {
        const int lane = threadIdx.x % kWarpSize;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            forItem(lane * kItems + i,
                    entryKey(items[i]),
                    entryColumn(items[i]));
        }
    }

    __device__ __forceinline__ void putAll() const {
        forItems([&](int place, uint32_t key, uint32_t candidate) {
            if (place >= params.search.k) {
                return;
            }
            if (key == kNanKey) {
                putNone(place);
            } else {
                put(place, candidate, idOf(candidate));
            }
        });
    }

    /// With those of equal distances by their ids.
    __device__ __forceinline__ void putTied() const {
        forItems([&](int place, uint32_t key, uint32_t candidate) {
            ties.keys[place] = key;
            ties.ids[place] = key == kNanKey ? -1 : idOf(candidate);
        });
        __syncwarp();
        const int k = params.search.k;
        forItems([&](int place, uint32_t key, uint32_t candidate) {
            if (key == kNanKey) {
                if (place < k) {
                    putNone(place);
                }
                return;
            }
            const int64_t id = ties.ids[place];
            int begin = place;
            while (begin > 0 && ties.keys[begin - 1] == key) {
                --begin;
            }
            int rank = begin;
            for (int i = begin; i < kMost && ties.keys[i] == key; ++i) {
                rank += ties.ids[i] < id || (ties.ids[i] == id && i < place);
            }
            if (rank < k) {
                put(rank, candidate, id);
            }
        });
    }
};

/// A warp a row.
template <int kItems>
__global__ __launch_bounds__(kThreads) void fewResultsKernel(
        const __grid_constant__ IvfResultParams params) {
    __shared__ typename FewResults<kItems>::Ties ties[kWarps];
    allowNext();
    waitForPrevious();
    const uint32_t warp = threadIdx.x / kWarpSize;
    const uint32_t row = blockIdx.x * kWarps + warp;
    if (row >= params.search.rows) {
        return;
    }
    FewResults<kItems> results{params, ties[warp], row};
    results.sort();
    if (results.isLost()) {
        if (threadIdx.x % kWarpSize == 0) {
            params.lostRows[atomicAdd(params.numLost, 1u)] =
                    params.firstRow + row;
        }
    } else if (results.anyTied()) {
        results.putTied();
    } else {
        results.putAll();
    }
}

} // namespace

void launchIvfFewResults(const IvfResultParams& params, cudaStream_t stream) {
    const auto launch = [&](auto kernel) {
        launchAfterPrevious(
                kernel,
                dim3((params.search.rows + kWarps - 1) / kWarps),
                kThreads,
                0,
                stream,
                params);
    };
    const int most = std::max(params.rescored.candidates, params.search.k);
    if (most <= kWarpSize) {
        launch(fewResultsKernel<1>);
    } else if (most <= 2 * kWarpSize) {
        launch(fewResultsKernel<2>);
    } else if (most <= 4 * kWarpSize) {
        launch(fewResultsKernel<4>);
    } else {
        launch(fewResultsKernel<8>);
    }
}

} // namespace faiss_bits

// Results of an IVF search: ids in place of columns. The selection has put
// equal distances in the order of their columns, and has cut them so; their
// order is that of the ids.

#include "kernels/common/DependentLaunch.h"
#include "kernels/ivf/IvfColumns.cuh"
#include "kernels/ivf/IvfLowestIds.cuh"

namespace faiss_bits {

namespace {

/// Of a block: of few rows, which may have many columns, and of many.
constexpr int kFewRowsThreads = 1024;
constexpr int kManyRowsThreads = 256;

struct RowResult {
    const IvfResultParams& params;
    uint32_t row;
    const float* keys;
    const int32_t* places;
    float* distances;
    idx_t* ids;
    const uint32_t* columns;

    __device__ RowResult(const IvfResultParams& parameters, uint32_t number)
            : params(parameters),
              row(number),
              keys(params.keys + int64_t(row) * (params.search.k + 1)),
              places(params.places + int64_t(row) * (params.search.k + 1)),
              distances(params.outDistances + int64_t(row) * params.search.k),
              ids(params.outIds + int64_t(row) * params.search.k),
              columns(params.search.columns +
                      int64_t(row) * (params.search.nearProbes + 1)) {}

    /// The id of a column of the matrix.
    __device__ int64_t idOf(uint32_t column) const {
        const IvfParams& search = params.search;
        if (params.isRescored) {
            const int64_t at =
                    int64_t(row) * params.rescored.candidates + column;
            const uint64_t place = params.rescored.places[at];
            return listId(search.lists, uint32_t(place >> 32), uint32_t(place));
        }
        return idOfColumn(search, row, column);
    }

    /// The matrix that the selection was made of.
    __device__ const float* distancesOfRow() const {
        return params.isRescored
                ? params.rescored.distances +
                        int64_t(row) * params.rescored.candidates
                : params.search.distances + int64_t(row) * params.search.stride;
    }
    __device__ uint32_t numColumns() const {
        return params.isRescored ? uint32_t(params.rescored.candidates)
                                 : columns[params.search.nearProbes];
    }

    /// Rescored: whether what was not scored may belong to the result.
    __device__ bool isLost() const {
        const IvfParams& search = params.search;
        const int64_t next =
                int64_t(row + 1) * (params.rescored.candidates + 1) - 1;
        if (!search.isLower && search.numFound[row] > search.room) {
            return true;
        }
        if (params.rescored.takesAll || params.rescored.chosen[next] < 0) {
            return false; // all were scored
        }
        const float last =
                params.largest ? -keys[search.k - 1] : keys[search.k - 1];
        return places[search.k - 1] < 0 ||
                !(last < params.rescored.lowerBounds[next]);
    }

    /// Whether the place `i + 1` has the distance of place i.
    __device__ bool isTied(int i) const {
        return places[i + 1] >= 0 && keys[i + 1] == keys[i];
    }
};

/// Puts the `count` lowest ids of the columns with distance `key` at places
/// first and on, in any order. Columns are read once where their ids have room
/// in shared memory, which takes one wait for several columns of a thread.
template <int kThreads>
__device__ void keepLowestIds(
        const RowResult& result,
        float key,
        int first,
        uint32_t count) {
    using Lowest = IvfLowestIds<kThreads>;
    constexpr uint32_t kRoom = 4 * kThreads;
    constexpr uint32_t kAhead = 8;
    __shared__ typename Lowest::SharedStorage shared;
    __shared__ uint64_t some[kRoom];
    __shared__ uint32_t numTied;
    const float* row = result.distancesOfRow();
    const uint32_t numColumns = result.numColumns();
    const auto forColumns = [&](const auto& body) {
        for (uint32_t begin = threadIdx.x; begin < numColumns;
             begin += kAhead * kThreads) {
            float keys[kAhead];
#pragma unroll
            for (uint32_t i = 0; i < kAhead; ++i) {
                const uint32_t c = begin + i * kThreads;
                keys[i] = c < numColumns ? row[c] : NAN;
            }
#pragma unroll
            for (uint32_t i = 0; i < kAhead; ++i) {
                if (keys[i] == key) {
                    body(begin + i * kThreads);
                }
            }
        }
    };
    if (threadIdx.x == 0) {
        numTied = 0;
    }
    __syncthreads();
    forColumns([&](uint32_t column) {
        const uint32_t to = atomicAdd(&numTied, 1u);
        if (to < kRoom) {
            some[to] = orderedId(result.idOf(column));
        }
    });
    __syncthreads();
    const auto put = [&](uint32_t i, int64_t id) {
        result.ids[first + i] = id;
    };
    if (numTied > kRoom) {
        Lowest{shared}.find(
                [&](const auto& body) {
                    forColumns([&](uint32_t column) {
                        body(orderedId(result.idOf(column)));
                    });
                },
                count,
                put);
    } else {
        Lowest{shared}.find(
                [&](const auto& body) {
                    for (uint32_t i = threadIdx.x; i < numTied; i += kThreads) {
                        body(some[i]);
                    }
                },
                count,
                put);
    }
}

/// Sorts the first n places, ascending: a bitonic network whose steps begin
/// with a mirrored one, so that places behind the last count as the greatest.
template <int kThreads>
__device__ void sortPlaces(const RowResult& result, int n) {
    const auto compareAndSwap = [&](int a, int b) {
        if (b >= n) {
            return;
        }
        const float x = result.distances[a];
        const float y = result.distances[b];
        const bool isBehind = result.params.largest ? x < y : x > y;
        if (isBehind || (x == y && result.ids[a] > result.ids[b])) {
            result.distances[a] = y;
            result.distances[b] = x;
            const int64_t id = result.ids[a];
            result.ids[a] = result.ids[b];
            result.ids[b] = id;
        }
    };
    for (int64_t size = 2; size < 2 * int64_t(n); size *= 2) {
        const int half = int(size / 2);
        for (int i = threadIdx.x; i / half * size < n; i += kThreads) {
            const int64_t block = i / half * size;
            compareAndSwap(
                    int(block + i % half),
                    int(min(block + size - 1 - i % half, int64_t(INT_MAX))));
        }
        __syncthreads();
        for (int distance = half / 2; distance >= 1; distance /= 2) {
            for (int i = threadIdx.x; int64_t(i / distance) * 2 * distance < n;
                 i += kThreads) {
                const int64_t a =
                        int64_t(i / distance) * 2 * distance + i % distance;
                if (a + distance < n) {
                    compareAndSwap(int(a), int(a + distance));
                }
            }
            __syncthreads();
        }
    }
}

/// Puts the ids of places with the same distance, of the first n, in order;
/// false if some are too many for a thread. All threads call it.
template <int kThreads>
__device__ bool sortShortRuns(const RowResult& result, int n) {
    constexpr int kMost = 16;
    bool isDone = true;
    for (int first = threadIdx.x; first < n; first += kThreads) {
        const float key = result.keys[first];
        if (first > 0 && result.keys[first - 1] == key) {
            continue; // another thread's
        }
        int end = first + 1;
        while (end < n && end - first <= kMost && result.keys[end] == key) {
            ++end;
        }
        if (end - first > kMost) {
            isDone = false;
            continue;
        }
        for (int i = first + 1; i < end; ++i) {
            const int64_t id = result.ids[i];
            int j = i;
            for (; j > first && result.ids[j - 1] > id; --j) {
                result.ids[j] = result.ids[j - 1];
            }
            result.ids[j] = id;
        }
    }
    return __syncthreads_and(isDone);
}

/// Blocks of a multiprocessor: of many rows as many as it has threads for, as
/// the ties at the last place, which few rows have, want most registers.
template <int kThreads>
constexpr int kResultBlocks = kThreads == kManyRowsThreads ? 8 : 1;

/// A block a row.
template <int kThreads>
__global__ __launch_bounds__(
        kThreads,
        kResultBlocks<kThreads>) void resultsKernel(const __grid_constant__
                                                            IvfResultParams
                                                                    params) {
    __shared__ int firstOfLast; // place with the distance of the last
    allowNext();
    waitForPrevious();
    const RowResult result(params, blockIdx.x);
    const int k = params.search.k;
    if (params.isRescored && result.isLost()) {
        if (threadIdx.x == 0) {
            params.lostRows[atomicAdd(params.numLost, 1u)] =
                    params.firstRow + blockIdx.x;
            // What the next search need not look beyond.
            result.distances[k - 1] =
                    result.places[k - 1] < 0 ? NAN : result.keys[k - 1];
        }
        return;
    }
    if (threadIdx.x == 0) {
        firstOfLast = k - 1;
    }
    __syncthreads();
    bool anyTied = false;
    int numFound = 0;
    for (int i = threadIdx.x; i < k; i += kThreads) {
        const int32_t column = result.places[i];
        const bool isThere = column >= 0;
        result.distances[i] = result.keys[i];
        result.ids[i] = isThere ? result.idOf(uint32_t(column)) : -1;
        numFound += isThere;
        anyTied |= isThere && result.isTied(i);
    }
    if (!__syncthreads_or(anyTied)) {
        return;
    }
    __shared__ int found;
    if (threadIdx.x == 0) {
        found = 0;
    }
    __syncthreads();
    atomicAdd(&found, numFound);
    __syncthreads();
    if (result.places[k - 1] >= 0 && result.isTied(k - 1)) {
        // Some with this distance were cut off, perhaps those of lower ids.
        const float key = result.keys[k - 1];
        for (int i = threadIdx.x; i < k; i += kThreads) {
            if (result.keys[i] == key) {
                atomicMin(&firstOfLast, i);
            }
        }
        __syncthreads();
        keepLowestIds<kThreads>(
                result, key, firstOfLast, uint32_t(k - firstOfLast));
    }
    if (!sortShortRuns<kThreads>(result, found)) {
        sortPlaces<kThreads>(result, found);
    }
}

} // namespace

void launchIvfResults(const IvfResultParams& params, cudaStream_t stream) {
    constexpr uint32_t kFewRows = 64;
    const bool areFew = params.search.rows <= kFewRows;
    launchAfterPrevious(
            areFew ? resultsKernel<kFewRowsThreads>
                   : resultsKernel<kManyRowsThreads>,
            dim3(params.search.rows),
            areFew ? kFewRowsThreads : kManyRowsThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits

/// What a range search does whatever the metric: counts, their sums, and
/// results from distances that are in memory.

#include <algorithm>

#include <cub/device/device_scan.cuh>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DependentLaunch.h"
#include "kernels/device/LaneMask.cuh"
#include "kernels/range/RangeWords.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

/// Warps that take an item each, one after another.
unsigned blocksFor(int64_t items, int multiprocessors) {
    constexpr int64_t kBlocks = 32;
    return unsigned(std::clamp<int64_t>(
            (items + kWarps - 1) / kWarps, 1, kBlocks * multiprocessors));
}

/// take(item) of every item of the calling warp.
template <class Take>
__device__ __forceinline__ void forEachItem(int64_t count, const Take& take) {
    for (int64_t item = int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarpSize;
         item < count;
         item += int64_t(gridDim.x) * kWarps) {
        take(item);
    }
}

struct CountParams {
    RangeCandidates candidates;
    int64_t* counts;
    uint32_t* steps;
};

__global__ __launch_bounds__(kThreads) void rangeCountsKernel(
        const __grid_constant__ CountParams params) {
    waitForPrevious();
    const RangeItems& items = params.candidates.items;
    const uint32_t lane = threadIdx.x % kWarpSize;
    forEachItem(int64_t(items.rows) * items.perRow, [&](int64_t item) {
        const uint32_t row = uint32_t(item / items.perRow);
        const uint64_t first = item % items.perRow * items.itemWords;
        uint32_t count = 0;
        uint32_t steps = 0;
        if (hasCandidates(params.candidates, row)) {
#pragma unroll 4
            for (uint32_t w = 0; w < items.itemWords; w += kWarpSize) {
                const uint32_t bits =
                        candidateWord(params.candidates, row, first + w + lane);
                count += __popc(bits);
                steps |= uint32_t(bits != 0) << (w / kWarpSize);
            }
        }
        count = __reduce_add_sync(kFullWarp, count);
        steps = __reduce_or_sync(kFullWarp, steps);
        if (lane == 0) {
            params.counts[item] = count;
            params.steps[item] = steps;
        }
    });
}

struct BoundParams {
    const int64_t* sums;
    int64_t count;
    uint32_t step;
    uint32_t rows;
    const int64_t* last;
    int64_t* bounds;
};

__global__ __launch_bounds__(kThreads) void rangeBoundsKernel(
        const __grid_constant__ BoundParams params) {
    waitForPrevious();
    const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
    if (i <= params.rows) {
        params.bounds[i] =
                params.sums[min(int64_t(i) * params.step, params.count)];
    } else if (i == params.rows + 1) {
        params.bounds[i] = *params.last;
    }
}

__global__ __launch_bounds__(kThreads) void rangeOrderKernel(
        const __grid_constant__ RangeListParams params) {
    waitForPrevious();
    for (int64_t j = int64_t(blockIdx.x) * kThreads + threadIdx.x;
         j < params.batch.numItems;
         j += int64_t(gridDim.x) * kThreads) {
        params.inOrder[j] =
                params.counts[params.batch.firstItem + params.batch.itemAt(j)];
    }
}

__global__ __launch_bounds__(kThreads) void rangeListsKernel(
        const __grid_constant__ RangeListParams params) {
    waitForPrevious();
    if (params.offsets[params.batch.numItems] > params.most) {
        return;
    }
    const RangeItems& items = params.candidates.items;
    const uint32_t lane = threadIdx.x % kWarpSize;
    forEachItem(params.batch.numItems, [&](int64_t j) {
        int64_t to = params.offsets[j];
        if (params.offsets[j + 1] == to) {
            return;
        }
        const int64_t item = params.batch.firstItem + params.batch.itemAt(j);
        const uint32_t row = uint32_t(item / items.perRow);
        const uint64_t first = item % items.perRow * items.itemWords;
        for (uint32_t steps = params.steps[item]; steps; steps &= steps - 1) {
            const uint64_t word =
                    first + (__ffs(int(steps)) - 1) * kWarpSize + lane;
            uint32_t bits = candidateWord(params.candidates, row, word);
            const uint32_t own = __popc(bits);
            uint32_t upTo = own;
#pragma unroll
            for (int lanes = 1; lanes < kWarpSize; lanes *= 2) {
                const uint32_t before = __shfl_up_sync(kFullWarp, upTo, lanes);
                upTo += lane >= lanes ? before : 0;
            }
            int64_t place = to + upTo - own;
            for (; bits; bits &= bits - 1, ++place) {
                params.distances[place] = __uint_as_float(row);
                params.columns[place] =
                        uint32_t(word * 32 + __ffs(int(bits)) - 1);
            }
            to += __shfl_sync(kFullWarp, upTo, kWarpSize - 1);
        }
    });
}

__global__ __launch_bounds__(kThreads) void rangeKeptKernel(
        const __grid_constant__ RangeListParams params) {
    waitForPrevious();
    const bool fits = params.offsets[params.batch.numItems] <= params.most;
    forEachItem(params.batch.numItems, [&](int64_t j) {
        const int64_t last = fits ? params.offsets[j + 1] : 0;
        uint32_t count = 0;
#pragma unroll 4
        for (int64_t i = params.offsets[j] + threadIdx.x % kWarpSize; i < last;
             i += kWarpSize) {
            const float distance = params.distances[i];
            count += distance == distance;
        }
        count = __reduce_add_sync(kFullWarp, count);
        if (threadIdx.x % kWarpSize == 0) {
            params.kept[params.batch.itemAt(j)] = count;
        }
    });
}

__global__ __launch_bounds__(kThreads) void rangeResultsKernel(
        const __grid_constant__ RangeListParams params) {
    waitForPrevious();
    const uint32_t lane = threadIdx.x % kWarpSize;
    forEachItem(params.batch.numItems, [&](int64_t j) {
        const int64_t last = params.offsets[j + 1];
        int64_t to = params.places[params.batch.itemAt(j)];
#pragma unroll 2
        for (int64_t i = params.offsets[j]; i < last; i += kWarpSize) {
            float distance = nanf("");
            uint32_t column = 0;
            if (i + lane < last) {
                distance = params.distances[i + lane];
                column = params.columns[i + lane];
            }
            const bool isIn = distance == distance;
            const uint32_t all = __ballot_sync(kFullWarp, isIn);
            if (isIn) {
                const int64_t place = to + __popc(all & lanesBefore());
                params.outDistances[place] = distance;
                params.outIds[place] = column;
            }
            to += __popc(all);
        }
    });
}

/// visit(vector, distance) of every step of 32 vectors of an item: a vector a
/// lane, and NaN where it is none or may not be a result.
template <class Visit>
__device__ __forceinline__ void forEachDistance(
        const RangeMatrixParams& params,
        int64_t item,
        const Visit& visit) {
    const RangeItems& items = params.items;
    const uint32_t lane = threadIdx.x % kWarpSize;
    const int64_t row = item / items.perRow;
    const int64_t first = item % items.perRow * items.itemWords * 32;
    const int64_t last = min(first + int64_t(items.itemWords) * 32, params.n);
#pragma unroll 4
    for (int64_t v = first; v < last; v += kWarpSize) {
        float distance = nanf("");
        if (v + lane < last &&
            (!params.allowedBits ||
             (params.allowedBits[v / kWarpSize] >> lane & 1))) {
            distance = params.matrix[row * params.stride + v + lane];
        }
        visit(v + lane, distance);
    }
}

__global__ __launch_bounds__(kThreads) void rangeMatrixCountsKernel(
        const __grid_constant__ RangeMatrixParams params) {
    waitForPrevious();
    const RangeItems& items = params.items;
    forEachItem(int64_t(items.rows) * items.perRow, [&](int64_t item) {
        uint32_t count = 0;
        forEachDistance(params, item, [&](int64_t, float distance) {
            count += isInRange(distance, params.radius, params.largest);
        });
        count = __reduce_add_sync(kFullWarp, count);
        if (threadIdx.x % kWarpSize == 0) {
            params.kept[item] = count;
        }
    });
}

__global__ __launch_bounds__(kThreads) void rangeMatrixResultsKernel(
        const __grid_constant__ RangeMatrixParams params) {
    waitForPrevious();
    const RangeItems& items = params.items;
    forEachItem(int64_t(items.rows) * items.perRow, [&](int64_t item) {
        int64_t to = params.places[item];
        if (params.places[item + 1] == to) {
            return;
        }
        forEachDistance(params, item, [&](int64_t vector, float distance) {
            const bool isIn =
                    isInRange(distance, params.radius, params.largest);
            const uint32_t all = __ballot_sync(kFullWarp, isIn);
            if (isIn) {
                const int64_t place = to + __popc(all & lanesBefore());
                params.outDistances[place] = distance + 0.0f; // no -0
                params.outIds[place] = vector;
            }
            to += __popc(all);
        });
    });
}

void launchByItem(
        void (*kernel)(RangeListParams),
        const RangeListParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    launchAfterPrevious(
            kernel,
            blocksFor(params.batch.numItems, multiprocessors),
            kThreads,
            0,
            stream,
            params);
}

} // namespace

void launchRangeCounts(
        const RangeCandidates& candidates,
        int64_t* counts,
        uint32_t* steps,
        int multiprocessors,
        cudaStream_t stream) {
    const RangeItems& items = candidates.items;
    launchAfterPrevious(
            rangeCountsKernel,
            blocksFor(int64_t(items.rows) * items.perRow, multiprocessors),
            kThreads,
            0,
            stream,
            CountParams{candidates, counts, steps});
}

size_t rangeSumsBytes(int64_t count) {
    // A tile of CUB's scan has 256 counts or more, and leaves 16 bytes.
    constexpr size_t kLeast = size_t(64) << 10;
    return kLeast + size_t(count);
}

void launchRangeSums(
        int64_t* counts,
        int64_t count,
        int64_t* sums,
        void* scratch,
        size_t scratchBytes,
        cudaStream_t stream) {
    BITS_CUDA_CHECK(
            cudaMemsetAsync(counts + count, 0, sizeof(int64_t), stream));
    size_t needed = 0;
    BITS_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(
            nullptr, needed, counts, sums, count + 1, stream));
    BITS_THROW_IF_NOT_FMT(
            needed <= scratchBytes,
            "CUB needs %zu bytes to sum %lld counts, expected at most %zu",
            needed,
            (long long)count,
            scratchBytes);
    BITS_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(
            scratch, needed, counts, sums, count + 1, stream));
}

void launchRangeBounds(
        const int64_t* sums,
        int64_t count,
        uint32_t step,
        uint32_t rows,
        const int64_t* last,
        int64_t* bounds,
        cudaStream_t stream) {
    launchAfterPrevious(
            rangeBoundsKernel,
            (rows + 1) / kThreads + 1,
            kThreads,
            0,
            stream,
            BoundParams{sums, count, step, rows, last, bounds});
}

void launchRangeOrder(
        const RangeListParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    launchAfterPrevious(
            rangeOrderKernel,
            blocksFor(params.batch.numItems / kWarpSize + 1, multiprocessors),
            kThreads,
            0,
            stream,
            params);
}

void launchRangeLists(
        const RangeListParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    launchByItem(rangeListsKernel, params, multiprocessors, stream);
}

void launchRangeKept(
        const RangeListParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    launchByItem(rangeKeptKernel, params, multiprocessors, stream);
}

void launchRangeResults(
        const RangeListParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    launchByItem(rangeResultsKernel, params, multiprocessors, stream);
}

void launchRangeMatrixCounts(
        const RangeMatrixParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    launchAfterPrevious(
            rangeMatrixCountsKernel,
            blocksFor(
                    int64_t(params.items.rows) * params.items.perRow,
                    multiprocessors),
            kThreads,
            0,
            stream,
            params);
}

void launchRangeMatrixResults(
        const RangeMatrixParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    launchAfterPrevious(
            rangeMatrixResultsKernel,
            blocksFor(
                    int64_t(params.items.rows) * params.items.perRow,
                    multiprocessors),
            kThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits

/// What a range search does whatever the metric: counts, their sums, and
/// results from matrices of distances.

#include <cub/device/device_scan.cuh>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DependentLaunch.h"
#include "kernels/device/LaneMask.cuh"
#include "kernels/range/ItemWarps.cuh"
#include "kernels/range/RangeWords.cuh"

namespace faiss_bits {

namespace {

struct CountParams {
    RangeCandidates candidates;
    int64_t* counts;
    uint32_t* sectors;
};

__global__ __launch_bounds__(kItemThreads) void rangeCountsKernel(
        const __grid_constant__ CountParams params) {
    waitForPrevious();
    const RangeItems& items = params.candidates.items;
    const uint32_t lane = threadIdx.x % kWarpSize;
    forEachItem(int64_t(items.rows) * items.perRow, [&](int64_t item) {
        const ItemPlace place(items, item);
        uint32_t count = 0;
        uint32_t sectors = 0;
        if (hasCandidates(params.candidates, place.row)) {
#pragma unroll 8
            for (uint32_t w = lane; w < items.itemWords; w += kWarpSize) {
                const uint32_t bits = candidateWord(
                        params.candidates, place.row, place.firstWord + w);
                count += __popc(bits);
                sectors |= uint32_t(bits != 0) << (w / kSectorWords);
            }
        }
        count = __reduce_add_sync(kFullWarp, count);
        sectors = __reduce_or_sync(kFullWarp, sectors);
        if (lane == 0) {
            params.counts[item] = count;
            params.sectors[item] = sectors;
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

__global__ __launch_bounds__(kItemThreads) void rangeBoundsKernel(
        const __grid_constant__ BoundParams params) {
    waitForPrevious();
    const uint32_t i = blockIdx.x * kItemThreads + threadIdx.x;
    if (i <= params.rows) {
        params.bounds[i] =
                params.sums[min(int64_t(i) * params.step, params.count)];
    } else if (i == params.rows + 1) {
        params.bounds[i] = *params.last;
    }
}

__global__ __launch_bounds__(kItemThreads) void rangeOrderKernel(
        const __grid_constant__ RangeListParams params) {
    waitForPrevious();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *params.next = 0;
    }
    for (int64_t j = int64_t(blockIdx.x) * kItemThreads + threadIdx.x;
         j < params.batch.numItems;
         j += int64_t(gridDim.x) * kItemThreads) {
        params.inOrder[j] =
                params.counts[params.batch.firstItem + params.batch.itemAt(j)];
    }
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
    const ItemPlace place(items, item);
    const int64_t first = int64_t(place.firstWord * 32);
    const int64_t last = min(first + int64_t(items.itemWords) * 32, params.n);
#pragma unroll 4
    for (int64_t v = first; v < last; v += kWarpSize) {
        float distance = nanf("");
        if (v + lane < last &&
            (!params.allowedBits ||
             (params.allowedBits[v / kWarpSize] >> lane & 1))) {
            distance = params
                               .matrix[int64_t(place.row) * params.stride + v +
                                       lane];
        }
        visit(v + lane, distance);
    }
}

__global__ __launch_bounds__(kItemThreads) void rangeMatrixCountsKernel(
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

__global__ __launch_bounds__(kItemThreads) void rangeMatrixResultsKernel(
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

} // namespace

void launchRangeCounts(
        const RangeCandidates& candidates,
        int64_t* counts,
        uint32_t* sectors,
        int multiprocessors,
        cudaStream_t stream) {
    const RangeItems& items = candidates.items;
    launchAfterPrevious(
            rangeCountsKernel,
            itemBlocks(int64_t(items.rows) * items.perRow, multiprocessors),
            kItemThreads,
            0,
            stream,
            CountParams{candidates, counts, sectors});
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
            (rows + 1) / kItemThreads + 1,
            kItemThreads,
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
            itemBlocks(params.batch.numItems / kWarpSize + 1, multiprocessors),
            kItemThreads,
            0,
            stream,
            params);
}

void launchRangeMatrixCounts(
        const RangeMatrixParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    launchAfterPrevious(
            rangeMatrixCountsKernel,
            itemBlocks(
                    int64_t(params.items.rows) * params.items.perRow,
                    multiprocessors),
            kItemThreads,
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
            itemBlocks(
                    int64_t(params.items.rows) * params.items.perRow,
                    multiprocessors),
            kItemThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits

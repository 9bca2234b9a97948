/// From bits to candidates in memory, and from their distances to results.

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/LaneMask.cuh"
#include "kernels/device/LaneSums.cuh"
#include "kernels/range/ItemWarps.cuh"
#include "kernels/range/RangeWords.cuh"

namespace faiss_bits {

namespace {

constexpr int kAhead = 4; // steps whose reads are in flight together

/// Words of an item that have candidates: a word a lane, those of four sectors
/// a step.
struct SectorWords {
    static constexpr int kTogether = kWarpSize / kSectorWords;

    uint32_t left; // sectors, a bit each

    /// Takes the next four; the lane's word of the item, or none.
    __device__ __forceinline__ int next() {
        const int lane = threadIdx.x % kWarpSize;
        int sector = -1; // none
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            const int one = __ffs(int(left)) - 1;
            sector = lane / int(kSectorWords) == i ? one : sector;
            left &= left - 1; // zero stays
        }
        return sector < 0
                ? -1
                : sector * int(kSectorWords) + lane % int(kSectorWords);
    }
};

/// Numbers of vectors are put side by side in shared memory first: where many
/// pass, lanes that write their own far apart take several times as long.
__global__ __launch_bounds__(kItemThreads) void rangeListsKernel(
        const __grid_constant__ RangeListParams params) {
    __shared__ uint16_t staged[kItemWarps][kWarpSize * 32]; // of an item
    waitForPrevious();
    if (params.offsets[params.batch.numItems] > params.most) {
        return;
    }
    const RangeItems& items = params.candidates.items;
    const int lane = threadIdx.x % kWarpSize;
    uint16_t* const stage = staged[threadIdx.x / kWarpSize];
    forEachItem(params.batch.numItems, [&](int64_t j) {
        int64_t to = params.offsets[j];
        if (params.offsets[j + 1] == to) {
            return;
        }
        const int64_t item = params.batch.firstItem + params.batch.itemAt(j);
        const ItemPlace place(items, item);
        SectorWords words{params.sectors[item]};
        while (words.left) {
            int word[kAhead];
            uint32_t bits[kAhead];
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                word[i] = words.next();
                bits[i] = word[i] < 0 ? 0
                                      : candidateWord(
                                                params.candidates,
                                                place.row,
                                                place.firstWord + word[i]);
            }
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                const uint32_t own = __popc(bits[i]);
                const uint32_t upTo = sumUpToLane(own);
                const uint32_t count =
                        __shfl_sync(kFullWarp, upTo, kWarpSize - 1);
                if (count == 0) {
                    break; // there are no more
                }
                uint32_t at = upTo - own;
                for (uint32_t b = bits[i]; b; b &= b - 1) {
                    stage[at++] = uint16_t(word[i] * 32 + __ffs(int(b)) - 1);
                }
                __syncwarp();
                for (uint32_t c = lane; c < count; c += kWarpSize) {
                    params.distances[to + c] = __uint_as_float(place.row);
                    params.columns[to + c] =
                            uint32_t(place.firstWord * 32) + stage[c];
                }
                __syncwarp();
                to += count;
            }
        }
    });
}

__global__ __launch_bounds__(kItemThreads) void rangeKeptKernel(
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

__global__ __launch_bounds__(kItemThreads) void rangeResultsKernel(
        const __grid_constant__ RangeListParams params) {
    waitForPrevious();
    const uint32_t lane = threadIdx.x % kWarpSize;
    forEachItem(params.batch.numItems, [&](int64_t j) {
        const int64_t last = params.offsets[j + 1];
        int64_t i = params.offsets[j];
        if (i == last) {
            return;
        }
        int64_t to = params.places[params.batch.itemAt(j)];
        for (; i < last; i += kAhead * kWarpSize) {
            float distances[kAhead];
            uint32_t columns[kAhead];
#pragma unroll
            for (int a = 0; a < kAhead; ++a) {
                const int64_t own = i + a * kWarpSize + lane;
                distances[a] = own < last ? params.distances[own] : nanf("");
                columns[a] = own < last ? params.columns[own] : 0;
            }
#pragma unroll
            for (int a = 0; a < kAhead; ++a) {
                const bool isIn = distances[a] == distances[a];
                const uint32_t all = __ballot_sync(kFullWarp, isIn);
                if (isIn) {
                    const int64_t place = to + __popc(all & lanesBefore());
                    params.outDistances[place] = distances[a];
                    params.outIds[place] = columns[a];
                }
                to += __popc(all);
            }
        }
    });
}

void launchByItem(
        void (*kernel)(RangeListParams),
        const RangeListParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    launchAfterPrevious(
            kernel,
            itemBlocks(params.batch.numItems, multiprocessors),
            kItemThreads,
            0,
            stream,
            params);
}

} // namespace

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

} // namespace faiss_bits

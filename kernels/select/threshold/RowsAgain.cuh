/// What becomes of a row that its samples misled: its limit is found exactly,
/// and it is read once more.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/select/threshold/ExactRow.cuh"
#include "kernels/select/threshold/Misled.cuh"
#include "kernels/select/threshold/RowsAgainParams.h"
#include "kernels/select/threshold/SplitRows.cuh"

namespace faiss_bits {

/// The policy of kernels/survivors/FinishRows.cuh where the keys are in memory.
/// The second turn has most likely found what the sample missed (see rareSum in
/// SampleChoice.cpp); if not, or if there was none as the rows are short, one
/// block reads the row several times.
template <class Tile, int Threads>
struct RowsAgainFromKeys {
    using Params = ThresholdParams;
    using Exact = ExactRow<Tile, Threads>;
    using SharedStorage = typename Exact::SharedStorage;

    __device__ static bool isNeeded(
            const ThresholdParams& params,
            uint32_t row) {
        return misledBy(params, params.counts[row]) != Misled::No;
    }

    /// Begins and ends with the block in step. Out of line, so that it costs
    /// the others no registers.
    __device__ static __noinline__ void run(
            SharedStorage& shared,
            const ThresholdParams& params,
            uint32_t row) {
        uint32_t* count = params.counts + row;
        const uint32_t again = params.countsAgain ? params.countsAgain[row] : 0;
        __syncthreads();
        if (misledBy(params, again) == Misled::No) {
            if (threadIdx.x == 0) {
                *count = again;
            }
            __threadfence_block();
            __syncthreads();
            return;
        }
        const uint64_t limit = Exact{shared}.limit(
                params,
                params.firstRow + row,
                0,
                params.cols,
                min(uint32_t(params.k), params.cols),
                params.capacity,
                RowAlone());
        if (threadIdx.x == 0) {
            *count = 0;
            params.limits[row] = limit;
        }
        __threadfence_block();
        __syncthreads();
        uint64_t* survivors = params.survivors + size_t(row) * params.capacity;
        RowSurvivors<Tile, false, DropOverflow>{
                limit, survivors, count, params.capacity, {}}
                .take(params, params.firstRow + row, 0, params.cols);
        __threadfence_block();
        __syncthreads();
    }
};

/// Before survivors are sorted in memory: what both turns misled is read again
/// by the blocks of clusters, which take these rows in turn.
template <class T, class Tile, int Threads>
struct RowsAgainBody {
    using Exact = ExactRow<Tile, Threads>;
    using ToList = typename SplitRowsBody<T, Tile, false>::ToGlobal;

    struct SharedStorage {
        typename Exact::SharedStorage exact;
        uint32_t sums[Exact::kBins];
        uint32_t misled[Threads];
    };

    SharedStorage& shared;
    const RowsAgainParams& params;

    __device__ void run() {
        const RowOfCluster<Threads> team(shared.sums, params.clusterBlocks);
        if (team.rank >= team.blocks) {
            return;
        }
        const uint32_t clusters = gridDim.x / params.clusterBlocks;
        // The next of the misled rows, in their order, that is this cluster's.
        uint32_t next = blockIdx.x / params.clusterBlocks;
        for (uint32_t from = 0; from < params.rows; from += Threads) {
            const bool isMisled = from + threadIdx.x < params.rows &&
                    !isSettled(from + threadIdx.x);
            const uint32_t count = __syncthreads_count(isMisled);
            if (next >= count) {
                next -= count;
                continue;
            }
            const uint32_t place =
                    sumOfThreadsBefore<Threads>(isMisled, shared.exact.ofWarps);
            if (isMisled) {
                shared.misled[place] = from + threadIdx.x;
            }
            __syncthreads();
            for (; next < count; next += clusters) {
                readAgain(team, shared.misled[next]);
            }
            next -= count;
        }
    }

   private:
    /// Whether a list of either turn is right. Writes its count.
    __device__ __forceinline__ bool isSettled(uint32_t row) const {
        uint32_t count = params.counts[row];
        if (misledBy(params, count) != Misled::No) {
            count = params.countsAgain ? params.countsAgain[row] : 0;
            if (misledBy(params, count) != Misled::No) {
                return false;
            }
        }
        if (blockIdx.x == 0) {
            params.settled[row] = count;
        }
        return true;
    }

    __device__ __forceinline__ void readAgain(
            const RowOfCluster<Threads>& team,
            uint32_t row) {
        constexpr uint32_t kTile = Threads * Tile::kItems;
        const uint32_t tiles = (params.cols - 1) / kTile + 1;
        const uint64_t segment =
                uint64_t((tiles - 1) / team.blocks + 1) * kTile;
        const uint32_t begin =
                uint32_t(min(team.rank * segment, uint64_t(params.cols)));
        const uint32_t end =
                uint32_t(min(begin + segment, uint64_t(params.cols)));
        const uint64_t limit = Exact{shared.exact}.limit(
                params,
                params.firstRow + row,
                begin,
                end,
                min(uint32_t(params.k), params.cols),
                params.capacity,
                team);
        uint32_t* count = params.settled + row;
        if (team.rank == 0 && threadIdx.x == 0) {
            *count = 0;
            __threadfence();
        }
        // And all have taken the bins.
        team.inStep();
        RowSurvivors<Tile, false, ToList>{
                limit,
                nullptr,
                nullptr,
                0,
                {count,
                 params.survivors + size_t(row) * params.capacity,
                 params.capacity,
                 nullptr}}
                .take(params, params.firstRow + row, begin, end);
        __syncthreads();
    }
};

template <class T, class Tile, int Threads>
__global__ void __launch_bounds__(Threads)
        rowsAgainKernel(const __grid_constant__ RowsAgainParams params) {
    using Body = RowsAgainBody<T, Tile, Threads>;
    __shared__ typename Body::SharedStorage shared;
    waitForPrevious();
    Body{shared, params}.run();
}

} // namespace faiss_bits

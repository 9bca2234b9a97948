/// What becomes of a row that its sample misled.
#pragma once

#include "kernels/select/threshold/RowSurvivors.cuh"
#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

/// The policy of kernels/survivors/FinishRows.cuh where the keys are in memory:
/// one block reads the row again, several times, where the sample promised too
/// much or too little (see rareCount in ThresholdPlan.cpp).
template <class Tile, int Threads>
struct RowsAgainFromKeys {
    using Params = ThresholdParams;
    using SharedStorage = typename BlockNarrow<Threads>::SharedStorage;

    __device__ static bool isNeeded(
            const ThresholdParams& params,
            uint32_t row) {
        const uint32_t count = params.counts[row];
        return count > params.capacity ||
                count < min(uint32_t(params.k), params.cols);
    }

    /// Begins and ends with the block in step. Out of line, so that it costs
    /// the others no registers.
    __device__ static __noinline__ void run(
            SharedStorage& shared,
            const ThresholdParams& params,
            uint32_t row) {
        __syncthreads();
        const uint32_t wanted = min(uint32_t(params.k), params.cols);
        const uint64_t limit = exactLimit<Tile, Threads>(
                shared, params, params.firstRow + row, wanted, params.capacity);
        uint32_t* count = params.counts + row;
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

} // namespace faiss_bits

/// What becomes of a row that its sample misled.
#pragma once

#include "kernels/select/threshold/Misled.cuh"
#include "kernels/select/threshold/RowSurvivors.cuh"
#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

/// A limit that at least `wanted` and at most `room` of the row's entries are
/// not above, whatever they are: several readings of the row by one block.
template <class Tile, int Threads>
__device__ inline uint64_t exactLimit(
        typename BlockNarrow<Threads>::SharedStorage& shared,
        const KeySource& params,
        uint32_t row,
        uint32_t wanted,
        uint32_t room) {
    const Tile tile(params, row);
    const auto forEach = [&](auto take) {
        constexpr int kChunk = 4;
        for (uint64_t at = threadIdx.x; at < params.cols;
             at += Threads * kChunk) {
            uint64_t entries[kChunk];
#pragma unroll
            for (int i = 0; i < kChunk; ++i) {
                const uint64_t c = at + i * Threads;
                entries[i] =
                        c < params.cols ? tile.entryAt(uint32_t(c)) : kNoEntry;
            }
#pragma unroll
            for (int i = 0; i < kChunk; ++i) {
                if (entries[i] != kNoEntry) {
                    take(entries[i]);
                }
            }
        }
    };
    return BlockNarrow<Threads>{shared}.limit(forEach, wanted, room);
}

/// The policy of kernels/survivors/FinishRows.cuh where the keys are in memory.
/// The second turn has most likely found what the sample missed (see rareSum in
/// SampleChoice.cpp); if not, or if there was none as the rows are short, one
/// block reads the row several times.
template <class Tile, int Threads>
struct RowsAgainFromKeys {
    using Params = ThresholdParams;
    using SharedStorage = typename BlockNarrow<Threads>::SharedStorage;

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
        const uint32_t wanted = min(uint32_t(params.k), params.cols);
        const uint64_t limit = exactLimit<Tile, Threads>(
                shared, params, params.firstRow + row, wanted, params.capacity);
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

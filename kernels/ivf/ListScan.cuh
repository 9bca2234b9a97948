/// Sums over the lists before each, by one block.
#pragma once

#include <cub/block/block_scan.cuh>

#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

template <int kSums>
struct ListScan {
    static constexpr int kThreads = 1024;
    static constexpr int kItems = 4; // lists of a thread at a time
    using Scan = cub::BlockScan<uint32_t, kThreads>;
    using SharedStorage = typename Scan::TempStorage;

    SharedStorage& shared;

    /// numbersOf(list, numbers): kSums numbers of a list. store(list, sums):
    /// theirs of the lists before it; list numLists: of all.
    template <class NumbersOf, class Store>
    __device__ __forceinline__ void run(
            uint32_t numLists,
            const NumbersOf& numbersOf,
            const Store& store) const {
        uint32_t before[kSums] = {};
        for (uint32_t first = 0; first < numLists; first += kThreads * kItems) {
            uint32_t sums[kSums][kItems];
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                const uint32_t list = first + threadIdx.x * kItems + i;
                uint32_t numbers[kSums] = {};
                if (list < numLists) {
                    numbersOf(list, numbers);
                }
#pragma unroll
                for (int s = 0; s < kSums; ++s) {
                    sums[s][i] = numbers[s];
                }
            }
#pragma unroll
            for (int s = 0; s < kSums; ++s) {
                uint32_t total = 0;
                Scan(shared).ExclusiveSum(sums[s], sums[s], total);
                __syncthreads();
#pragma unroll
                for (int i = 0; i < kItems; ++i) {
                    sums[s][i] += before[s];
                }
                before[s] += total;
            }
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                const uint32_t list = first + threadIdx.x * kItems + i;
                uint32_t numbers[kSums];
#pragma unroll
                for (int s = 0; s < kSums; ++s) {
                    numbers[s] = sums[s][i];
                }
                if (list < numLists) {
                    store(list, numbers);
                }
            }
        }
        if (threadIdx.x == 0) {
            store(numLists, before);
        }
    }
};

} // namespace faiss_bits

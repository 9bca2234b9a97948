/// Pairs of a query and a list, by list, of few queries: by one block.
#pragma once

#include "kernels/device/BlockScan.cuh"
#include "kernels/ivf/IvfDirectParams.h"
#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

/// Of at most kMostSortedPairs pairs and kMostSortedLists lists.
struct IvfSortedPairs {
    static constexpr uint32_t kThreads = kIvfDirectThreads;
    static constexpr uint32_t kOfThread = kMostSortedPairs / kThreads;
    static constexpr uint32_t kLists = uint32_t(kMostSortedLists) / kThreads;

    struct SharedStorage {
        /// Pairs of a list; then those of the lists before.
        uint32_t pairs[kMostSortedLists];
        uint32_t sums[2][kThreads / kWarpSize];
    };

    SharedStorage& shared;
    const IvfDirectParams& params;

    /// Other blocks have just written lists and columns.
    __device__ __forceinline__ void run() {
        const IvfParams& search = params.search;
        const uint32_t numLists = uint32_t(search.lists.numLists);
        const uint32_t pairs = search.rows * search.nprobe;
        for (uint32_t l = threadIdx.x; l < numLists; l += kThreads) {
            shared.pairs[l] = 0;
        }
        uint32_t lists[kOfThread]; // numLists: there is no such pair
#pragma unroll
        for (uint32_t i = 0; i < kOfThread; ++i) {
            const uint32_t pair = i * kThreads + threadIdx.x;
            const idx_t list = pair < pairs ? __ldcg(search.probes + pair) : -1;
            lists[i] = list >= 0 && list < search.lists.numLists
                    ? uint32_t(list)
                    : numLists;
        }
        __syncthreads();
        uint32_t ranks[kOfThread];
#pragma unroll
        for (uint32_t i = 0; i < kOfThread; ++i) {
            ranks[i] = lists[i] < numLists
                    ? atomicAdd(&shared.pairs[lists[i]], 1u)
                    : 0;
        }
        __syncthreads();
        addUp(numLists);
#pragma unroll
        for (uint32_t i = 0; i < kOfThread; ++i) {
            if (lists[i] < numLists) {
                const uint32_t pair = i * kThreads + threadIdx.x;
                const uint32_t row = pair / search.nprobe;
                const uint32_t at = shared.pairs[lists[i]] + ranks[i];
                search.pairRows[at] = row;
                // A row has a column more than lists.
                search.pairColumns[at] = __ldcg(search.columns + pair + row);
            }
        }
    }

   private:
    /// Pairs and tiles of the lists before, of some side by side for each
    /// thread. Ends with the block in step.
    __device__ __forceinline__ void addUp(uint32_t numLists) {
        const IvfParams& search = params.search;
        const uint32_t ofThread = (numLists + kThreads - 1) / kThreads;
        const uint32_t begin = threadIdx.x * ofThread;
        uint32_t tiles[kLists];
        uint32_t sums[2] = {};
#pragma unroll
        for (uint32_t i = 0; i < kLists; ++i) {
            const uint32_t l = begin + i;
            const bool isThere = i < ofThread && l < numLists;
            const uint32_t pairs = isThere ? shared.pairs[l] : 0;
            const uint32_t length = pairs > 0 ? listLength(search.lists, l) : 0;
            tiles[i] = (pairs + params.tileQueries - 1) / params.tileQueries *
                    ((length + params.tileVectors - 1) / params.tileVectors);
            sums[0] += pairs;
            sums[1] += tiles[i];
        }
        uint32_t pairsBefore =
                sumOfThreadsBefore<kThreads>(sums[0], shared.sums[0]);
        uint32_t tilesBefore =
                sumOfThreadsBefore<kThreads>(sums[1], shared.sums[1]);
#pragma unroll
        for (uint32_t i = 0; i < kLists; ++i) {
            const uint32_t l = begin + i;
            if (i < ofThread && l < numLists) {
                const uint32_t pairs = shared.pairs[l];
                search.counts[l] = pairs;
                search.firstPairs[l] = pairsBefore;
                search.firstTiles[l] = tilesBefore;
                shared.pairs[l] = pairsBefore;
                pairsBefore += pairs;
                tilesBefore += tiles[i];
                if (l == numLists - 1) {
                    search.firstTiles[numLists] = tilesBefore;
                }
            }
        }
        __syncthreads();
    }
};

} // namespace faiss_bits

/// The lists of one query, which every block of its scan finds for itself.
#pragma once

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/device/BlockScan.cuh"
#include "kernels/device/Narrow.cuh"
#include "kernels/ivf/IvfDirectParams.h"
#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

/// kOfThreads: of the block.
template <int kOfThreads>
struct IvfDirectListsBy {
    static constexpr int kThreads = kOfThreads;
    using Narrow = BlockNarrow<kThreads>;

    /// More than the nearest lists, so that one histogram mostly finds them.
    static constexpr uint32_t kMostChosen =
            kMostFoundProbes + kMostFoundProbes / 8 + 8;

    struct SharedStorage {
        Narrow::SharedStorage narrow;
        uint64_t chosen[kMostChosen];
        uint32_t numChosen;
        uint32_t sums[kThreads / kWarpSize];
        uint32_t total;
    };

    /// Of each list, in shared memory: with few lists more blocks fit.
    struct Tables {
        const void** vectors;
        uint32_t* numbers; // numLists: there is none
        uint32_t* lengths;
        /// Its first 32 columns, counted in 32s; and behind the last.
        uint32_t* first;

        BITS_HOST_DEVICE static constexpr size_t bytes(uint32_t nprobe) {
            return nprobe * (sizeof(void*) + 3 * sizeof(uint32_t)) +
                    sizeof(uint32_t);
        }

        /// memory: on eight bytes.
        __device__ __forceinline__ Tables(void* memory, uint32_t nprobe)
                : vectors(static_cast<const void**>(memory)),
                  numbers(reinterpret_cast<uint32_t*>(vectors + nprobe)),
                  lengths(numbers + nprobe),
                  first(lengths + nprobe) {}

        /// The list that has a group of 32 columns: the last of nprobe that
        /// begins no later; empty ones before it begin there too.
        __device__ __forceinline__ uint32_t
        probeOf(uint32_t group, uint32_t nprobe) const {
            uint32_t low = 0;
            uint32_t high = nprobe;
            while (high - low > 1) {
                const uint32_t middle = (low + high) / 2;
                (first[middle] <= group ? low : high) = middle;
            }
            return low;
        }
    };

    /// Of a row's groups of 32 columns the even part of block blockIdx.x.
    struct Part {
        uint32_t begin;
        uint32_t end;

        __device__ __forceinline__ explicit Part(uint32_t groups) {
            const uint32_t each = groups / gridDim.x;
            const uint32_t more = groups % gridDim.x; // blocks with one more
            begin = each * blockIdx.x + min(blockIdx.x, more);
            end = begin + each + (blockIdx.x < more ? 1 : 0);
        }
    };

    SharedStorage& shared;
    const Tables& tables;
    const IvfDirectParams& params;
    const uint32_t row;

    /// Lines of the tables of all lists, before they are asked for; some of
    /// them for each block.
    __device__ __forceinline__ static void prefetch(
            const IvfLists& lists,
            uint32_t block,
            uint32_t blocks) {
        constexpr uint32_t kLine = 128;
        const auto touch = [&](const void* table, size_t element) {
            const size_t bytes = size_t(lists.numLists) * element;
            for (size_t at = size_t(block * kThreads + threadIdx.x) * kLine;
                 at < bytes;
                 at += size_t(blocks) * kThreads * kLine) {
                prefetchToL2(static_cast<const uint8_t*>(table) + at);
            }
        };
        touch(lists.vectors, sizeof(void*));
        touch(lists.lengths, lists.lengths64 ? 8 : 4);
        if (lists.idKind != ListIds::Places) {
            touch(lists.ids, sizeof(void*));
        }
    }

    /// Whether a block takes a query's groups in turns with the query's other
    /// blocks, lists in the order of their numbers: so queries read a list that
    /// they share at about one time, and all but one from the second-level
    /// cache. Lists that are given stay in their order, which the finish has,
    /// too.
    __device__ __forceinline__ static bool areInTurns(
            const IvfDirectParams& params) {
        return params.centroids && params.search.rows > 1;
    }

    /// Fills the tables; ends with the block in step. inTurns: by number, for
    /// areInTurns().
    __device__ __forceinline__ void find(bool inTurns = false) {
        const IvfParams& search = params.search;
        if (params.centroids) {
            // More keys than there are take time, too.
            constexpr int kFew = 4;
            search.lists.numLists <= kFew* kThreads
                    ? choose<kFew>()
                    : choose<int(kMostFoundLists) / kThreads>();
        } else {
            for (uint32_t p = threadIdx.x; p < search.nprobe; p += kThreads) {
                const uint32_t list = probedList(search, row, p);
                uint32_t length = 0;
                if (list < search.lists.numLists) {
                    length = listLength(search.lists, list);
                    tables.vectors[p] = search.lists.vectors[list];
                }
                tables.numbers[p] = list;
                tables.lengths[p] = length;
            }
        }
        __syncthreads();
        if (inTurns) {
            orderByNumber();
        }
        measure();
        if (blockIdx.x == 0) {
            write();
        }
    }

   private:
    /// The nearest lists, in the order of (distance, number), of at most kKeys
    /// for each thread.
    template <int kKeys>
    __device__ __forceinline__ void choose() {
        const uint32_t numLists = uint32_t(params.search.lists.numLists);
        const uint32_t nprobe = params.search.nprobe;
        const uint32_t* from = params.centroidKeys + int64_t(row) * numLists;
        uint32_t keys[kKeys];
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            const uint32_t list = i * kThreads + threadIdx.x;
            keys[i] = list < numLists ? from[list] : kNanKey;
        }
        const auto forEach = [&](auto take) {
#pragma unroll
            for (int i = 0; i < kKeys; ++i) {
                if (keys[i] != kNanKey) {
                    take(makeEntry(keys[i], i * kThreads + threadIdx.x));
                }
            }
        };
        if (threadIdx.x == 0) {
            shared.numChosen = 0;
        }
        for (uint32_t p = threadIdx.x; p < nprobe; p += kThreads) {
            tables.numbers[p] = numLists;
            tables.lengths[p] = 0;
        }
        __syncthreads();
        const uint64_t limit = Narrow{shared.narrow}.limit(
                forEach, nprobe, nprobe + nprobe / 8 + 8);
        forEach([&](uint64_t entry) {
            if (entry <= limit) {
                shared.chosen[atomicAdd(&shared.numChosen, 1u)] = entry;
            }
        });
        __syncthreads();
        const uint32_t count = shared.numChosen;
        for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
            const uint64_t entry = shared.chosen[i];
            const uint32_t list = entryColumn(entry);
            // They come while places are counted.
            const uint32_t length = listLength(params.search.lists, list);
            const void* vectors = params.search.lists.vectors[list];
            uint32_t before = 0;
            for (uint32_t j = 0; j < count; ++j) {
                before += shared.chosen[j] < entry;
            }
            if (before < nprobe) {
                tables.numbers[before] = list;
                tables.lengths[before] = length;
                tables.vectors[before] = vectors;
            }
        }
    }

    /// Of lists that were found.
    __device__ __forceinline__ void orderByNumber() const {
        static_assert(kMostFoundProbes <= kThreads); // one a thread
        const uint32_t nprobe = params.search.nprobe;
        const uint32_t p = min(threadIdx.x, nprobe - 1);
        const uint32_t number = tables.numbers[p];
        const uint32_t length = tables.lengths[p];
        const void* vectors = tables.vectors[p];
        uint32_t before = 0;
        for (uint32_t i = 0; i < nprobe; ++i) {
            const uint32_t other = tables.numbers[i];
            before += other < number || (other == number && i < p);
        }
        __syncthreads();
        if (threadIdx.x < nprobe) {
            tables.numbers[before] = number;
            tables.lengths[before] = length;
            tables.vectors[before] = vectors;
        }
        __syncthreads();
    }

    /// Where columns begin.
    __device__ __forceinline__ void measure() {
        const IvfParams& search = params.search;
        uint32_t total = 0;
        for (uint32_t first = 0; first < search.nprobe; first += kThreads) {
            const uint32_t p = first + threadIdx.x;
            uint32_t length = 0;
            if (p < search.nprobe) {
                length = tables.lengths[p];
            }
            const uint32_t groups = (length + kListGroup - 1) / kListGroup;
            const uint32_t before =
                    total + sumOfThreadsBefore<kThreads>(groups, shared.sums);
            if (p < search.nprobe) {
                tables.first[p] = before;
            }
            if (threadIdx.x == kThreads - 1) {
                shared.total = before + groups;
            }
            __syncthreads();
            total = shared.total;
            // Neither it nor the sums are written before all have read them.
            __syncthreads();
        }
        if (threadIdx.x == 0) {
            tables.first[search.nprobe] = total;
        }
        __syncthreads();
    }

    /// For the finish.
    __device__ __forceinline__ void write() const {
        const IvfParams& search = params.search;
        for (uint32_t p = threadIdx.x; p <= search.nprobe; p += kThreads) {
            search.columns[int64_t(row) * (search.nprobe + 1) + p] =
                    tables.first[p] * kListGroup;
            if (params.centroids && p < search.nprobe) {
                params.foundProbes[int64_t(row) * search.nprobe + p] =
                        tables.numbers[p];
            }
        }
    }
};

using IvfDirectLists = IvfDirectListsBy<kIvfDirectThreads>;

} // namespace faiss_bits

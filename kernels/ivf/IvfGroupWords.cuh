/// Which vectors of a query's lists a search may find, by the block that scans
/// them: words of 32 vectors, of bits that are there, or of ids that are looked
/// up here.
///
/// Bound by: the wait for ids, and then for what is known of them; some words
/// at a time have both waits together.
#pragma once

#include "kernels/ivf/IvfDirectLists.cuh"
#include "kernels/ivf/IvfFilter.cuh"
#include "kernels/ivf/IvfIdTest.cuh"

namespace faiss_bits {

struct IvfGroupWords {
    static constexpr uint32_t kWarps = kIvfDirectThreads / kWarpSize;
    static constexpr uint32_t kOfWarp = 4;
    static constexpr uint32_t kAtOnce = kWarps * kOfWarp;

    /// Those that are read, and the next ones.
    using Words = uint32_t[2 * kAtOnce];

    Words& words; // in shared memory
    const IvfDirectLists::Tables& tables;
    const IvfParams& search;
    const uint32_t begin; // groups of the row: the block's part
    const uint32_t end;
    /// Bytes of 32 vectors, side by side: those of few groups are asked for
    /// while ids are looked up, as the block has nothing else to do.
    const uint32_t groupBytes;

    __device__ __forceinline__ bool isFiltered() const {
        return search.lists.selectedBits || byIds();
    }

    /// Before of() of group `at`, a group after another, by all threads. Words
    /// of the kAtOnce groups before it can still be read.
    __device__ __forceinline__ void prepare(uint32_t at) const {
        if (isFiltered() && (at - begin) % kAtOnce == 0 && at < end) {
            fill(at);
        }
    }

    __device__ __forceinline__ uint32_t of(uint32_t at) const {
        return isFiltered() ? words[(at - begin) % (2 * kAtOnce)] : ~0u;
    }

    /// The word of one group, by a warp alone.
    __device__ __forceinline__ static uint32_t ofWarp(
            const IvfLists& lists,
            uint32_t list,
            uint32_t group,
            uint32_t length) {
        if (lists.idTest.kind == ListIdTest::Kind::None) {
            return selectedWord(lists, list, group);
        }
        const uint32_t vector = group * kListGroup + threadIdx.x % kListGroup;
        return __ballot_sync(
                kFullWarp,
                vector < length &&
                        passesIdTest(
                                lists.idTest, listId(lists, list, vector)));
    }

   private:
    __device__ __forceinline__ bool byIds() const {
        return search.lists.idTest.kind != ListIdTest::Kind::None;
    }

    /// Ends with the block in step.
    __device__ __forceinline__ void fill(uint32_t at) const {
        const IvfLists& lists = search.lists;
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t first = at + threadIdx.x / kWarpSize * kOfWarp;
        // A lane a group.
        const bool isThere = lane < kOfWarp && first + lane < end;
        uint32_t list = 0;
        uint32_t group = 0;
        uint32_t length = 0;
        uint32_t word = 0;
        if (isThere) {
            const uint32_t probe = probeOf(first + lane);
            list = tables.numbers[probe];
            group = first + lane - tables.first[probe];
            length = tables.lengths[probe];
        }
        if (byIds()) {
            prefetch(at);
            word = wordByIds(list, group, length, lane);
        } else if (isThere) {
            word = selectedWord(lists, list, group);
        }
        if (isThere) {
            words[(first + lane - begin) % (2 * kAtOnce)] = word;
        }
        __syncthreads();
    }

    /// Into the second-level cache, all threads of the block.
    __device__ __forceinline__ void prefetch(uint32_t at) const {
        constexpr uint32_t kFew = 4;
        constexpr uint32_t kLine = 128;
        if (end - begin > kFew) {
            return;
        }
        const uint32_t lines = (groupBytes + kLine - 1) / kLine;
        for (uint32_t i = threadIdx.x; i < (end - at) * lines;
             i += kIvfDirectThreads) {
            const uint32_t which = at + i / lines;
            const uint32_t probe = probeOf(which);
            const uint32_t group = which - tables.first[probe];
            const uint32_t offset = i % lines * kLine;
            const uint32_t there = tables.lengths[probe] - group * kListGroup;
            // Behind the last row is nothing of the list.
            if (search.lists.layout == ListLayout::Rows && there < kListGroup &&
                offset >= groupBytes / kListGroup * there) {
                continue;
            }
            const auto* from =
                    static_cast<const uint8_t*>(tables.vectors[probe]) +
                    uint64_t(group) * groupBytes + offset;
            prefetchToL2(from);
        }
    }

    /// Of this lane's group; length 0: of none.
    __device__ __forceinline__ uint32_t wordByIds(
            uint32_t list,
            uint32_t group,
            uint32_t length,
            uint32_t lane) const {
        int64_t ids[kOfWarp];
        uint32_t areThere = 0; // a bit a group
#pragma unroll
        for (uint32_t i = 0; i < kOfWarp; ++i) {
            const uint32_t ofList = __shfl_sync(kFullWarp, list, i);
            const uint32_t vector =
                    __shfl_sync(kFullWarp, group, i) * kListGroup + lane;
            ids[i] = 0;
            if (vector < __shfl_sync(kFullWarp, length, i)) {
                ids[i] = listId(search.lists, ofList, vector);
                areThere |= 1u << i;
            }
        }
        uint32_t word = 0;
#pragma unroll
        for (uint32_t i = 0; i < kOfWarp; ++i) {
            const uint32_t found = __ballot_sync(
                    kFullWarp,
                    (areThere >> i & 1) &&
                            passesIdTest(search.lists.idTest, ids[i]));
            word = lane == i ? found : word;
        }
        return word;
    }

    /// The probe that has a group: the last that begins no later; empty ones
    /// before it begin there too.
    __device__ __forceinline__ uint32_t probeOf(uint32_t at) const {
        uint32_t low = 0;
        uint32_t high = search.nprobe;
        while (high - low > 1) {
            const uint32_t middle = (low + high) / 2;
            (tables.first[middle] <= at ? low : high) = middle;
        }
        return low;
    }
};

} // namespace faiss_bits

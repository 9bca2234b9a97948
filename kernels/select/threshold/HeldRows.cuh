/// Rows that a block, or the blocks of a cluster, hold in registers: one read,
/// no sample. The limit comes from the row itself, so no order misleads it.
///
/// Bound by: latencies, those of one read and of some ten barriers; where rows
/// are many, by the read.
#pragma once

#include <cooperative_groups.h>

#include "kernels/device/Narrow.cuh"
#include "kernels/select/threshold/ThresholdParams.h"
#include "kernels/select/threshold/ThresholdPolicy.h"
#include "kernels/survivors/RowFinish.cuh"

namespace faiss_bits {

/// Each thread finds the least of its Items keys, or for large k, of each of
/// kParts parts of them. What k of those are not above, k keys of the row are
/// not above: that is the limit, and only a few keys more are within it, as
/// neighbouring columns belong to different threads. Several blocks leave the
/// least of groups of threads, kGroups together, and each finds the limit from
/// all of them. Where more keys survive than have
/// room (the best lie in the columns of few threads), the block lowers its own
/// limit to about the k-th of what it holds; so no row is read twice.
///
/// params.sampleParts blocks a row, params.segment <= Threads * Items columns
/// each, params.capacity > k survivors each.
template <class T, int Threads, int Items, int Room>
struct HeldRowsBody {
    using Narrow = BlockNarrow<Threads>;
    using Finish = RowFinish<T, ThresholdParams, Threads, Room>;
    static constexpr int kWarps = Threads / kWarpSize;
    static constexpr int kColumns = Threads * Items;
    /// So that at most about half of the parts have one of the k best.
    static constexpr int kParts = Room <= Threads ? 1 : Room / Threads;
    static constexpr int kGroups = Room <= Threads ? 2 * Threads : Room;
    static constexpr int kGroupItems = kGroups / Threads;
    /// What one of two blocks leaves.
    static constexpr int kMostGroups = kGroups / 2;
    static_assert(kMostGroups <= kParts * Threads && Items % kParts == 0);
    static_assert(kMostCluster <= kWarps);

    struct SharedStorage {
        union {
            typename Narrow::SharedStorage narrow;
            typename Finish::SharedStorage finish;
        };
        uint64_t groups[kMostGroups];
        uint32_t buffered;
        bool minusZero; // there may be such a survivor
    };

    /// Words of dynamic shared memory: the storage; room for the sort; the
    /// survivors, in the first block of a row those of all.
    static constexpr size_t kStorageWords =
            (sizeof(SharedStorage) + 127) / 128 * 16;
    static_assert(8 * kStorageWords <= kHeldStorageBytes);
    static constexpr size_t words(size_t parts, size_t capacity) {
        return kStorageWords + Finish::kRoomWords + parts * capacity;
    }

    SharedStorage& shared;
    uint64_t* room;
    uint64_t* survivors;
    const ThresholdParams& params;

    float values[Items]; // in the order of "smallest first"; NaN behind the end
    uint32_t begin;      // of this block's columns
    uint32_t end;

    __device__ __forceinline__ void run() {
        const uint32_t parts = params.sampleParts;
        const uint32_t row = params.firstRow + blockIdx.x / parts;
        const uint32_t part = blockIdx.x % parts;
        begin = min(part * params.segment, params.cols);
        end = begin + min(params.segment, params.cols - begin);
        load(row);
        if (threadIdx.x == 0) {
            shared.buffered = 0;
            shared.minusZero = false;
        }
        uint64_t least[kParts];
#pragma unroll
        for (int p = 0; p < kParts; ++p) {
            least[p] = leastOfPart(p);
        }
        if (parts == 1) {
            const uint64_t limit = limitOf(least);
            gather(row, limit);
            finish(row, shared.buffered, limit, !shared.minusZero);
            return;
        }
        const uint64_t limit = limitOfParts(least, parts);
        gather(row, limit);
        joinParts(row, part, parts, limit);
    }

   private:
    static constexpr uint32_t kInfinityKey = 0xFF800000u;

    /// Groups that the limit may have: to find an exact rank takes longer.
    __device__ __forceinline__ uint32_t mostGroups() const {
        return params.k + params.k / 4 + 8;
    }

    __device__ __forceinline__ uint32_t column(int i) const {
        return begin + i * Threads + threadIdx.x;
    }

    /// All loads in flight before the first use, as KeyTile::loadPart has them
    /// and says why.
    __device__ __forceinline__ void load(uint32_t row) {
        const T* keys = static_cast<const T*>(params.keys) +
                params.rowStride * row + column(0);
        // Else it is computed for each load.
        asm("" : "+l"(keys));
        const int left = int(end) - int(column(0));
        T loaded[Items];
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            loaded[i] = T(__uint_as_float(0x7FC00000u));
            if (i * Threads < left) {
                loaded[i] = __ldg(keys + i * Threads);
            }
        }
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            values[i] = valueOf(params, loaded[i]);
        }
    }

    /// kNoEntry behind the end.
    __device__ __forceinline__ uint64_t entryOf(int i) const {
        const uint32_t c = column(i);
        return c < end ? makeEntry(orderedKey(values[i]), c) : kNoEntry;
    }

    /// Of every kParts-th key. Columns of a thread ascend, so the first of
    /// equal keys counts.
    __device__ __forceinline__ uint64_t leastOfPart(int part) const {
        float least = values[part];
#pragma unroll
        for (int i = kParts; i < Items; i += kParts) {
            least = fminf(least, values[part + i]);
        }
        int first = part; // if all are NaN
#pragma unroll
        for (int i = Items - kParts; i >= 0; i -= kParts) {
            first = values[part + i] == least ? part + i : first;
        }
        const uint32_t c = column(first);
        return c < end ? makeEntry(orderedKey(least), c) : kNoEntry;
    }

    /// An entry that k of some entries are not above.
    template <int Count>
    __device__ __forceinline__ uint64_t
    limitOf(const uint64_t (&entries)[Count]) {
        const auto all = [&](auto take) {
#pragma unroll
            for (int i = 0; i < Count; ++i) {
                if (entries[i] != kNoEntry) {
                    take(entries[i]);
                }
            }
        };
        return Narrow{shared.narrow}.limit(all, params.k, mostGroups());
    }

    /// What this block holds up to the limit, or if that has no room, up to a
    /// lower one that at least k are within. Ends with the block in step.
    __device__ __forceinline__ void gather(uint32_t row, uint64_t limit) {
        append(limit);
        __syncthreads();
        if (shared.buffered > params.capacity) {
            gatherLess(shared, survivors, params, row, begin, end, limit);
        }
    }

    /// Rare, so it reads the keys again. Out of line and static, so that it
    /// costs the others no registers.
    __device__ static __noinline__ void gatherLess(
            SharedStorage& shared,
            uint64_t* survivors,
            const ThresholdParams& params,
            uint32_t row,
            uint32_t begin,
            uint32_t end,
            uint64_t limit) {
        const T* keys =
                static_cast<const T*>(params.keys) + params.rowStride * row;
        const auto within = [&](auto take) {
#pragma unroll 4
            for (uint32_t c = begin + threadIdx.x; c < end; c += Threads) {
                const uint64_t e =
                        makeEntry(orderedKey(valueOf(params, keys[c])), c);
                if (e <= limit) {
                    take(e);
                }
            }
        };
        limit = Narrow{shared.narrow}.limit(within, params.k, params.capacity);
        if (threadIdx.x == 0) {
            shared.buffered = 0;
        }
        __syncthreads();
        within([&](uint64_t e) {
            survivors[atomicAdd(&shared.buffered, 1)] = e;
        });
        __syncthreads();
    }

    __device__ __forceinline__ static float valueOf(
            const ThresholdParams& params,
            T key) {
        return __uint_as_float(__float_as_uint(toFloat(key)) ^ params.signMask);
    }

    __device__ __forceinline__ void append(uint64_t limit) {
        const uint32_t key = entryKey(limit);
        // A limit may be no entry but the end of a bin (Narrow.cuh): beyond
        // infinity its key is no number's, and compares with none.
        const bool all = key > kInfinityKey;
        const float value = keyValue(key);
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            if (all || values[i] <= value) {
                const uint64_t e = entryOf(i);
                if (e <= limit && e != kNoEntry) {
                    const uint32_t slot = atomicAdd(&shared.buffered, 1);
                    if (slot < params.capacity) {
                        survivors[slot] = e;
                    }
                    if ((__float_as_uint(values[i]) ^ params.signMask) ==
                        0x80000000u) {
                        shared.minusZero = true;
                    }
                }
            }
        }
    }

    __device__ __forceinline__ void finish(
            uint32_t row,
            uint32_t count,
            uint64_t limit,
            bool zerosArePlus) {
        Finish{shared.finish}.run(
                params, row, survivors, count, limit, room, zerosArePlus);
    }

#if __CUDA_ARCH__ >= 900
    __device__ __forceinline__ uint64_t
    limitOfParts(const uint64_t (&least)[kParts], uint32_t parts) {
        const auto cluster = cooperative_groups::this_cluster();
        const uint32_t groups = kGroups / parts;
#pragma unroll
        for (int p = 0; p < kParts; ++p) {
            survivors[p * Threads + threadIdx.x] = least[p];
        }
        __syncthreads();
        for (uint32_t g = threadIdx.x; g < groups; g += Threads) {
            uint64_t mine = kNoEntry;
            for (uint32_t t = g; t < kParts * Threads; t += groups) {
                const uint64_t e = survivors[t];
                mine = e < mine ? e : mine;
            }
            shared.groups[g] = mine;
        }
        cluster.sync();
        uint64_t entries[kGroupItems];
#pragma unroll
        for (int i = 0; i < kGroupItems; ++i) {
            const uint32_t g = i * Threads + threadIdx.x;
            entries[i] = cluster.map_shared_rank(
                    shared.groups, g / groups)[g % groups];
        }
        return limitOf(entries);
    }

    /// The first block fetches what the others gathered, and finishes the row.
    __device__ __forceinline__ void joinParts(
            uint32_t row,
            uint32_t part,
            uint32_t parts,
            uint64_t limit) {
        const auto cluster = cooperative_groups::this_cluster();
        cluster.sync();
        uint32_t total = 0;
        if (part == 0) {
            const uint32_t lane = threadIdx.x % kWarpSize;
            const uint32_t warp = threadIdx.x / kWarpSize;
            const uint32_t count = lane < parts
                    ? *cluster.map_shared_rank(&shared.buffered, lane)
                    : 0;
            total = __reduce_add_sync(kFullWarp, count);
            // A warp, or some, for each block.
            const uint32_t from = warp % parts;
            const uint32_t before =
                    __reduce_add_sync(kFullWarp, lane < from ? count : 0);
            const uint32_t theirs = __shfl_sync(kFullWarp, count, from);
            if (from > 0) {
                const uint64_t* other =
                        cluster.map_shared_rank(survivors, from);
                for (uint32_t i = warp / parts * kWarpSize + lane; i < theirs;
                     i += kWarps / parts * kWarpSize) {
                    survivors[before + i] = other[i];
                }
            }
        }
        // The others stay until theirs has been fetched.
        cluster.barrier_arrive();
        if (part == 0) {
            __syncthreads();
            finish(row, total, limit, false);
            __syncwarp();
        }
        cluster.barrier_wait();
    }
#else
    // Of a device without clusters. One with them may run it, if the code was
    // compiled for one without: the first block does all then.
    __device__ __forceinline__ uint64_t
    limitOfParts(const uint64_t (&)[kParts], uint32_t) {
        return kNoEntry;
    }

    __device__ __forceinline__ void joinParts(
            uint32_t row,
            uint32_t part,
            uint32_t,
            uint64_t) {
        if (part == 0) {
            gatherLess(
                    shared, survivors, params, row, 0, params.cols, kNoEntry);
            finish(row, shared.buffered, kNoEntry, false);
        }
    }
#endif
};

template <class T, int Threads, int Items, int Room>
__global__ void __launch_bounds__(Threads, 2)
        heldRowsKernel(const __grid_constant__ ThresholdParams params) {
    using Body = HeldRowsBody<T, Threads, Items, Room>;
    extern __shared__ __align__(128) uint64_t memory[];
    auto& shared = *reinterpret_cast<typename Body::SharedStorage*>(memory);
    uint64_t* room = memory + Body::kStorageWords;
    Body{shared, room, room + Body::Finish::kRoomWords, params}.run();
}

} // namespace faiss_bits

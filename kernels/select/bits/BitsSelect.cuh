/// The bits kernel: one pass over a row, candidates below a radius collected
/// in a shared buffer, the buffer sorted and merged into the list of the best
/// k when it is full (Hanak 2023, 4.1).
///
/// Bound by: the read of the keys while few values pass; the sorts of the
/// buffer for large k on short rows.
/// Differs from the thesis: entries are (key, column) in one number, so ties
/// are exact and the slots that atomics give out in any order do not matter;
/// the list rests in shared memory between merges, which leaves registers for
/// more blocks; and the first radius comes from a random sample of the columns
/// (short rows: from the least values of groups of the first tile), where the
/// thesis sorts the first k values, so that the order of the keys matters
/// little.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Hash.h"
#include "kernels/select/bits/BitsPolicy.h"
#include "kernels/select/bits/CandidateTile.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// Body of bitsSelectKernel. The list and the buffer hold kBitsThreads * Items
/// entries each, k at most that many.
template <class T, class Tile, int Items>
struct BitsSelectBody {
    using Sorter = BlockBitonic<kBitsThreads, Items>;
    static constexpr int kCapacity = Sorter::kSize;
    static constexpr int kTileSize = kBitsThreads * Tile::kItems;

    struct SharedStorage {
        typename Sorter::SharedStorage sorter;
        uint64_t list[kCapacity]; // sorted; place p is at slotOf(p)
        uint64_t buffer[kCapacity];
        int buffered;
    };
    static_assert(sizeof(SharedStorage) <= bitsSharedBytes(Items));

    SharedStorage& shared;
    const SelectParams& params;

    /// Consecutive places belong to one thread; turned round in memory, so
    /// that the threads of a warp touch consecutive words.
    __device__ static int slotOf(int place) {
        return (place % Items) * kBitsThreads + place / Items;
    }

    __device__ void run(uint32_t block) {
        const uint32_t row = params.firstRow + block / params.splits;
        const uint32_t split = block % params.splits;
        const uint32_t length = Tile::rowLength(params);
        const uint32_t begin = split * params.segment;
        const uint32_t end = min(length - begin, params.segment) + begin;

        Radius radius = sampleRadius(row, begin, end);
        if (radius.everything) {
            radius = firstRadius(row, begin, end);
        }
        takeColumns(row, begin, end, radius);
        if (!radius.everything && kthEntry() == kNoEntry) {
            // The sample promised too much: about once in a million. Or there
            // are fewer than k numbers, and NaN has to fill the places.
            takeAllColumns(row, begin, end);
        }
        writeList(row, split);
    }

   private:
    __device__ uint64_t kthEntry() const {
        return shared.list[slotOf(params.k - 1)];
    }

    /// A radius that k values are expected to pass, and some more, whatever
    /// order they are in: the r-th least of a random sample of the columns.
    /// Fewer than k pass only if r of the sample are among the k best, and r
    /// lies five standard deviations above the expectation of that.
    __device__ __noinline__ Radius
    sampleRadius(uint32_t row, uint32_t begin, uint32_t end) {
        const Tile tile(params, row);
        const int perThread = params.samplesPerThread;
        const float expected =
                float(params.k) * perThread * kBitsThreads / float(end - begin);
        const int place = int(expected + 5.0f * sqrtf(expected) + 3.0f);
        const bool tooFew = end - begin < 4u * perThread * kBitsThreads;
        if (perThread < Items || place >= kCapacity * 3 / 4 || tooFew) {
            return {};
        }
        uint64_t least[Items];
#pragma unroll
        for (int g = 0; g < Items; ++g) {
            least[g] = kNoEntry;
        }
        // One column of each of as many parts of even length. The least of
        // disjoint groups stand for the sample: their r-th is no less.
        const float part = float(end - begin) / float(perThread * kBitsThreads);
        for (int i = 0; i < perThread; i += Items) {
#pragma unroll
            for (int g = 0; g < Items; ++g) {
                const int number = (i + g) * kBitsThreads + threadIdx.x;
                const float at =
                        (number + randomFraction(number, begin)) * part;
                const uint64_t e =
                        tile.entryAt(min(begin + uint32_t(at), end - 1));
                least[g] = e < least[g] ? e : least[g];
            }
        }
        return radiusOf(least, place);
    }

    /// In [0, 1), the same in every run.
    __device__ __forceinline__ static float randomFraction(
            uint32_t number,
            uint32_t begin) {
        return fractionOf(
                mixBits(number * 0x9E3779B1u + begin * 0x85EBCA77u + 1));
    }

    /// The k-th least of the least values of disjoint groups is no less than
    /// the k-th least of all.
    __device__ __noinline__ Radius
    firstRadius(uint32_t row, uint32_t begin, uint32_t end) {
        constexpr int kGroups = Items < Tile::kItems ? Items : Tile::kItems;
        if (params.k > kBitsThreads * kGroups * 3 / 4 ||
            end - begin <= kTileSize / 2) {
            return {}; // the groups are too few to say much
        }
        Tile tile(params, row);
        tile.load(begin, end);
        uint64_t least[Items];
#pragma unroll
        for (int g = 0; g < Items; ++g) {
            least[g] = g < kGroups ? tile.template leastOfGroup<kGroups>(g)
                                   : kNoEntry;
        }
        return radiusOf(least, params.k - 1);
    }

    /// The radius up to the entry that has this place among the block's. The
    /// buffer must be empty: its first word carries the result.
    __device__ __forceinline__ Radius
    radiusOf(uint64_t (&entries)[Items], int place) {
        Sorter{shared.sorter}.sort(entries, true, EntryLess{});
        if (threadIdx.x == place / Items) {
#pragma unroll
            for (int i = 0; i < Items; ++i) {
                if (i == place % Items) {
                    shared.buffer[0] = entries[i];
                }
            }
        }
        __syncthreads();
        const Radius radius = Radius::upTo(shared.buffer[0]);
        __syncthreads();
        return radius;
    }

    /// Leaves the best of the columns that pass the radius in the list.
    /// Out of line, so that the rare case costs the other no registers.
    __device__ __noinline__ void takeAllColumns(
            uint32_t row,
            uint32_t begin,
            uint32_t end) {
        takeColumns(row, begin, end, Radius{});
    }

    __device__ __forceinline__ void takeColumns(
            uint32_t row,
            uint32_t begin,
            uint32_t end,
            Radius radius) {
        Tile tile(params, row);
        __syncthreads();
        for (int i = threadIdx.x; i < kCapacity; i += kBitsThreads) {
            shared.list[i] = kNoEntry;
        }
        if (threadIdx.x == 0) {
            shared.buffered = 0;
        }
        __syncthreads();
        for (uint32_t at = begin; at < end; at += kTileSize) {
            tile.load(at, end);
            takeTile(tile, at, end, radius);
        }
        if (shared.buffered > 0) {
            mergeBuffer();
        }
        __syncthreads();
    }

    __device__ __forceinline__ void takeTile(
            Tile& tile,
            uint32_t at,
            uint32_t end,
            Radius& radius) {
        uint32_t pending = 0;
        if (tile.mayPass(radius)) {
            pending = tile.passing(radius);
        }
        append(tile, pending);
        bool merged = false;
        while (__syncthreads_or(pending != 0)) {
            mergeBuffer();
            merged = true;
            // Read again, so that no value lives in registers during a merge.
            tile.load(at, end);
            // Columns of this tile may be lower than listed ones.
            pending &= tile.passing(Radius::upTo(kthEntry()));
            append(tile, pending);
        }
        if (merged && kthEntry() != kNoEntry) {
            radius = Radius::below(kthEntry());
        }
    }

    /// Moves the pending values of this warp to the buffer while it has room.
    __device__ __forceinline__ void append(
            const Tile& tile,
            uint32_t& pending) {
        const unsigned lanesBelow = (1u << (threadIdx.x % kWarpSize)) - 1;
        while (unsigned lanes = __ballot_sync(kFullWarp, pending != 0)) {
            const int item = __ffs(pending) - 1;
            uint64_t entry = kNoEntry;
            if (pending != 0) {
                entry = tile.entry(item);
            }
            int base = 0;
            if (threadIdx.x % kWarpSize == 0) {
                base = atomicAdd(&shared.buffered, __popc(lanes));
            }
            base = __shfl_sync(kFullWarp, base, 0);
            const int slot = base + __popc(lanes & lanesBelow);
            if (pending != 0 && slot < kCapacity) {
                shared.buffer[slot] = entry;
                pending &= pending - 1;
            }
            if (base + __popc(lanes) > kCapacity) {
                break;
            }
        }
    }

    /// Sorts the buffer and keeps the best of it and the list. Begins and ends
    /// with the block in step.
    __device__ __noinline__ void mergeBuffer() {
        __syncthreads();
        const int count = min(shared.buffered, kCapacity);
        uint64_t items[Items];
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const int slot = i * kBitsThreads + threadIdx.x;
            items[i] = slot < count ? shared.buffer[slot] : kNoEntry;
        }
        Sorter sorter{shared.sorter};
        sorter.sort(items, false, EntryLess{});
        // The list ascends and the buffer descends: the lesser of each pair
        // are the best of both, and bitonic.
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const uint64_t listed = shared.list[i * kBitsThreads + threadIdx.x];
            items[i] = listed < items[i] ? listed : items[i];
        }
        sorter.sortBitonic(items, true, EntryLess{});
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            shared.list[i * kBitsThreads + threadIdx.x] = items[i];
        }
        if (threadIdx.x == 0) {
            shared.buffered = 0;
        }
        __syncthreads();
    }

    __device__ void writeList(uint32_t row, uint32_t split) {
        for (int place = threadIdx.x; place < params.k; place += kBitsThreads) {
            const uint64_t entry = shared.list[slotOf(place)];
            if (params.splits > 1) {
                const size_t list = size_t(row) * params.splits + split;
                params.outCandidates[list * params.k + place] = entry;
            } else {
                writeResult<T>(params, row, place, entry);
            }
        }
    }
};

template <class T, class Tile, int Items>
__global__ void __launch_bounds__(
        kBitsThreads,
        bitsBlocksPerMultiprocessor(Items))
        bitsSelectKernel(const __grid_constant__ SelectParams params) {
    using Body = BitsSelectBody<T, Tile, Items>;
    __shared__ typename Body::SharedStorage shared;
    Body{shared, params}.run(blockIdx.x);
}

} // namespace faiss_bits

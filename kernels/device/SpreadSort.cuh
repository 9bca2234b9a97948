/// Sorts some thousand entries of a block in shared memory: into about as many
/// bins as entries by their distance from the least, then each one against the
/// few of its bin. Work grows with the entries, where that of a bitonic sort
/// (kernels/device/Bitonic.cuh) grows with n log^2 n.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/BlockScan.cuh"
#include "kernels/device/Entry.cuh"
#include "kernels/device/WarpReduce.cuh"

namespace faiss_bits {

template <int Threads, int Items>
struct BlockSpreadSort {
    static constexpr int kSize = Threads * Items;
    static constexpr int kWarps = Threads / kWarpSize;
    using Bitonic = BlockBitonic<Threads, Items>;

    /// Above this many entries in one bin the bitonic sort takes over, or
    /// another round.
    static constexpr uint32_t kMaxBin = 128;
    static constexpr int kMaxRounds = 12;
    /// The same of keys of both signs, which StraightSpread.cuh spreads better.
    static constexpr uint32_t kMaxStraightBin = 40;

    struct SharedStorage {
        union {
            uint32_t bins[kSize + 1];
            typename Bitonic::SharedStorage bitonic;
        };
        uint32_t sums[kWarps];
        uint32_t crowded[kWarps];
        uint64_t least[4];
        uint64_t greatest[kWarps];
        uint64_t leastTwo[kWarps][2];
    };

    SharedStorage& shared;

    /// Calls put(place, entry) for every one of the `count` <= kSize distinct
    /// entries, by any thread. `other` is room for
    /// kSize entries beside them; both arrays are free afterwards, once the
    /// block is in step. Begins with the block in step.
    template <class Put>
    __device__ __forceinline__ void sort(
            uint64_t* entries,
            uint64_t* other,
            int count,
            Put put) {
        uint64_t least;
        uint64_t greatest;
        findRange(entries, count, least, greatest);
        const uint64_t range = greatest > least ? greatest - least : 0;
        const int shift = max(0, 64 - __clzll(range | 1) - kLogSize);
        const auto binOf = [&](uint64_t e) {
            return e < least ? 0u : uint32_t((e - least) >> shift);
        };
        uint32_t arrival[Items];
        countBins(entries, count, binOf, arrival);
        if (startBins() < kSize) {
            sortBitonic(entries, count, put);
            return;
        }
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const int from = i * Threads + threadIdx.x;
            if (from < count) {
                const uint64_t e = entries[from];
                other[shared.bins[binOf(e)] + arrival[i]] = e;
            }
        }
        __syncthreads();
        for (int at = threadIdx.x; at < count; at += Threads) {
            const uint64_t e = other[at];
            const uint32_t bin = binOf(e);
            const uint32_t end = shared.bins[bin + 1];
            uint32_t place = shared.bins[bin];
            for (uint32_t j = place; j < end; ++j) {
                place += other[j] < e;
            }
            put(place, e);
        }
    }

    /// Calls put(place, entry) for the k least of at least k distinct entries,
    /// of which k are not above `limit`. `other` is room for k + kMaxBin
    /// entries. Entries that lie together, as those of equal keys do, are
    /// spread again by themselves. False where that is of no use; what was put
    /// is right then, but not all of it. Begins with the block in step;
    /// `entries` are left as they were.
    template <class Put>
    __device__ __forceinline__ bool select(
            const uint64_t* entries,
            int count,
            uint64_t limit,
            int k,
            uint64_t* other,
            Put put) {
        uint64_t from = 0; // entries of this round: [from, to]
        uint64_t to = limit;
        uint32_t placed = 0; // entries below `from`
        for (int round = 0; round < kMaxRounds; ++round) {
            uint64_t least;
            findRange(entries, count, from, to, least);
            const uint64_t range = to > least ? to - least : 0;
            const int shift = max(0, 64 - __clzll(range | 1) - kLogSize);
            const auto binOf = [&](uint64_t e) {
                return e < least ? 0u : uint32_t((e - least) >> shift);
            };
            for (int at = threadIdx.x; at < count; at += Threads) {
                const uint64_t e = entries[at];
                if (e >= from && e <= to) {
                    atomicAdd(&shared.bins[binOf(e)], 1);
                }
            }
            __syncthreads();
            const uint32_t wanted = k - placed;
            // Of keys of both signs, or up to zero, most bins are for numbers
            // next to zero.
            const bool spansZero = round == 0 && entryKey(least) < kZeroKey &&
                    entryKey(to) >= kZeroKey;
            const uint32_t crowded =
                    startBins(wanted, spansZero ? kMaxStraightBin : kMaxBin);
            const uint32_t below = shared.bins[crowded];
            const uint32_t size = min(below, wanted + kMaxBin);
            __syncthreads();
            if (spansZero && crowded < kSize) {
                const int zero = int(binOf(makeEntry(kZeroKey, 0)));
                // Else numbers next to zero are what lies together.
                if (abs(zero - int(crowded)) > kSize / 16) {
                    return false;
                }
            }
            for (int at = threadIdx.x; at < count; at += Threads) {
                const uint64_t e = entries[at];
                if (e >= from && e <= to && binOf(e) < crowded) {
                    // Bins that begin at k or later are wanted no more.
                    const uint32_t slot = atomicAdd(&shared.bins[binOf(e)], 1);
                    if (slot < size) {
                        other[slot] = e;
                    }
                }
            }
            __syncthreads();
            // Every bin below the crowded one now holds its end.
            for (uint32_t at = threadIdx.x; at < size; at += Threads) {
                const uint64_t e = other[at];
                const uint32_t bin = binOf(e);
                const uint32_t end = shared.bins[bin];
                uint32_t place = bin > 0 ? shared.bins[bin - 1] : 0;
                if (place < wanted) {
                    for (uint32_t j = place; j < end; ++j) {
                        place += other[j] < e;
                    }
                    if (place < wanted) {
                        put(placed + place, e);
                    }
                }
            }
            placed += below;
            if (placed >= uint32_t(k)) {
                return true;
            }
            if (crowded == kSize) {
                // On behind what lay together.
                from = to + 1;
                to = limit;
            } else {
                const uint64_t first = least + (uint64_t(crowded) << shift);
                const uint64_t width = (uint64_t(1) << shift) - 1;
                from = crowded == 0 ? from : first;
                to = to - first < width ? to : first + width;
            }
            __syncthreads();
            if ((crowded == kSize && below == 0) ||
                isSlow(round + 1, placed, k)) {
                return false;
            }
        }
        return false;
    }

   protected:
    static constexpr int log2(int n) {
        return n == 1 ? 0 : 1 + log2(n / 2);
    }
    static constexpr int kLogSize = log2(kSize);

    /// Whether as many more rounds as a bitonic sort takes the time of would
    /// not do: each of them places the entries of about one value where there
    /// are few.
    __device__ __forceinline__ static bool isSlow(
            int rounds,
            uint32_t placed,
            uint32_t k) {
        constexpr uint32_t kRoundsOfSort = 4;
        return rounds > 1 && (k - placed) * rounds > kRoundsOfSort * placed;
    }

    /// The greatest entry, and one that few are below: bins from the very
    /// least would be of no use where that one is far from all others, as the
    /// zero distance of a vector to itself is.
    __device__ __forceinline__ void findRange(
            const uint64_t* entries,
            int count,
            uint64_t& least,
            uint64_t& greatest) {
        const int warp = threadIdx.x / kWarpSize;
        least = threadIdx.x < count ? entries[threadIdx.x] : kNoEntry;
        greatest = 0;
        for (int i = threadIdx.x; i < count; i += Threads) {
            const uint64_t e = entries[i];
            greatest = e > greatest ? e : greatest;
        }
        least = leastOfWarp(least);
        greatest = greatestOfWarp(greatest);
        if (threadIdx.x % kWarpSize == 0) {
            shared.greatest[warp] = greatest;
            if (warp < 4) {
                shared.least[warp] = least;
            }
        }
        for (int b = threadIdx.x; b <= kSize; b += Threads) {
            shared.bins[b] = 0;
        }
        __syncthreads();
        constexpr int kFirst = kWarps < 4 ? kWarps : 4;
        least = leastOfWarp(ofWarps<kFirst>(shared.least, kNoEntry));
        greatest =
                greatestOfWarp(ofWarps<kWarps>(shared.greatest, uint64_t(0)));
    }

    /// The second least of the entries in [from, to], and the greatest as `to`:
    /// the least may be far from all others, as the zero distance of a vector
    /// to itself is. Clears the bins.
    __device__ __forceinline__ void findRange(
            const uint64_t* entries,
            int count,
            uint64_t from,
            uint64_t& to,
            uint64_t& second) {
        uint64_t least = kNoEntry;
        second = kNoEntry;
        uint64_t greatest = 0;
        for (int i = threadIdx.x; i < count; i += Threads) {
            const uint64_t e = entries[i];
            if (e >= from && e <= to) {
                greatest = e > greatest ? e : greatest;
                addLeast(e, kNoEntry, least, second);
            }
        }
        greatest = greatestOfWarp(greatest);
        leastTwoOfWarp(least, second);
        const int warp = threadIdx.x / kWarpSize;
        if (threadIdx.x % kWarpSize == 0) {
            shared.leastTwo[warp][0] = least;
            shared.leastTwo[warp][1] = second;
            shared.greatest[warp] = greatest;
        }
        for (int b = threadIdx.x; b <= kSize; b += Threads) {
            shared.bins[b] = 0;
        }
        __syncthreads();
        to = greatestOfWarp(ofWarps<kWarps>(shared.greatest, uint64_t(0)));
        const int lane = threadIdx.x % kWarpSize;
        least = lane < kWarps ? shared.leastTwo[lane][0] : kNoEntry;
        second = lane < kWarps ? shared.leastTwo[lane][1] : kNoEntry;
        leastTwoOfWarp(least, second);
        second = second == kNoEntry ? least : second;
        if (entryKey(second) == entryKey(least) && least != kNoEntry) {
            endWithKey(entries, count, from, entryKey(least), to);
        }
    }

    /// Lowers `to` to the last entry with the key of the least, where these are
    /// many: among keys of few values they would be all in one bin.
    __device__ __forceinline__ void endWithKey(
            const uint64_t* entries,
            int count,
            uint64_t from,
            uint32_t key,
            uint64_t& to) {
        uint32_t equal = 0;
        uint64_t last = 0;
        for (int i = threadIdx.x; i < count; i += Threads) {
            const uint64_t e = entries[i];
            if (entryKey(e) == key && e >= from && e <= to) {
                ++equal;
                last = e > last ? e : last;
            }
        }
        equal = __reduce_add_sync(kFullWarp, equal);
        last = greatestOfWarp(last);
        __syncthreads();
        if (threadIdx.x % kWarpSize == 0) {
            shared.greatest[threadIdx.x / kWarpSize] = last;
            shared.sums[threadIdx.x / kWarpSize] = equal;
        }
        __syncthreads();
        equal = __reduce_add_sync(kFullWarp, ofWarps<kWarps>(shared.sums, 0u));
        last = greatestOfWarp(ofWarps<kWarps>(shared.greatest, uint64_t(0)));
        to = equal > kMaxBin ? last : to;
    }

    /// The two least of two pairs in order.
    __device__ __forceinline__ static void addLeast(
            uint64_t l,
            uint64_t s,
            uint64_t& least,
            uint64_t& second) {
        const uint64_t more = l < least ? least : l;
        least = l < least ? l : least;
        second = s < second ? s : second;
        second = more < second ? more : second;
    }

    /// The two least of the lanes' pairs in order, in every lane.
    __device__ __forceinline__ static void leastTwoOfWarp(
            uint64_t& least,
            uint64_t& second) {
        const uint64_t l = leastOfWarp(least);
        second = leastOfWarp(least == l ? second : least);
        least = l;
    }

    template <class BinOf>
    __device__ __forceinline__ void countBins(
            const uint64_t* entries,
            int count,
            BinOf binOf,
            uint32_t (&arrival)[Items]) {
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const int from = i * Threads + threadIdx.x;
            if (from < count) {
                arrival[i] = atomicAdd(&shared.bins[binOf(entries[from])], 1);
            }
        }
        __syncthreads();
    }

    /// Turns the counts into the places where the bins begin; returns the first
    /// that begins below `end` and has more than `most` entries, or kSize.
    __device__ __forceinline__ uint32_t
    startBins(uint32_t end = ~0u, uint32_t most = kMaxBin) {
        uint32_t counts[Items];
        uint32_t sum = 0;
        uint32_t crowded = kSize;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            counts[i] = shared.bins[threadIdx.x * Items + i];
            sum += counts[i];
        }
        uint32_t start = sumOfThreadsBefore<Threads>(sum, shared.sums);
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            shared.bins[threadIdx.x * Items + i] = start;
            if (start < end && counts[i] > most) {
                crowded = min(crowded, threadIdx.x * Items + i);
            }
            start += counts[i];
        }
        crowded = __reduce_min_sync(kFullWarp, crowded);
        if (threadIdx.x % kWarpSize == 0) {
            shared.crowded[threadIdx.x / kWarpSize] = crowded;
        }
        if (threadIdx.x == Threads - 1) {
            shared.bins[kSize] = start;
        }
        __syncthreads();
        return __reduce_min_sync(
                kFullWarp, ofWarps<kWarps>(shared.crowded, uint32_t(kSize)));
    }

    template <class Put>
    __device__ __noinline__ void sortBitonic(
            const uint64_t* entries,
            int count,
            Put put) {
        uint64_t items[Items];
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const int from = i * Threads + threadIdx.x;
            items[i] = from < count ? entries[from] : kNoEntry;
        }
        Bitonic{shared.bitonic}.sort(items, true, EntryLess{});
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const int place = threadIdx.x * Items + i;
            if (place < count) {
                put(place, items[i]);
            }
        }
    }
};

} // namespace faiss_bits

/// SpreadSort.cuh for entries that lie together in bins of even width, as those
/// of equal keys do, and of keys of both signs, most bins of which are for
/// numbers next to zero: each crowded bin is spread once more, all in the same
/// step, from its least key to its greatest one, or where it has one key, from
/// its least column to the greatest.
#pragma once

#include "kernels/device/Hash.h"
#include "kernels/device/SpreadSort.cuh"

namespace faiss_bits {

/// SecondBins: about half as many as k or more, a multiple of Threads.
template <int Threads, int Items, int SecondBins>
struct BlockCrowdedSpread : BlockSpreadSort<Threads, Items> {
    using Base = BlockSpreadSort<Threads, Items>;
    using Base::kMaxBin;
    using Base::kSize;
    using Base::kWarps;
    using typename Base::EvenBins;

    /// Bins of more entries are spread again, by the range of about so many.
    static constexpr uint32_t kMostUnspread = 16;
    static constexpr uint32_t kSampled = 32;
    static constexpr int kMaxRounds = 8;

    /// Words of `other` that selectCrowded() wants: for entries up to the end
    /// of a second bin; a number; second bins; ranges of crowded bins.
    __host__ __device__ static constexpr int otherWords(int k) {
        return k + int(kMaxBin) + 1 + SecondBins / 2 +
                2 * (k / int(kMostUnspread) + 1);
    }

    /// As select(), with room for otherWords(k) in `other`. Where even a second
    /// bin is crowded, what lies below the bin that it is of is put, and that
    /// one is spread by itself. False where that is of no use; what was put is
    /// right then, but not all of it, and the block is in step.
    template <class Put>
    __device__ __forceinline__ bool selectCrowded(
            const uint64_t* entries,
            uint32_t count,
            uint64_t limit,
            uint32_t k,
            uint64_t* other,
            Put put) {
        uint32_t* crowdedBin = reinterpret_cast<uint32_t*>(other + k + kMaxBin);
        uint32_t* second = crowdedBin + 2;
        Range* ranges = reinterpret_cast<Range*>(second + SecondBins);
        uint64_t from = 0; // entries of this round: [from, to]
        uint64_t to = limit;
        uint32_t placed = 0; // entries below `from`
        for (int round = 0; round < kMaxRounds; ++round) {
            uint64_t least;
            uint64_t secondLeast;
            this->findRange(entries, count, from, to, least, secondLeast);
            const uint32_t wanted = k - placed;
            Places places{
                    EvenBins(secondLeast, to), this->shared.bins, ranges, 0};
            const auto forEach = [&](auto take) {
                for (uint32_t at = threadIdx.x; at < count; at += Threads) {
                    const uint64_t e = entries[at];
                    if (e >= from && e <= to) {
                        take(e, places.even.of(e));
                    }
                }
            };
            forEach([&](uint64_t, uint32_t bin) {
                atomicAdd(&this->shared.bins[bin], 1);
            });
            for (int i = threadIdx.x; i < SecondBins; i += Threads) {
                second[i] = 0;
            }
            for (uint32_t i = threadIdx.x; i <= k / kMostUnspread;
                 i += Threads) {
                ranges[i] = {};
            }
            if (threadIdx.x == 0) {
                *crowdedBin = kSize;
            }
            __syncthreads();
            const uint32_t end = startEvenBins(wanted);
            places.shrink = shrinkOf(end);
            forEach([&](uint64_t e, uint32_t bin) {
                if (places.begin(bin) < wanted) {
                    places.addToRange(e, bin);
                }
            });
            __syncthreads();
            forEach([&](uint64_t e, uint32_t bin) {
                if (places.begin(bin) < wanted &&
                    atomicAdd(&second[places.of(e, bin)], 1) >= kMaxBin) {
                    atomicMin(crowdedBin, bin);
                }
            });
            __syncthreads();
            startSecondBins(second);
            const uint32_t crowded = *crowdedBin;
            const uint32_t below =
                    crowded < kSize ? places.begin(crowded) : end;
            const uint32_t size = min(below, wanted + kMaxBin);
            forEach([&](uint64_t e, uint32_t bin) {
                if (bin < crowded && places.begin(bin) < wanted) {
                    const uint32_t slot =
                            atomicAdd(&second[places.of(e, bin)], 1);
                    if (slot < size) {
                        other[slot] = e;
                    }
                }
            });
            __syncthreads();
            // Every second bin now holds its end, and where the crowded bin
            // begins, that of what was put there.
            for (uint32_t at = threadIdx.x; at < size; at += Threads) {
                const uint64_t e = other[at];
                const uint32_t bin = places.of(e, places.even.of(e));
                const uint32_t last = second[bin];
                uint32_t place = bin > 0 ? second[bin - 1] : 0;
                if (place < wanted) {
                    for (uint32_t j = place; j < last; ++j) {
                        place += other[j] < e;
                    }
                    if (place < wanted) {
                        put(placed + place, e);
                    }
                }
            }
            __syncthreads();
            placed += below;
            if (placed >= k) {
                return true;
            }
            if (crowded == kSize && below == 0) {
                return false;
            }
            if (crowded == kSize) {
                // On behind what lay together.
                from = to + 1;
                to = limit;
            } else {
                places.even.narrow(crowded, from, to);
            }
        }
        return false;
    }

   private:
    /// Keys and columns of a crowded bin, but for few of them.
    struct Range {
        uint32_t leastKey = ~0u;
        uint32_t greatestKey = 0;
        uint32_t leastColumn = ~0u;
        uint32_t greatestColumn = 0;

        __device__ __forceinline__ void add(uint64_t e) {
            atomicMin(&leastKey, entryKey(e));
            atomicMax(&greatestKey, entryKey(e));
            atomicMin(&leastColumn, entryColumn(e));
            atomicMax(&greatestColumn, entryColumn(e));
        }
        /// Where an entry is in it, as part of 2^32.
        __device__ __forceinline__ uint32_t partOf(uint64_t e) const {
            if (entryKey(e) < leastKey) {
                return 0;
            }
            if (entryKey(e) > greatestKey) {
                return ~0u;
            }
            const bool isOneKey = greatestKey == leastKey;
            const uint32_t column =
                    min(max(entryColumn(e), leastColumn), greatestColumn);
            const uint32_t width = isOneKey ? greatestColumn - leastColumn
                                            : greatestKey - leastKey;
            const uint32_t part =
                    isOneKey ? column - leastColumn : entryKey(e) - leastKey;
            return part << __clz(width | 1);
        }
    };

    /// The bins of entries, of even width, and their second bins, of about two
    /// entries each.
    struct Places {
        EvenBins even;
        const uint32_t* begins; // of even bins
        Range* ranges; // of a crowded bin, at its begin / kMostUnspread
        int shrink;    // from entries to second bins

        __device__ __forceinline__ uint32_t begin(uint32_t bin) const {
            return begins[bin];
        }
        __device__ __forceinline__ void addToRange(uint64_t e, uint32_t bin) {
            const uint32_t size = begin(bin + 1) - begin(bin);
            if (size > kMostUnspread &&
                __umulhi(mixBits(entryColumn(e)), size) < kSampled) {
                ranges[begin(bin) / kMostUnspread].add(e);
            }
        }
        /// The second bin of an entry.
        __device__ __forceinline__ uint32_t of(uint64_t e, uint32_t bin) const {
            uint32_t place = begin(bin);
            const uint32_t size = begin(bin + 1) - place;
            if (size > kMostUnspread) {
                place +=
                        __umulhi(ranges[place / kMostUnspread].partOf(e), size);
            }
            return min(place >> shrink, uint32_t(SecondBins - 1));
        }
    };

    /// Of so many entries, which shrink to at most SecondBins.
    __device__ __forceinline__ static int shrinkOf(uint32_t entries) {
        return max(1, __clz(SecondBins) + 1 - __clz(entries - 1));
    }

    /// Turns counts into begins; returns the end of the last bin that begins
    /// below `wanted`. Begins and ends with the block in step.
    __device__ __forceinline__ uint32_t startEvenBins(uint32_t wanted) {
        uint32_t* mine = this->shared.bins + threadIdx.x * Items;
        uint32_t sum = 0;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            sum += mine[i];
        }
        uint32_t start = sumOfThreadsBefore<Threads>(sum, this->shared.sums);
        uint32_t end = 0;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const uint32_t begin = start;
            start += mine[i];
            mine[i] = begin;
            end = begin < wanted ? start : end;
        }
        end = __reduce_max_sync(kFullWarp, end);
        if (threadIdx.x % kWarpSize == 0) {
            this->shared.crowded[threadIdx.x / kWarpSize] = end;
        }
        if (threadIdx.x == Threads - 1) {
            this->shared.bins[kSize] = start;
        }
        __syncthreads();
        return __reduce_max_sync(
                kFullWarp, ofWarps<kWarps>(this->shared.crowded, 0u));
    }

    /// Turns counts into begins. Begins and ends with the block in step.
    __device__ __forceinline__ void startSecondBins(uint32_t* second) {
        constexpr int kItems = SecondBins / Threads;
        static_assert(kItems * Threads == SecondBins);
        uint32_t* mine = second + threadIdx.x * kItems;
        uint32_t sum = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            sum += mine[i];
        }
        uint32_t start = sumOfThreadsBefore<Threads>(sum, this->shared.sums);
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t size = mine[i];
            mine[i] = start;
            start += size;
        }
        __syncthreads();
    }
};

} // namespace faiss_bits

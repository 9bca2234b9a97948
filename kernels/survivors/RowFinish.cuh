/// From the survivors of a row to its k best in order, by one block.
#pragma once

#include <algorithm>

#include "kernels/device/KeepEntries.cuh"
#include "kernels/device/Narrow.cuh"
#include "kernels/device/StraightSpread.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// Writes the k <= Room least of some entries in order: by bins, or where too
/// many lie together, narrowed to at most Room and sorted.
template <class T, class Params, int Threads, int Room>
struct RowFinish {
    /// Few entries are sorted by as few warps as hold them.
    static constexpr int kSortThreads = Room <= 64 ? kWarpSize : Threads;
    static constexpr bool kSmall = Room <= 256 && Room >= kSortThreads;
    static constexpr int kSortItems = Room / kSortThreads;
    using Narrow = BlockNarrow<Threads>;
    using Small = BlockBitonic<kSortThreads, kSortItems>;
    using Spread = BlockSpreadSort<kSortThreads, kSortItems>;
    static constexpr int kSelectItems = std::max(4, Room / Threads);
    using Select = BlockStraightSpread<Threads, kSelectItems>;

    /// Words of shared memory that run() wants beside its storage.
    static constexpr int kRoomWords =
            kSmall ? Room + Select::kMaxBin : 2 * Room;
    static_assert(kRoomWords >= Room + int(Select::kMaxBin));

    struct SharedStorage {
        union {
            typename Narrow::SharedStorage narrow;
            typename Small::SharedStorage small;
            typename Spread::SharedStorage spread;
            typename Select::SharedStorage select;
        };
        uint32_t kept;
    };

    SharedStorage& shared;

    /// `entries` may be in shared or global memory; `room` is shared memory
    /// beside them. At least min(k, count) entries are not above `limit`.
    __device__ __forceinline__ void run(
            const Params& params,
            uint32_t row,
            const uint64_t* entries,
            uint32_t count,
            uint64_t limit,
            uint64_t* room,
            bool zerosArePlus = false) {
        const auto put = [&](int place, uint64_t entry) {
            writeResult<T>(params, row, place, entry, zerosArePlus);
        };
        if (count < uint32_t(params.k) ||
            !Select{shared.select}.select(
                    entries, count, limit, params.k, room, put)) {
            runCrowded(shared, params, row, entries, count, limit, room);
        }
    }

   private:
    /// Few entries, or many that lie together: where it is their bits that do,
    /// spread by their numbers, else narrowed to at most Room, and those
    /// sorted. Out of line and static, so that it costs the others no
    /// registers.
    __device__ static __noinline__ void runCrowded(
            SharedStorage& shared,
            const Params& params,
            uint32_t row,
            const uint64_t* entries,
            uint32_t count,
            uint64_t limit,
            uint64_t* room) {
        const auto put = [&](int place, uint64_t entry) {
            writeResult<T>(params, row, place, entry);
        };
        if (count >= uint32_t(params.k) &&
            Select{shared.select}.selectStraight(
                    entries, count, limit, params.k, room, put)) {
            return;
        }
        RowFinish{shared}.narrowAndSort(params, row, entries, count, room);
    }

    __device__ __forceinline__ void narrowAndSort(
            const Params& params,
            uint32_t row,
            const uint64_t* entries,
            uint32_t count,
            uint64_t* room) {
        uint64_t limit = kNoEntry;
        if (count > Room) {
            const auto forEach = [&](auto take) {
                forEachEntry<Threads, 4>(entries, count, take);
            };
            limit = Narrow{shared.narrow}.limit(forEach, params.k, Room);
        }
        if (threadIdx.x == 0) {
            shared.kept = 0;
        }
        __syncthreads();
        keepEntries<Threads>(entries, count, limit, room, &shared.kept);
        const int kept = int(shared.kept);
        const auto put = [&](int place, uint64_t entry) {
            if (place < params.k) {
                writeResult<T>(params, row, place, entry);
            }
        };
        if constexpr (kSmall) {
            sortSmall(room, kept, put);
        } else {
            // What Narrow left in its storage is needed no more.
            Spread{shared.spread}.sort(room, room + Room, kept, put);
            // Fewer than k columns.
            for (int p = kept + threadIdx.x; p < params.k; p += Threads) {
                put(p, kNoEntry);
            }
        }
    }

    template <class Put>
    __device__ __forceinline__ void sortSmall(
            const uint64_t* room,
            int kept,
            Put put) {
        if constexpr (kSortThreads == kWarpSize) {
            if (threadIdx.x >= kWarpSize) {
                return;
            }
        }
        uint64_t items[kSortItems];
#pragma unroll
        for (int i = 0; i < kSortItems; ++i) {
            const int slot = i * kSortThreads + threadIdx.x;
            items[i] = slot < kept ? room[slot] : kNoEntry;
        }
        Small{shared.small}.sort(items, true, EntryLess{});
#pragma unroll
        for (int i = 0; i < kSortItems; ++i) {
            put(threadIdx.x * kSortItems + i, items[i]);
        }
    }
};

} // namespace faiss_bits

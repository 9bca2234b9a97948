/// From the keys of all pairs of a query to its k best, by one block.
#pragma once

#include "kernels/device/KeepEntries.cuh"
#include "kernels/knn/direct/DirectParams.h"
#include "kernels/survivors/RowFinish.cuh"
#include "kernels/survivors/SurvivorSort.h"

namespace faiss_bits {

/// Entries that shared memory has room for beside those of the sort.
constexpr uint32_t kDirectStaged = 2048;

/// Calls take(entry) for those of some groups of a row that are not above a
/// limit.
template <int kThreads, class Take>
__device__ __forceinline__ void forEachNearEntry(
        const DirectKeys& direct,
        uint32_t row,
        const uint32_t* groups,
        uint32_t numGroups,
        uint64_t limit,
        Take take) {
    // Four keys at a time.
    const uint32_t logFours = direct.logUnits + 3;
    static_assert(kDirectUnit == 4 << 3);
    const auto* keys = reinterpret_cast<const uint4*>(
            direct.keys + size_t(row) * direct.stride);
    const uint32_t fours = numGroups << logFours;
    constexpr int kChunk = kThreads == 1024 ? 4 : 8;
    for (uint32_t at = threadIdx.x; at < fours; at += kThreads * kChunk) {
        uint4 chunk[kChunk];
        uint32_t places[kChunk];
#pragma unroll
        for (int i = 0; i < kChunk; ++i) {
            const uint32_t from = at + i * kThreads;
            chunk[i] = make_uint4(kNanKey, kNanKey, kNanKey, kNanKey);
            if (from < fours) {
                const uint32_t group = groups[from >> logFours];
                const uint32_t four =
                        (group << logFours) + (from & ((1u << logFours) - 1));
                places[i] = 4 * four;
                chunk[i] = keys[four];
            }
        }
#pragma unroll
        for (int i = 0; i < kChunk; ++i) {
            const uint32_t four[] = {
                    chunk[i].x, chunk[i].y, chunk[i].z, chunk[i].w};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                if (four[j] > entryKey(limit) || four[j] == kNanKey) {
                    continue;
                }
                const uint32_t number = directNumber(direct, places[i] + j);
                const uint64_t entry = makeEntry(
                        four[j],
                        direct.ids ? uint32_t(direct.ids[number]) : number);
                if (entry <= limit) {
                    take(entry);
                }
            }
        }
    }
}

/// The entries that are not above the k-th least of the groups: those lie in as
/// many groups, whatever the data.
template <int kThreads>
struct NearEntries {
    using Params = DirectFinishParams;
    using Narrow = BlockNarrow<kThreads>;

    struct SharedStorage {
        typename Narrow::SharedStorage narrow;
        uint32_t groups[mostNearGroups(kMaxFinishK)];
        uint32_t numNear;
        uint32_t count;
    };

    SharedStorage& shared;

    /// Finds them; afterwards they are the first `count` of `staged`, if that
    /// is no more than kDirectStaged, and else of the row's list in memory.
    /// Some limit that k of them, if there are so many, are not above is
    /// returned.
    __device__ __forceinline__ uint64_t
    find(const Params& params,
         uint32_t row,
         uint64_t* staged,
         uint64_t* stagedLeast) {
        if (threadIdx.x == 0) {
            shared.numNear = 0;
            shared.count = 0;
        }
        __syncthreads();
        const uint64_t* least =
                params.direct.least + size_t(row) * params.direct.groups;
        if (params.stagesLeast) {
            copyEntries<kThreads>(least, params.direct.groups, stagedLeast);
            least = stagedLeast;
        }
        uint64_t limit = limitOf(params, least);
        forEachPlace<kThreads, 8>(
                least, params.direct.groups, [&](uint32_t group, uint64_t e) {
                    if (e <= limit) {
                        shared.groups[atomicAdd(&shared.numNear, 1)] = group;
                    }
                });
        __syncthreads();
        if (shared.numNear < uint32_t(params.k)) {
            limit = kNoEntry - 1; // of all that there are
        }
        uint64_t* list = params.survivors + size_t(row) * params.capacity;
        collect(params, row, limit, staged, list);
        __syncthreads();
        if (shared.count > kDirectStaged) {
            for (uint32_t i = threadIdx.x; i < kDirectStaged; i += kThreads) {
                list[i] = staged[i];
            }
            __syncthreads();
        }
        return limit;
    }

   private:
    /// An entry that k of all and few of the groups' least are not above; one
    /// that none is above if there are not that many groups. With fewer than k
    /// that are there, the greatest.
    __device__ __forceinline__ uint64_t
    limitOf(const Params& params, const uint64_t* least) {
        const uint32_t k = uint32_t(params.k);
        if (params.direct.groups <= k) {
            return kNoEntry - 1;
        }
        const auto forEach = [&](auto take) {
            forEachEntry<kThreads, 8>(least, params.direct.groups, take);
        };
        return Narrow{shared.narrow}.limit(forEach, k, params.mostNear);
    }

    /// The entries of the near groups: the first ones to shared memory.
    __device__ __forceinline__ void collect(
            const Params& params,
            uint32_t row,
            uint64_t limit,
            uint64_t* staged,
            uint64_t* list) {
        forEachNearEntry<kThreads>(
                params.direct,
                row,
                shared.groups,
                shared.numNear,
                limit,
                [&](uint64_t entry) {
                    const uint32_t to = atomicAdd(&shared.count, 1);
                    if (to < kDirectStaged) {
                        staged[to] = entry;
                    } else if (to < params.capacity) {
                        list[to] = entry;
                    }
                });
    }
};

/// A block a query. In shared memory: storage, the room of the sort, and what
/// is staged.
template <int kThreads, int kRoom>
struct DirectFinish {
    using Finish = RowFinish<float, DirectFinishParams, kThreads, kRoom>;
    using Near = NearEntries<kThreads>;

    union SharedStorage {
        typename Finish::SharedStorage finish;
        typename Near::SharedStorage near;
    };

    static constexpr size_t kStorageWords = (sizeof(SharedStorage) + 7) / 8;
    static constexpr size_t kBytes =
            8 * (kStorageWords + Finish::kRoomWords + kDirectStaged);

    __device__ static void run(
            const DirectFinishParams& params,
            uint32_t row,
            uint64_t* memory) {
        auto& shared = *reinterpret_cast<SharedStorage*>(memory);
        uint64_t* room = memory + kStorageWords;
        uint64_t* staged = room + Finish::kRoomWords;
        const uint64_t limit = Near{shared.near}.find(
                params, row, staged, staged + kDirectStaged);
        const uint32_t count = min(shared.near.count, params.capacity);
        __syncthreads(); // the storage is the other's
        Finish{shared.finish}.run(
                params,
                row,
                count <= kDirectStaged
                        ? staged
                        : params.survivors + size_t(row) * params.capacity,
                count,
                limit,
                room);
    }
};

} // namespace faiss_bits

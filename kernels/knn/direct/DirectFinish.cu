#include "kernels/knn/direct/DirectLaunch.h"
#include "kernels/survivors/FinishRows.cuh"
#include "kernels/survivors/SurvivorSort.h"

namespace faiss_bits {

namespace {

/// Entries of a list that are staged in shared memory.
constexpr uint32_t kMostStaged = 2048;

/// Lists of the entries that are not above the k-th least of the groups: those
/// lie in as many groups, whatever the data.
template <int kThreads>
struct NearGroups {
    using Params = DirectFinishParams;
    using Narrow = BlockNarrow<kThreads>;

    struct SharedStorage {
        typename Narrow::SharedStorage narrow;
        uint32_t groups[mostNearGroups(kMaxFinishK)];
        uint32_t numNear;
        uint32_t count;
    };

    __device__ static bool isNeeded(const Params&, uint32_t) {
        return true;
    }

    __device__ static void run(
            SharedStorage& shared,
            const Params& params,
            uint32_t row) {
        if (threadIdx.x == 0) {
            shared.numNear = 0;
            shared.count = 0;
        }
        __syncthreads();
        const uint64_t* least =
                params.direct.least + size_t(row) * params.direct.groups;
        uint64_t limit = limitOf(shared, params, least);
        forEachLeast(
                least, params.direct.groups, [&](uint32_t group, uint64_t e) {
                    if (e <= limit) {
                        shared.groups[atomicAdd(&shared.numNear, 1)] = group;
                    }
                });
        __syncthreads();
        if (shared.numNear < uint32_t(params.k)) {
            limit = kNoEntry - 1; // of all that there are
        }
        collect(shared, params, row, limit);
        __syncthreads();
        if (threadIdx.x == 0) {
            params.counts[row] = shared.count;
            params.limits[row] = limit;
        }
        __syncthreads();
    }

   private:
    /// Calls take(group, entry) for those that are there, several loads in
    /// flight.
    template <class Take>
    __device__ __forceinline__ static void forEachLeast(
            const uint64_t* least,
            uint32_t groups,
            Take take) {
        constexpr int kChunk = 8;
        for (uint32_t at = threadIdx.x; at < groups; at += kThreads * kChunk) {
            uint64_t chunk[kChunk];
#pragma unroll
            for (int i = 0; i < kChunk; ++i) {
                const uint32_t from = at + i * kThreads;
                chunk[i] = from < groups ? least[from] : kNoEntry;
            }
#pragma unroll
            for (int i = 0; i < kChunk; ++i) {
                if (chunk[i] != kNoEntry) {
                    take(at + i * kThreads, chunk[i]);
                }
            }
        }
    }

    /// An entry that k of all and few of the groups' least are not above; one
    /// that none is above if there are not that many groups. With fewer than k
    /// that are there, the greatest.
    __device__ __forceinline__ static uint64_t limitOf(
            SharedStorage& shared,
            const Params& params,
            const uint64_t* least) {
        const uint32_t k = uint32_t(params.k);
        if (params.direct.groups <= k) {
            return kNoEntry - 1;
        }
        const auto forEach = [&](auto take) {
            forEachLeast(
                    least, params.direct.groups, [&](uint32_t, uint64_t e) {
                        take(e);
                    });
        };
        return Narrow{shared.narrow}.limit(forEach, k, params.mostNear);
    }

    /// The entries of the near groups, to the row's list.
    __device__ __forceinline__ static void collect(
            SharedStorage& shared,
            const Params& params,
            uint32_t row,
            uint64_t limit) {
        // Four keys at a time.
        const uint32_t logFours = params.direct.logUnits + 3;
        static_assert(kDirectUnit == 4 << 3);
        const auto* keys = reinterpret_cast<const uint4*>(
                params.direct.keys + size_t(row) * params.direct.stride);
        uint64_t* list = params.survivors + size_t(row) * params.capacity;
        const uint32_t fours = shared.numNear << logFours;
        constexpr int kChunk = 4;
        for (uint32_t at = threadIdx.x; at < fours; at += kThreads * kChunk) {
            uint4 chunk[kChunk];
            uint32_t places[kChunk];
#pragma unroll
            for (int i = 0; i < kChunk; ++i) {
                const uint32_t from = at + i * kThreads;
                chunk[i] = make_uint4(kNanKey, kNanKey, kNanKey, kNanKey);
                if (from < fours) {
                    const uint32_t group = shared.groups[from >> logFours];
                    const uint32_t four = (group << logFours) +
                            (from & ((1u << logFours) - 1));
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
                    const uint32_t place = places[i] + j;
                    const uint64_t entry = makeEntry(
                            four[j],
                            params.direct.ids
                                    ? uint32_t(params.direct.ids[place])
                                    : place);
                    if (entry <= limit) {
                        const uint32_t to = atomicAdd(&shared.count, 1);
                        if (to < params.capacity) {
                            list[to] = entry;
                        }
                    }
                }
            }
        }
    }
};

template <int kThreads, int kRoom>
void launchFinish(
        const DirectFinishParams& params,
        unsigned rows,
        cudaStream_t stream) {
    launchFinishKernel<float, NearGroups<kThreads>, kThreads, kRoom>(
            params, rows, stream);
}

} // namespace

void launchDirectFinish(
        const DirectFinishParams& params,
        unsigned rows,
        cudaStream_t stream) {
    DirectFinishParams p = params;
    p.mostNear = mostNearGroups(uint32_t(p.k));
    p.staged = std::min(p.capacity, kMostStaged);
    const auto launch = p.k <= 32 ? launchFinish<512, 64>
            : p.k <= 512          ? launchFinish<512, 512>
            : p.k <= 1024         ? launchFinish<1024, 1024>
                                  : launchFinish<1024, 2048>;
    launch(p, rows, stream);
}

} // namespace faiss_bits

#include "kernels/knn/direct/DirectSpread.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/knn/direct/DirectFinish.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 1024;

/// One block's share of a query: the entries of some groups that are not above
/// a limit, which every block finds by itself.
struct SpreadNear {
    using Narrow = BlockNarrow<kThreads>;
    /// Values that a thread has of the groups' least. Each is the least of many
    /// groups that lie far apart, so that vectors in order, whose best are in
    /// few groups, are in few of them.
    static constexpr int kStrands = 8;

    struct SharedStorage {
        Narrow::SharedStorage narrow;
        uint32_t groups[kSpreadRoom];
        uint32_t numNear;
        uint32_t count;
    };

    SharedStorage& shared;

    __device__ __forceinline__ void run(
            const DirectSpreadParams& params,
            uint32_t row) {
        const DirectKeys& direct = params.finish.direct;
        if (threadIdx.x == 0) {
            shared.numNear = 0;
            shared.count = 0;
        }
        __syncthreads();
        const uint64_t* least = direct.least + size_t(row) * direct.groups;
        const uint64_t limit = limitOf(params.finish, least);
        for (uint32_t group = blockIdx.x + threadIdx.x * kSpreadBlocks;
             group < direct.groups;
             group += kThreads * kSpreadBlocks) {
            if (least[group] <= limit) {
                const uint32_t to = atomicAdd(&shared.numNear, 1);
                if (to < kSpreadRoom) {
                    shared.groups[to] = group;
                }
            }
        }
        __syncthreads();
        const size_t block = size_t(row) * kSpreadBlocks + blockIdx.x;
        uint64_t* entries = params.spread.entries + block * kSpreadRoom;
        // Each has an entry at least.
        const uint32_t numNear = shared.numNear;
        uint64_t cut = kNoEntry;
        if (numNear <= kSpreadRoom) {
            const auto collect = [&](uint64_t most) {
                forEachNearEntry<kThreads>(
                        direct,
                        row,
                        shared.groups,
                        numNear,
                        most,
                        [&](uint64_t entry) {
                            const uint32_t to = atomicAdd(&shared.count, 1);
                            if (to < kSpreadRoom) {
                                entries[to] = entry;
                            }
                        });
            };
            collect(limit);
            __syncthreads();
            if (shared.count > params.mostKept) {
                // The best are in fewer groups than k, as those of a cluster
                // whose vectors lie side by side. They are dealt to all blocks:
                // this one has about as many as the others.
                const auto forEach = [&](auto take) {
                    forEachNearEntry<kThreads>(
                            direct, row, shared.groups, numNear, limit, take);
                };
                cut = Narrow{shared.narrow}.limit(
                        forEach, params.leastKept, params.mostKept);
                __syncthreads();
                if (threadIdx.x == 0) {
                    shared.count = 0;
                }
                __syncthreads();
                collect(cut);
            }
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            params.spread.counts[block] =
                    numNear <= kSpreadRoom ? shared.count : numNear;
            params.spread.cuts[block] = cut;
            if (blockIdx.x == 0) {
                params.spread.limits[row] = limit;
            }
        }
    }

   private:
    /// The same in every block. If there are so many numbers, k entries are not
    /// above it; whoever uses it counts them.
    __device__ __forceinline__ uint64_t
    limitOf(const DirectFinishParams& params, const uint64_t* least) {
        const uint32_t groups = params.direct.groups;
        uint64_t strands[kStrands];
#pragma unroll
        for (int i = 0; i < kStrands; ++i) {
            strands[i] = kNoEntry;
        }
        for (uint32_t at = threadIdx.x; at < groups;
             at += kThreads * kStrands) {
#pragma unroll
            for (int i = 0; i < kStrands; ++i) {
                const uint32_t from = at + i * kThreads;
                const uint64_t e = from < groups ? least[from] : kNoEntry;
                strands[i] = min(strands[i], e);
            }
        }
        const auto forEach = [&](auto take) {
#pragma unroll
            for (int i = 0; i < kStrands; ++i) {
                if (entryKey(strands[i]) != kNanKey) {
                    take(strands[i]);
                }
            }
        };
        return Narrow{shared.narrow}.limit(
                forEach, uint32_t(params.k), params.mostNear);
    }
};

__global__ __launch_bounds__(kThreads) void directSpreadKernel(
        const __grid_constant__ DirectSpreadParams params) {
    __shared__ SpreadNear::SharedStorage shared;
    allowNext();
    waitForPrevious();
    SpreadNear{shared}.run(params, blockIdx.y);
}

/// One block a query makes results of what those found; of all keys, where some
/// had no room, too few entries were not above the limit, or a block left out
/// what may belong to the results.
template <int kRoom>
struct SpreadFinish {
    using Whole = DirectFinish<kThreads, kRoom>;
    using Finish = typename Whole::Finish;

    /// Entries of a query that shared memory has room for. Of vectors in random
    /// order up to a third more than k are not above the limit, where groups
    /// are as few as they may be.
    static constexpr uint32_t kStaged = kRoom <= 1024 ? 2048 : 4096;
    static_assert(kStaged >= kDirectStaged);
    static constexpr size_t kBytes =
            8 * (Whole::kStorageWords + Finish::kRoomWords + kStaged);

    __device__ __forceinline__ static void run(
            const DirectSpreadParams& params,
            uint32_t row,
            uint64_t* memory) {
        // A warp copies what a block found.
        static_assert(
                kSpreadBlocks == kWarpSize &&
                kSpreadBlocks == kThreads / kWarpSize);
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t warp = threadIdx.x / kWarpSize;
        const DirectSpread& spread = params.spread;
        const uint32_t ofLane = spread.counts[row * kSpreadBlocks + lane];
        const bool isWhole = __all_sync(kFullWarp, ofLane <= kSpreadRoom);
        const uint32_t count =
                isWhole ? __reduce_add_sync(kFullWarp, ofLane) : 0;
        if (count < uint32_t(params.finish.k) || count > kStaged) {
            runWhole(params, row, memory);
            return;
        }
        auto& shared =
                *reinterpret_cast<typename Finish::SharedStorage*>(memory);
        uint64_t* room = memory + Whole::kStorageWords;
        uint64_t* staged = room + Finish::kRoomWords;
        const uint32_t before =
                __reduce_add_sync(kFullWarp, lane < warp ? ofLane : 0u);
        const uint32_t ofWarp = __shfl_sync(kFullWarp, ofLane, warp);
        const uint64_t* entries = spread.entries +
                (size_t(row) * kSpreadBlocks + warp) * kSpreadRoom;
        for (uint32_t i = lane; i < ofWarp; i += kWarpSize) {
            staged[before + i] = entries[i];
        }
        __syncthreads();
        // What was left out is above it.
        const uint64_t cut =
                leastOfWarp(spread.cuts[row * kSpreadBlocks + lane]);
        uint64_t limit = spread.limits[row];
        if (cut != kNoEntry) {
            uint32_t within = 0;
            for (uint32_t base = 0; base < kStaged; base += kThreads) {
                const uint32_t i = base + threadIdx.x;
                within += __syncthreads_count(i < count && staged[i] <= cut);
            }
            if (within < uint32_t(params.finish.k)) {
                runWhole(params, row, memory);
                return;
            }
            limit = min(limit, cut);
        }
        Finish{shared}.run(params.finish, row, staged, count, limit, room);
    }

   private:
    /// Out of line, so that it costs the others no registers.
    __device__ __noinline__ static void runWhole(
            const DirectSpreadParams& params,
            uint32_t row,
            uint64_t* memory) {
        Whole::run(params.finish, row, memory);
    }
};

template <int kRoom>
__global__ __launch_bounds__(kThreads) void directSpreadFinishKernel(
        const __grid_constant__ DirectSpreadParams params) {
    extern __shared__ uint64_t memory[];
    allowNext();
    waitForPrevious();
    SpreadFinish<kRoom>::run(params, blockIdx.x, memory);
}

template <int kRoom>
void launchSpreadFinish(
        const DirectSpreadParams& params,
        unsigned rows,
        cudaStream_t stream) {
    const auto kernel = directSpreadFinishKernel<kRoom>;
    launchAfterPrevious(
            kernel,
            rows,
            kThreads,
            allowSharedBytes(kernel, SpreadFinish<kRoom>::kBytes),
            stream,
            params);
}

} // namespace

void launchDirectSpread(
        const DirectSpreadParams& params,
        unsigned rows,
        cudaStream_t stream) {
    DirectSpreadParams p = params;
    const auto k = uint32_t(p.finish.k);
    p.finish.mostNear = mostNearGroups(k);
    // A block's part of k, and some deviations; all parts have to be staged.
    p.mostKept = (k <= 1024 ? SpreadFinish<1024>::kStaged
                            : SpreadFinish<2048>::kStaged) /
            kSpreadBlocks;
    const double part = double(k) / kSpreadBlocks;
    p.leastKept = std::min(uint32_t(part + 4 * std::sqrt(part)), p.mostKept);
    launchAfterPrevious(
            directSpreadKernel,
            dim3(kSpreadBlocks, rows),
            kThreads,
            0,
            stream,
            p);
    const auto launch = p.finish.k <= 1024 ? launchSpreadFinish<1024>
                                           : launchSpreadFinish<2048>;
    launch(p, rows, stream);
}

} // namespace faiss_bits

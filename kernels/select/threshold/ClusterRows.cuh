/// Few rows in one launch: the blocks of a cluster share a row. Each draws a
/// part of the sample, all find the limit from all parts, each reads its
/// segment, and the first one finishes what they found; where that is too much
/// for it, all keep the best of it first.
///
/// Bound by: latencies, those of a launch and of four barriers of the cluster;
/// for long rows by what so few multiprocessors can read.
#pragma once

#include <cooperative_groups.h>

#include "kernels/select/threshold/ExactRow.cuh"
#include "kernels/select/threshold/WholeRows.cuh"

namespace faiss_bits {

/// As WholeRowsBody; rows begin at any address.
template <class T, class Tile, int Threads, int Room>
struct ClusterRowsBody : WholeRowsBody<T, Tile, Threads, Room, true> {
    using Base = WholeRowsBody<T, Tile, Threads, Room, true>;
    using Sample = typename Base::Sample;
    using Base::params;
    using Base::shared;
    using Base::slots;
    using Base::survivors;

    /// Groups of the sample that one of two blocks leaves.
    static constexpr int kMostGroups = kSampledGroups / 2;
    static constexpr int kRuns = Threads / Sample::kRunThreads;
    static_assert(kRuns * kSampleRun <= int(clusterRoom(Room)));

    uint64_t* groups; // [kMostGroups] in shared memory

    __device__ void run() {
#if __CUDA_ARCH__ >= 900
        const auto cluster = cooperative_groups::this_cluster();
        const uint32_t blocks = cluster.num_blocks();
        const uint32_t rank = cluster.block_rank();
        const uint32_t row = params.firstRow + blockIdx.x / blocks;
        prefetch(row, rank);
        uint64_t limit = kNoEntry;
        uint32_t before = 0; // survivors of the blocks before this one
        uint32_t total = 0;
        // Where a sample promised too much another one is drawn, and then none.
        for (int turn = 0; turn < 3; ++turn) {
            limit = turn < 2 ? sampled(row, rank, blocks, turn > 0) : kNoEntry;
            if (uint64_t(rank) * params.segment < params.cols) {
                scan(row, rank, params.segment, limit);
            } else {
                Base::begin(limit);
            }
            cluster.sync();
            countAll(rank, blocks, before, total);
            if (total >= Base::wanted()) {
                break;
            }
            // All have read the counts.
            cluster.sync();
        }
        if (total > params.capacity) {
            limit = keepBest(shared, slots, survivors, params, Base::wanted());
            cluster.sync();
            countAll(rank, blocks, before, total);
        }
        if (rank > 0) {
            uint64_t* all = cluster.map_shared_rank(survivors, 0) + before;
            for (uint32_t i = threadIdx.x; i < shared.buffered; i += Threads) {
                all[i] = survivors[i];
            }
        }
        cluster.sync();
        if (rank == 0) {
            finish(row, total, limit);
        }
#else
        // Of a device without clusters. One with them may run it, if the code
        // was compiled for one without: the first block does all then.
        if (blockIdx.x % params.sampleParts == 0) {
            const uint32_t row =
                    params.firstRow + blockIdx.x / params.sampleParts;
            scan(row, 0, params.cols, kNoEntry);
            finish(row, shared.buffered, kNoEntry);
        }
#endif
    }

   private:
    __device__ __forceinline__ void scan(
            uint32_t row,
            uint32_t rank,
            uint32_t segment,
            uint64_t limit) {
        Base::scanUnaligned(row, rank, segment, [&](const auto& beginStream) {
            beginStream();
            return limit;
        });
    }

    __device__ __forceinline__ void finish(
            uint32_t row,
            uint32_t count,
            uint64_t limit) {
        typename Base::Finish{shared.finish}.run(
                params,
                row,
                survivors,
                count,
                limit,
                reinterpret_cast<uint64_t*>(slots));
    }

#if __CUDA_ARCH__ >= 900
    using Exact = ExactRow<Tile, Threads>;

    /// Survivors of all blocks, and of those before this one.
    __device__ __forceinline__ void countAll(
            uint32_t rank,
            uint32_t blocks,
            uint32_t& before,
            uint32_t& total) const {
        const auto cluster = cooperative_groups::this_cluster();
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t count = lane < blocks
                ? *cluster.map_shared_rank(&shared.buffered, lane)
                : 0;
        total = __reduce_add_sync(kFullWarp, count);
        before = __reduce_add_sync(kFullWarp, lane < rank ? count : 0);
    }

    /// What the stream has no more need of.
    struct ExactStorage {
        typename Exact::SharedStorage exact;
        uint32_t sums[Exact::kBins];
    };
    static_assert(sizeof(ExactStorage) <= 2 * Base::Stream::kStageBytes);

    /// Of what all blocks have kept, `wanted` of the best and no more than one
    /// block has room for. Returns an entry that they are not above. Out of
    /// line and static, so that it costs the others no registers.
    __device__ static __noinline__ uint64_t keepBest(
            typename Base::SharedStorage& shared,
            KeyPack<T>* slots,
            uint64_t* survivors,
            const ThresholdParams& params,
            uint32_t wanted) {
        auto& storage = *reinterpret_cast<ExactStorage*>(slots);
        const uint32_t count = shared.buffered;
        const uint64_t limit = Exact{storage.exact}.limitOfEntries(
                survivors,
                count,
                params.cols,
                wanted,
                params.capacity,
                RowOfCluster<Threads>(storage.sums, params.sampleParts));
        // All blocks have read the count.
        if (threadIdx.x == 0) {
            shared.buffered = 0;
        }
        __syncthreads();
        keepEntries<Threads>(
                survivors, count, limit, survivors, &shared.buffered);
        return limit;
    }

    /// Begins the way of the segment's first tiles, which are read when the
    /// sample has been.
    __device__ __forceinline__ void prefetch(uint32_t row, uint32_t rank)
            const {
        const uint64_t begin = uint64_t(rank) * params.segment;
        if (begin >= params.cols) {
            return;
        }
        const uint64_t columns =
                min(params.cols - begin, uint64_t(params.segment));
        const uint64_t bytes =
                min(columns * sizeof(T),
                    uint64_t(params.stages) * Base::Stream::kStageBytes);
        const char* from = reinterpret_cast<const char*>(
                static_cast<const T*>(params.keys) + params.rowStride * row +
                begin);
        for (uint64_t at = threadIdx.x * kStreamLine; at < bytes;
             at += Threads * kStreamLine) {
            prefetchToL2(from + at);
        }
    }

    /// The limit of a row. Every block finds it from what all have left.
    __device__ __forceinline__ uint64_t
    sampled(uint32_t row, uint32_t rank, uint32_t blocks, bool isAgain) {
        const auto cluster = cooperative_groups::this_cluster();
        uint64_t least[kSampleItems];
        Sample::draw(params, row, rank, blocks, isAgain, least);
        Sample::leave(
                reinterpret_cast<uint64_t(*)[kSampleRun]>(survivors),
                blocks,
                least,
                groups);
        cluster.sync();
        const uint32_t each = kSampledGroups / blocks;
#pragma unroll
        for (int i = 0; i < kSampleItems; ++i) {
            const uint32_t g = i * Threads + threadIdx.x;
            least[i] = cluster.map_shared_rank(groups, g / each)[g % each];
        }
        return Sample{shared.sample}.limitOfParts(
                least, params, isAgain ? moreSteps(Misled::TooFew) : 0);
    }
#endif
};

template <class T, class Tile, int Threads, int Room>
__global__ void __launch_bounds__(Threads)
        clusterRowsKernel(const __grid_constant__ ThresholdParams params) {
    using Body = ClusterRowsBody<T, Tile, Threads, Room>;
    extern __shared__ __align__(128) uint64_t memory[];
    auto& shared = *reinterpret_cast<typename Body::SharedStorage*>(memory);
    uint64_t* slots = memory + Body::kStorageWords;
    uint64_t* survivors = slots + Body::streamWords(params.stages);
    Body{{shared, reinterpret_cast<KeyPack<T>*>(slots), survivors, params},
         survivors + params.capacity}
            .run();
}

} // namespace faiss_bits

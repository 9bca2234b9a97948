/// Few rows in one launch: the blocks of a cluster share a row. Each draws a
/// part of the sample, all find the limit from all parts, each reads its
/// segment, and the first one finishes what they found.
///
/// Bound by: latencies, those of a launch and of four barriers of the cluster;
/// for long rows by what so few multiprocessors can read.
#pragma once

#include <cooperative_groups.h>

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
    static_assert(kRuns * kSampleRun <= int(kClusterRoom));

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
            const uint32_t lane = threadIdx.x % kWarpSize;
            const uint32_t count = lane < blocks
                    ? *cluster.map_shared_rank(&shared.buffered, lane)
                    : 0;
            total = __reduce_add_sync(kFullWarp, count);
            before = __reduce_add_sync(kFullWarp, lane < rank ? count : 0);
            if (total >= Base::wanted()) {
                break;
            }
            // All have read the counts.
            cluster.sync();
        }
        // To the first block, or if they are too many for it to memory.
        const bool fits = total <= params.capacity;
        uint64_t* all = fits ? cluster.map_shared_rank(survivors, 0)
                             : params.survivors +
                        size_t(blockIdx.x / blocks) * blocks * params.capacity;
        if (rank > 0 || !fits) {
            for (uint32_t i = threadIdx.x; i < shared.buffered; i += Threads) {
                all[before + i] = survivors[i];
            }
        }
        cluster.sync();
        if (rank == 0) {
            finish(row, fits ? survivors : all, total, limit);
        }
#else
        // Of a device without clusters. One with them may run it, if the code
        // was compiled for one without: the first block does all then.
        if (blockIdx.x % params.sampleParts == 0) {
            const uint32_t row =
                    params.firstRow + blockIdx.x / params.sampleParts;
            scan(row, 0, params.cols, kNoEntry);
            finish(row, survivors, shared.buffered, kNoEntry);
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
            const uint64_t* entries,
            uint32_t count,
            uint64_t limit) {
        typename Base::Finish{shared.finish}.run(
                params,
                row,
                entries,
                count,
                limit,
                reinterpret_cast<uint64_t*>(slots));
    }

#if __CUDA_ARCH__ >= 900
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

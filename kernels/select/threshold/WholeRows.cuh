/// One block a row, for many rows: sample, scan and finish in one kernel.
///
/// Bound by: the read of the keys. The blocks of a multiprocessor are at
/// different places of their rows, so that one sorts while others read.
#pragma once

#include "kernels/device/TileStream.cuh"
#include "kernels/select/threshold/RowSample.cuh"
#include "kernels/select/threshold/RowSurvivors.cuh"
#include "kernels/survivors/RowFinish.cuh"

namespace faiss_bits {

/// Room: entries that are sorted at the end, at least k.
template <class T, class Tile, int Threads, int Room>
struct WholeRowsBody {
    using Sample = RowSample<Tile, Threads>;
    using Narrow = BlockNarrow<Threads>;
    using Finish = RowFinish<T, ThresholdParams, Threads, Room>;
    using Scan = RowSurvivors<Tile, false, DropOverflow>;
    using Stream = TileStream<T, Threads>;
    static constexpr bool kStreams = !Tile::kHasBias;

    struct SharedStorage {
        union {
            typename Sample::SharedStorage sample;
            typename Finish::SharedStorage finish;
        };
        uint32_t buffered;
        bool minusZero; // there may be such a survivor
    };

    /// Words of dynamic shared memory: the storage; the stream, whose place
    /// the sort takes at the end; the survivors.
    static constexpr size_t kStorageWords =
            (sizeof(SharedStorage) + 127) / 128 * 16;
    __host__ __device__ static constexpr size_t streamWords(int stages) {
        const size_t words =
                kStreams ? size_t(stages) * Stream::kStageBytes / 8 : 0;
        return words > Finish::kRoomWords ? words : Finish::kRoomWords;
    }
    __host__ __device__ static constexpr size_t words(
            int stages,
            size_t capacity) {
        return kStorageWords + streamWords(stages) + capacity;
    }

    SharedStorage& shared;
    KeyPack<T>* slots;
    uint64_t* survivors;
    const ThresholdParams& params;

    __device__ void run(uint32_t block) {
        const uint32_t row = params.firstRow + block;
        uint64_t limit = kNoEntry;
        if (params.samplePlaces > 0) {
            uint64_t least[kSampleItems];
            Sample::draw(params, row, 0, 1, least);
            limit = Sample{shared.sample}.limit(
                    least, params.sampleRank, params.mostSampleRank);
        }
        const uint32_t wanted = min(uint32_t(params.k), params.cols);
        limit = scan(row, limit, wanted);
        if (shared.buffered > params.capacity || shared.buffered < wanted) {
            limit = scanExactly(shared, survivors, params, row, wanted);
        }
        Finish{shared.finish}.run(
                params,
                row,
                survivors,
                shared.buffered,
                limit,
                reinterpret_cast<uint64_t*>(slots),
                !shared.minusZero);
    }

   private:
    /// Returns the limit that it came to. Begins and ends with the block in
    /// step.
    __device__ __forceinline__ uint64_t
    scan(uint32_t row, uint64_t limit, uint32_t wanted) {
        if (threadIdx.x == 0) {
            shared.buffered = 0;
            shared.minusZero = Tile::kHasBias;
        }
        __syncthreads();
        Scan kept{
                limit,
                survivors,
                &shared.buffered,
                params.capacity,
                {},
                &shared.minusZero};
        if constexpr (kStreams) {
            if (params.vectorLoads) {
                scanStream(row, kept, wanted);
                return kept.limit;
            }
        }
        scanParts(row, kept, wanted);
        return kept.limit;
    }

    __device__ __forceinline__ void scanParts(
            uint32_t row,
            Scan& kept,
            uint32_t wanted) {
        constexpr uint32_t kTile = Threads * Tile::kItems;
        const uint32_t tiles = params.cols / kTile;
        uint32_t begin = 0;
        for (uint32_t t = params.firstPart; t != 0 && t < tiles;
             t *= params.partGrowth) {
            kept.take(params, row, begin, t * kTile);
            __syncthreads();
            kept.limit = lowered(kept.limit, wanted);
            begin = t * kTile;
        }
        kept.take(params, row, begin, params.cols);
        __syncthreads();
    }

    __device__ __forceinline__ void scanStream(
            uint32_t row,
            Scan& kept,
            uint32_t wanted) {
        const auto* keys =
                static_cast<const T*>(params.keys) + params.rowStride * row;
        Stream stream{
                slots, params.stages, keys, 0, params.cols / Stream::kTile};
        typename Stream::Tile tile(params, row);
        stream.begin();
        uint32_t lowerAt = params.firstPart;
        for (uint32_t t = 0; t < stream.numTiles; ++t) {
            if (t == lowerAt && t != 0) {
                __syncthreads();
                kept.limit = lowered(kept.limit, wanted);
                lowerAt *= params.partGrowth;
            }
            stream.read(t, tile);
            kept.admit(tile);
            stream.request(t + params.stages);
        }
        kept.take(params, row, stream.column(stream.numTiles), params.cols);
        __syncthreads();
    }

    /// A limit that `wanted` of the survivors so far are not above.
    __device__ __forceinline__ uint64_t
    lowered(uint64_t limit, uint32_t wanted) {
        const uint32_t count = shared.buffered;
        const uint32_t most = wanted + wanted / 8 + 8;
        if (count > most && count <= params.capacity) {
            const auto forEach = [&](auto take) {
                for (uint32_t i = threadIdx.x; i < count; i += Threads) {
                    take(survivors[i]);
                }
            };
            limit = Narrow{shared.sample}.limit(forEach, wanted, most);
        }
        // All have read the count.
        __syncthreads();
        return limit;
    }

    /// The sample promised too much or too little: see rareCount in
    /// ThresholdPlan.cpp. Out of line and static, so that it costs the others
    /// no registers.
    __device__ static __noinline__ uint64_t scanExactly(
            SharedStorage& shared,
            uint64_t* survivors,
            const ThresholdParams& params,
            uint32_t row,
            uint32_t wanted) {
        __syncthreads();
        const uint64_t limit = exactLimit<Tile, Threads>(
                shared.sample, params, row, wanted, params.capacity);
        if (threadIdx.x == 0) {
            shared.buffered = 0;
        }
        __syncthreads();
        Scan{limit,
             survivors,
             &shared.buffered,
             params.capacity,
             {},
             &shared.minusZero}
                .take(params, row, 0, params.cols);
        __syncthreads();
        return limit;
    }
};

template <class T, class Tile, int Threads, int Room>
__global__ void __launch_bounds__(
        Threads,
        wholeRowBlocks(Threads, Room, !Tile::kHasBias))
        wholeRowsKernel(const __grid_constant__ ThresholdParams params) {
    using Body = WholeRowsBody<T, Tile, Threads, Room>;
    extern __shared__ __align__(128) uint64_t memory[];
    auto& shared = *reinterpret_cast<typename Body::SharedStorage*>(memory);
    uint64_t* slots = memory + Body::kStorageWords;
    Body{shared,
         reinterpret_cast<KeyPack<T>*>(slots),
         slots + Body::streamWords(params.stages),
         params}
            .run(blockIdx.x);
}

} // namespace faiss_bits

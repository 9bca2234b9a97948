/// The kernels for few rows: the limit of every row, and the scan with each
/// row split over many blocks (kernels/survivors finishes the rows). What the
/// blocks of a row share is one number, the limit, so that a row may be cut as
/// finely as the device asks for (cf. Hanak 2023, 5.4.2, where every part
/// leaves its own k best).
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/TileStream.cuh"
#include "kernels/select/RowSpan.h"
#include "kernels/select/threshold/Misled.cuh"
#include "kernels/select/threshold/RowSample.cuh"
#include "kernels/select/threshold/RowSurvivors.cuh"
#include "kernels/select/threshold/SecondPlaces.h"

namespace faiss_bits {

/// Clears the counts of a row, and writes limits[row] or, where several blocks
/// draw the sample of a row, the least of its groups. params.sampleParts blocks
/// a row, and behind them as many for the second sample where it is drawn, too;
/// or for that alone, of rows that the first one misled.
template <class Tile, int Threads>
struct SampleLimitBody {
    using Sample = RowSample<Tile, Threads>;
    static constexpr int kRuns = Threads / Sample::kRunThreads; // at a time

    union SharedStorage {
        typename Sample::SharedStorage sample;
        uint64_t drawn[kRuns][kSampleRun];
    };

    SharedStorage& shared;
    const ThresholdParams& params;

    __device__ void run(uint32_t block) {
        const bool drawsBoth = params.sampledAgain != nullptr;
        const bool isAgain =
                params.isAgain || (drawsBoth && block >= gridDim.x / 2);
        block -= drawsBoth && isAgain ? gridDim.x / 2 : 0;
        const uint32_t row = block / params.sampleParts;
        const uint32_t part = block % params.sampleParts;
        if (params.isAgain) {
            waitForPrevious();
            if (misledBy(params, params.counts[row]) == Misled::No) {
                return;
            }
        }
        if (!isAgain && part == 0 && threadIdx.x == 0) {
            params.counts[row] = 0;
            if (params.countsAgain) {
                params.countsAgain[row] = 0;
            }
        }
        if (params.samplePlaces == 0) {
            if (threadIdx.x == 0) {
                params.limits[row] = kNoEntry;
            }
            return;
        }
        uint64_t least[kSampleItems];
        ThresholdParams drawn = params;
        if (drawsBoth && isAgain) {
            drawn.samplePlaces =
                    placesBeside(params.samplePlaces, params.sampleParts);
        }
        Sample::draw(
                drawn,
                params.firstRow + row,
                part,
                params.sampleParts,
                isAgain,
                least);
        // The scan's first reads must not delay those of the sample.
        allowNext();
        if (params.sampleParts > 1) {
            const int groups = kSampledGroups / params.sampleParts;
            Sample::leave(
                    shared.drawn,
                    params.sampleParts,
                    least,
                    (drawsBoth && isAgain ? params.sampledAgain
                                          : params.sampled) +
                            size_t(row) * kSampledGroups + part * groups);
            return;
        }
        const uint64_t limit = Sample{shared.sample}.limit(least, params);
        if (threadIdx.x == 0) {
            params.limits[row] = limit;
        }
    }
};

/// Adds the survivors of one segment to those of its row. Unaligned: rows begin
/// at any address, as in WholeRowsBody.
template <class T, class Tile, bool Unaligned>
struct SplitRowsBody {
    static constexpr uint32_t kWarps = kSplitThreads / kWarpSize;
    using Sample = RowSample<Tile, kSplitThreads>;
    using Stream = TileStream<T, kSplitThreads, Unaligned>;
    static constexpr bool kStreams = !Tile::kHasBias;
    static_assert(kStreams || !Unaligned);
    static constexpr int kStages = 3;

    struct SharedStorage {
        alignas(128)
                KeyPack<T> slots[kStreams ? kStages * Stream::kStagePacks : 1];
        union {
            typename Sample::SharedStorage sample;
            uint64_t stage[kMaxStage];
            uint64_t held[kWarps][kMostHeldOfWarp];
        };
        uint32_t staged;
        uint32_t base;
    };

    /// To the row's survivors, without the stage of the block. A place there
    /// takes a turn of all warps of the row: each gathers some first, unless a
    /// tile has more.
    struct ToGlobal {
        static constexpr bool kIsDirect = true;

        uint32_t* count;
        uint64_t* survivors;
        uint32_t capacity;
        uint64_t* held; // of the warp, [kMostHeldOfWarp]; nullptr: none
        uint32_t numHeld = 0;
        // The list is full: the row will be read again, and what is left of
        // it now is of no use.
        bool isFull = false;

        template <class AnyTile>
        __device__ __forceinline__ void operator()(
                const AnyTile& tile,
                uint32_t pending) {
            const uint32_t lane = threadIdx.x % kWarpSize;
            const uint32_t mine = __popc(pending);
            const uint32_t total = __reduce_add_sync(kFullWarp, mine);
            if (held && total <= kMostHeldOfWarp) {
                hold(tile, pending, mine, total);
                return;
            }
            uint32_t slot = take(count, total);
            isFull = slot >= capacity && total > 0;
            // Lanes write neighbouring places: many may survive.
#pragma unroll 4
            for (int i = 0; i < AnyTile::kItems; ++i) {
                const bool survives = (pending >> i & 1) != 0;
                const uint32_t lanes = __ballot_sync(kFullWarp, survives);
                const uint32_t mine = slot + __popc(lanes & ((1u << lane) - 1));
                if (survives && mine < capacity) {
                    survivors[mine] = tile.entry(i);
                }
                slot += __popc(lanes);
            }
        }

        /// Writes what the warp has gathered.
        __device__ __forceinline__ void flush() {
            if (numHeld > 0) {
                isFull = write(count, survivors, capacity, held, numHeld);
                numHeld = 0;
            }
        }

       private:
        /// Places for so many entries of the warp: the first of them.
        __device__ __forceinline__ static uint32_t take(
                uint32_t* count,
                uint32_t total) {
            uint32_t slot = 0;
            if (threadIdx.x % kWarpSize == 0) {
                slot = atomicAdd(count, total);
            }
            return __shfl_sync(kFullWarp, slot, 0);
        }

        /// Returns whether the list is full. Out of line, so that it costs the
        /// others no registers.
        __device__ __noinline__ static bool write(
                uint32_t* count,
                uint64_t* survivors,
                uint32_t capacity,
                const uint64_t* held,
                uint32_t numHeld) {
            __syncwarp();
            const uint32_t slot = take(count, numHeld);
            for (uint32_t i = threadIdx.x % kWarpSize; i < numHeld;
                 i += kWarpSize) {
                if (slot + i < capacity) {
                    survivors[slot + i] = held[i];
                }
            }
            __syncwarp();
            return slot >= capacity;
        }

        template <class AnyTile>
        __device__ __forceinline__ void hold(
                const AnyTile& tile,
                uint32_t pending,
                uint32_t mine,
                uint32_t total) {
            if (numHeld + total > kMostHeldOfWarp) {
                flush();
            }
            uint64_t* to = held + numHeld + (inclusiveSum(mine) - mine);
            while (pending != 0) {
                *to++ = tile.entry(__ffs(pending) - 1);
                pending &= pending - 1;
            }
            numHeld += total;
        }

        __device__ __forceinline__ static uint32_t inclusiveSum(
                uint32_t value) {
#pragma unroll
            for (int by = 1; by < kWarpSize; by *= 2) {
                const uint32_t other = __shfl_up_sync(kFullWarp, value, by);
                value += threadIdx.x % kWarpSize >= by ? other : 0;
            }
            return value;
        }
    };

    SharedStorage& shared;
    const ThresholdParams& params;

    __device__ void run(uint32_t block) {
        const uint32_t row = block / params.splits;
        const uint32_t split = block % params.splits;
        uint32_t begin = split * params.segment;
        uint32_t end = min(params.cols - begin, params.segment) + begin;
        const uint32_t rowOfKeys = params.firstRow + row;

        Misled misled = Misled::No;
        if (params.isAgain) {
            waitForPrevious();
            misled = misledBy(params, params.counts[row]);
            if (misled == Misled::No) {
                return;
            }
        }
        const T* keys = static_cast<const T*>(params.keys) +
                params.rowStride * rowOfKeys;
        bool streams = kStreams && params.vectorLoads;
        uint32_t headEnd = 0;
        if constexpr (Unaligned) {
            const RowSpan span(
                    reinterpret_cast<uintptr_t>(keys),
                    sizeof(T),
                    params.cols,
                    Stream::kTile,
                    split,
                    params.segment);
            begin = span.begin;
            end = span.end;
            headEnd = span.headEnd;
            streams = true;
        }
        Stream stream{
                shared.slots,
                kStages,
                keys,
                begin,
                streams ? (end - begin) / Stream::kTile : 0};
        if (threadIdx.x == 0) {
            shared.staged = 0;
        }
        // The keys were there before the sample was drawn.
        if constexpr (kStreams) {
            stream.begin();
        }
        waitForPrevious();
        allowNext();
        const uint64_t limit = limitOf(row, split, misled);
        uint32_t* count =
                (params.isAgain ? params.countsAgain : params.counts) + row;
        __syncthreads();
        uint64_t* survivors = params.survivors + size_t(row) * params.capacity;
        RowSurvivors<Tile, !kStreams, ToGlobal> kept{
                limit,
                shared.stage,
                &shared.staged,
                uint32_t(params.stage),
                {count,
                 survivors,
                 params.capacity,
                 params.stage > 0 ? nullptr
                                  : shared.held[threadIdx.x / kWarpSize]}};
        if constexpr (kStreams) {
            typename Stream::Tile tile(params, rowOfKeys);
            for (uint32_t t = 0; t < stream.numTiles && !kept.overflow.isFull;
                 ++t) {
                stream.read(t, tile);
                kept.admit(tile);
                stream.request(t + kStages);
            }
        }
        kept.take(params, rowOfKeys, stream.column(stream.numTiles), end);
        if constexpr (Unaligned) {
            kept.take(params, rowOfKeys, 0, headEnd);
        }
        if (params.stage == 0) {
            kept.overflow.flush();
            return;
        }
        __syncthreads();
        addStaged(count, survivors);
    }

   private:
    /// Where several blocks drew the sample, every block finds the limit: that
    /// takes less time than to have one find it and the others wait.
    __device__ __forceinline__ uint64_t
    limitOf(uint32_t row, uint32_t split, Misled misled) {
        if (params.sampleParts == 1 && !params.isAgain) {
            return params.limits[row];
        }
        uint64_t limit;
        if (params.isAgain) {
            limit = limitAgain(shared.sample, params, row, moreSteps(misled));
        } else {
            uint64_t least[kSampleItems];
            takeSampled(params, row, least);
            limit = Sample{shared.sample}.limitOfParts(least, params);
        }
        if (split == 0 && threadIdx.x == 0) {
            params.limits[row] = limit;
        }
        return limit;
    }

    /// A second sample that is not there every block draws. Out of line and
    /// static, so that it costs the others no registers.
    __device__ static __noinline__ uint64_t limitAgain(
            typename Sample::SharedStorage& storage,
            const ThresholdParams& params,
            uint32_t row,
            int more) {
        uint64_t least[kSampleItems];
        if (params.sampled) {
            takeSampled(params, row, least);
            return Sample{storage}.limitOfParts(least, params, more);
        }
        Sample::draw(params, params.firstRow + row, 0, 1, true, least);
        return Sample{storage}.limit(least, params, more);
    }

    __device__ __forceinline__ static void takeSampled(
            const ThresholdParams& params,
            uint32_t row,
            uint64_t (&least)[kSampleItems]) {
        const uint64_t* sampled = params.sampled + size_t(row) * kSampledGroups;
#pragma unroll
        for (int i = 0; i < kSampleItems; ++i) {
            least[i] = __ldcg(sampled + i * kSplitThreads + threadIdx.x);
        }
    }

    __device__ __forceinline__ void addStaged(
            uint32_t* count,
            uint64_t* survivors) {
        const uint32_t staged = min(shared.staged, uint32_t(params.stage));
        if (staged == 0) {
            return;
        }
        if (threadIdx.x == 0) {
            shared.base = atomicAdd(count, staged);
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < staged; i += kSplitThreads) {
            if (shared.base + i < params.capacity) {
                survivors[shared.base + i] = shared.stage[i];
            }
        }
    }
};

template <class Tile, int Threads>
__global__ void __launch_bounds__(Threads)
        sampleLimitKernel(const __grid_constant__ ThresholdParams params) {
    using Body = SampleLimitBody<Tile, Threads>;
    __shared__ typename Body::SharedStorage shared;
    Body{shared, params}.run(blockIdx.x);
}

template <class T, class Tile, bool Unaligned>
__global__ void __launch_bounds__(kSplitThreads, kSplitBlocks)
        splitRowsKernel(const __grid_constant__ ThresholdParams params) {
    using Body = SplitRowsBody<T, Tile, Unaligned>;
    extern __shared__ __align__(128) uint64_t memory[];
    auto& shared = *reinterpret_cast<typename Body::SharedStorage*>(memory);
    Body{shared, params}.run(blockIdx.x);
}

} // namespace faiss_bits

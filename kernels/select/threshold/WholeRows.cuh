/// One block a row, for many rows: sample, scan and finish in one kernel.
///
/// Bound by: the read of the keys. The blocks of a multiprocessor are at
/// different places of their rows, so that one sorts while others read.
#pragma once

#include "kernels/device/KeepEntries.cuh"
#include "kernels/device/TileStream.cuh"
#include "kernels/select/RowSpan.h"
#include "kernels/select/threshold/Misled.cuh"
#include "kernels/select/threshold/RowSample.cuh"
#include "kernels/select/threshold/RowSurvivors.cuh"
#include "kernels/survivors/RowFinish.cuh"

namespace faiss_bits {

/// Room: entries that are sorted at the end, at least k. Unaligned: rows begin
/// at any address and stream nevertheless. A kernel of its own, as the question
/// cost aligned rows up to 5%.
template <class T, class Tile, int Threads, int Room, bool Unaligned>
struct WholeRowsBody {
    using Sample = RowSample<Tile, Threads>;
    using Narrow = BlockNarrow<Threads>;
    using Finish = RowFinish<T, ThresholdParams, Threads, Room>;
    using Stream = TileStream<T, Threads, Unaligned, true>;
    static constexpr bool kStreams = !Tile::kHasBias;
    static_assert(kStreams || !Unaligned);

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
        // Where a sample promised too much (see rareSum in SampleChoice.cpp)
        // another one is drawn, and then none.
        for (int turn = params.samplePlaces > 0 ? 0 : 2; turn < 3; ++turn) {
            limit = scan(row, turn);
            if (shared.buffered >= wanted()) {
                break;
            }
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

   protected:
    /// What the buffer had no room for, of the tile that its warp stopped at.
    struct Stop {
        uint32_t pending = 0;

        template <class AnyTile>
        __device__ __forceinline__ void operator()(
                const AnyTile&,
                uint32_t left) {
            pending = left;
        }
    };
    using Scan = RowSurvivors<Tile, false, Stop>;

    /// Tiles that every thread loads when it needs them.
    struct LoadedTiles {
        Tile tile;
        uint32_t begin;
        uint32_t end;

        __device__ __forceinline__ const Tile& read(uint32_t t) {
            tile.load(begin + t * Threads * Tile::kItems, end);
            return tile;
        }
        __device__ __forceinline__ const Tile& readTail() {
            return tile;
        }
        __device__ __forceinline__ void next(uint32_t) const {}
        __device__ __forceinline__ static constexpr bool hasTail() {
            return false;
        }
    };

    /// What a row that begins at any address has before its first tile: a key
    /// of each of the first threads, which is on its way while the sample is
    /// drawn.
    struct HeadTile {
        static constexpr int kItems = 1;
        static constexpr bool kHasBias = false;
        uint32_t firstColumn = 0;

        T key;
        float value; // NaN for threads that have none
        bool isThere;

        __device__ __forceinline__ HeadTile(const Tile& tile, uint32_t headEnd)
                : isThere(threadIdx.x < headEnd) {
            key = T(__uint_as_float(0x7FC00000u));
            if (isThere) {
                key = __ldg(tile.row + threadIdx.x);
            }
            value = tile.adjust(key, 0);
        }
        __device__ __forceinline__ uint64_t entry(int) const {
            return makeEntry(orderedKey(value), threadIdx.x);
        }
        __device__ __forceinline__ bool isMinusZero(int) const {
            return Tile::isMinusZeroKey(key);
        }
        __device__ __forceinline__ uint32_t notAbove(uint64_t limit) const {
            return isThere && entry(0) <= limit ? 1u : 0u;
        }
        __device__ __forceinline__ bool anyUpTo(float limit) const {
            return value <= limit;
        }
        __device__ __forceinline__ uint32_t upTo(float limit) const {
            return isThere && value <= limit ? 1u : 0u;
        }
        __device__ __forceinline__ static constexpr bool clampsAt(uint32_t) {
            return false;
        }
    };

    struct StreamedTiles {
        Stream stream;
        typename Stream::Tile tile;

        __device__ __forceinline__ const typename Stream::Tile& read(
                uint32_t t) {
            stream.read(t, tile);
            return tile;
        }
        __device__ __forceinline__ const typename Stream::Tile& readTail() {
            stream.readTail(tile);
            return tile;
        }
        __device__ __forceinline__ void next(uint32_t t) {
            stream.request(t + stream.stages);
        }
        __device__ __forceinline__ bool hasTail() const {
            return stream.tailKeys > 0;
        }
    };

    __device__ __forceinline__ uint32_t wanted() const {
        return min(uint32_t(params.k), params.cols);
    }

    /// The limit of a turn; none but in the first two. The stream begins when
    /// the sample is drawn: its first tiles come while the limit is found.
    template <class BeginStream>
    __device__ __forceinline__ uint64_t
    limitOf(uint32_t row, int turn, const BeginStream& beginStream) {
        if (turn == 2) {
            beginStream();
            return kNoEntry;
        }
        const bool isAgain = turn > 0;
        uint64_t least[kSampleItems];
        Sample::draw(params, row, 0, 1, isAgain, least);
        beginStream();
        return Sample{shared.sample}.limit(
                least, params, isAgain ? moreSteps(Misled::TooFew) : 0);
    }

    __device__ __forceinline__ Scan begin(uint64_t limit) {
        if (threadIdx.x == 0) {
            shared.buffered = 0;
            shared.minusZero = Tile::kHasBias;
        }
        __syncthreads();
        return {limit,
                survivors,
                &shared.buffered,
                params.capacity,
                {},
                &shared.minusZero};
    }

    /// Returns the limit that it came to. Begins and ends with the block in
    /// step.
    __device__ __forceinline__ uint64_t scan(uint32_t row, int turn) {
        const auto findLimit = [&](const auto& beginStream) {
            return limitOf(row, turn, beginStream);
        };
        if constexpr (Unaligned) {
            return scanUnaligned(row, 0, params.cols, findLimit);
        } else if constexpr (kStreams) {
            if (params.vectorLoads) {
                return scanAligned(row, findLimit);
            }
        }
        // Rows that are too short to stream if they do not begin at multiples
        // of 16 bytes, too.
        constexpr uint32_t kTile = Threads * Tile::kItems;
        Scan kept = begin(findLimit([] {}));
        LoadedTiles tiles{Tile(params, row), 0, params.cols};
        takeTiles(
                kept,
                tiles,
                params.cols / kTile + (params.cols % kTile != 0),
                params.firstPart);
        return kept.limit;
    }

    template <class FindLimit>
    __device__ __forceinline__ uint64_t
    scanAligned(uint32_t row, const FindLimit& findLimit) {
        const auto* keys =
                static_cast<const T*>(params.keys) + params.rowStride * row;
        StreamedTiles tiles{
                {slots,
                 params.stages,
                 keys,
                 0,
                 params.cols / Stream::kTile,
                 params.cols % Stream::kTile},
                typename Stream::Tile(params, row)};
        Scan kept = begin(findLimit([&] { tiles.stream.begin(); }));
        takeTiles(kept, tiles, tiles.stream.numTiles, params.firstPart);
        return kept.limit;
    }

    /// Of a row, segment `split`. findLimit(beginStream) calls its argument
    /// once, when the stream's loads are in nobody's way.
    template <class FindLimit>
    __device__ __forceinline__ uint64_t scanUnaligned(
            uint32_t row,
            uint32_t split,
            uint32_t segment,
            const FindLimit& findLimit) {
        const auto* keys =
                static_cast<const T*>(params.keys) + params.rowStride * row;
        const RowSpan span(
                reinterpret_cast<uintptr_t>(keys),
                sizeof(T),
                params.cols,
                Stream::kTile,
                split,
                segment);
        StreamedTiles tiles{
                {slots,
                 params.stages,
                 keys,
                 span.begin,
                 span.numTiles,
                 span.end - span.tail},
                typename Stream::Tile(params, row)};
        const HeadTile head(Tile(params, row), span.headEnd);
        Scan kept = begin(findLimit([&] { tiles.stream.begin(); }));
        // An empty buffer has room for it (kLeastFusedRoom), one that other
        // warps fill has not.
        kept.admit(head);
        __syncthreads();
        takeTiles(kept, tiles, span.numTiles, params.firstPart);
        return kept.limit;
    }

    /// The block meets to lower its limit after `firstPart` tiles (0: never),
    /// partGrowth times as many, and so on, and whenever the buffer is full: a
    /// warp with no room for a survivor waits for the others there, so that no
    /// order of keys takes a second read of the row.
    template <class Tiles>
    __device__ __forceinline__ void takeTiles(
            Scan& kept,
            Tiles& tiles,
            uint32_t numTiles,
            uint32_t firstPart) {
        uint32_t part = firstPart == 0 ? numTiles : min(firstPart, numTiles);
        const uint32_t end = numTiles + (tiles.hasTail() ? 1 : 0);
        uint32_t t = 0;
        bool isStopped = false; // at tile t, the same in all lanes
        while (true) {
            if (isStopped &&
                kept.admit(
                        t < numTiles ? tiles.read(t) : tiles.readTail(),
                        kept.overflow.pending)) {
                tiles.next(t++);
                isStopped = false;
            }
            while (!isStopped && t < part) {
                if (!kept.admit(tiles.read(t))) {
                    isStopped = true;
                    break;
                }
                tiles.next(t++);
            }
            if (!isStopped && t == numTiles && t < end) {
                isStopped = !kept.admit(tiles.readTail());
                t += isStopped ? 0 : 1;
            }
            if (!__syncthreads_or(t < end)) {
                return;
            }
            kept.limit = lowered(kept.limit);
            part = min(uint64_t(part) * params.partGrowth, uint64_t(numTiles));
        }
    }

    /// A limit that k of the survivors so far are not above. Makes room in a
    /// full buffer.
    __device__ __forceinline__ uint64_t lowered(uint64_t limit) {
        const uint32_t count = shared.buffered;
        const uint32_t most = wanted() + wanted() / 8 + 8;
        if (count > params.capacity) {
            return makeRoom(shared, survivors, params.capacity, wanted());
        }
        if (count > most) {
            const auto forEach = [&](auto take) {
                for (uint32_t i = threadIdx.x; i < count; i += Threads) {
                    take(survivors[i]);
                }
            };
            limit = Narrow{shared.sample.narrow}.limit(forEach, wanted(), most);
        }
        // All have read the count.
        __syncthreads();
        return limit;
    }

    /// Leaves the `least` least of a full buffer and some more. Out of line and
    /// static, so that it costs the others no registers.
    __device__ static __noinline__ uint64_t makeRoom(
            SharedStorage& shared,
            uint64_t* survivors,
            uint32_t capacity,
            uint32_t least) {
        const auto forEach = [&](auto take) {
            for (uint32_t i = threadIdx.x; i < capacity; i += Threads) {
                take(survivors[i]);
            }
        };
        const uint64_t limit = Narrow{shared.sample.narrow}.limit(
                forEach, least, least + (capacity - least) / 4);
        if (threadIdx.x == 0) {
            shared.buffered = 0;
        }
        __syncthreads();
        keepEntries<Threads>(
                survivors, capacity, limit, survivors, &shared.buffered);
        return limit;
    }
};

template <class T, class Tile, int Threads, int Room, bool Unaligned>
__global__ void __launch_bounds__(
        Threads,
        wholeRowBlocks(Threads, Room, !Tile::kHasBias))
        wholeRowsKernel(const __grid_constant__ ThresholdParams params) {
    using Body = WholeRowsBody<T, Tile, Threads, Room, Unaligned>;
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

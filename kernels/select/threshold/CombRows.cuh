/// One block a row, for many rows of some thousand columns: one read, and the
/// limit from the first tile of it, which spans the row (CombTile.cuh). A
/// sample would be read before, while nothing else of the block is in flight;
/// and no row needs a second read, as k keys of the first tile are not above
/// the limit.
///
/// Bound by: the read of the keys, and barriers: of the multiprocessor's
/// blocks some must read while others search or sort.
#pragma once

#include "kernels/device/KeepEntries.cuh"
#include "kernels/device/Narrow.cuh"
#include "kernels/select/threshold/CombTile.cuh"
#include "kernels/select/threshold/ThresholdParams.h"
#include "kernels/survivors/RowFinish.cuh"

namespace faiss_bits {

/// Room: entries that are sorted at the end, at least k.
template <class T, int Threads, int Room>
struct CombRowsBody {
    using Narrow = BlockNarrow<Threads>;
    using Finish = RowFinish<T, ThresholdParams, Threads, Room>;
    using Tile = CombTile<T, Threads>;
    using Edges = CombEdges<T>;
    using Span = CombSpan<T>;
    static_assert(Threads >= int(Span::kLineKeys));
    /// Parts of a thread's keys, among whose least keys the limit is sought: at
    /// least twice k of a tile.
    static constexpr int kParts = Room <= 64 ? (Threads <= 64 ? 2 : 1) : 4;
    static constexpr int kStageBytes = Threads * Tile::kPacks * 16;

    struct SharedStorage {
        union {
            typename Narrow::SharedStorage narrow;
            typename Finish::SharedStorage finish;
        };
        uint32_t buffered;
        bool minusZero; // there may be such a survivor
    };

    /// Words of dynamic shared memory: the storage; the tiles, whose place the
    /// sort takes at the end; the survivors.
    static constexpr size_t kStorageWords =
            (sizeof(SharedStorage) + 127) / 128 * 16;
    __host__ __device__ static constexpr size_t tileWords(int stages) {
        const size_t words = size_t(stages) * kStageBytes / 8;
        return words > Finish::kRoomWords ? words : Finish::kRoomWords;
    }
    __host__ __device__ static constexpr size_t words(
            int stages,
            size_t capacity) {
        return kStorageWords + tileWords(stages) + capacity;
    }

    SharedStorage& shared;
    KeyPack<T>* slots; // [stages][kPacks][Threads]
    uint64_t* survivors;
    const ThresholdParams& params;
    const T* row;
    Span span;
    uint32_t numTiles;
    uint64_t limit = kNoEntry;
    int current = 0; // stage

    __device__ __forceinline__ CombRowsBody(
            SharedStorage& storage,
            KeyPack<T>* tiles,
            uint64_t* room,
            const ThresholdParams& p,
            uint32_t number)
            : shared(storage),
              slots(tiles),
              survivors(room),
              params(p),
              row(static_cast<const T*>(p.keys) + p.rowStride * number),
              span(row, p.cols),
              numTiles((span.lines + Tile::kLines - 1) / Tile::kLines) {}

    __device__ __forceinline__ void run(uint32_t number) {
        for (int t = 0; t < params.stages; ++t) {
            request(t);
        }
        const Edges edges(row, params.cols, span, params.signMask);
        if (threadIdx.x == 0) {
            shared.buffered = 0;
            shared.minusZero = false;
        }
        Tile tile(params.signMask);
        read(0, tile);
        limit = firstLimit(tile);
        takeTiles(tile, edges);
        Finish{shared.finish}.run(
                params,
                number,
                survivors,
                shared.buffered,
                limit,
                reinterpret_cast<uint64_t*>(slots),
                !shared.minusZero);
    }

   private:
    static constexpr uint32_t kInfinityKey = 0xFF800000u;
    /// Every column: keys that are equal to the limit's are not above it.
    static constexpr uint64_t kAnyColumn = 0xFFFFFFFFu;

    __device__ __forceinline__ KeyPack<T>* stage() const {
        return slots + current * (Tile::kPacks * Threads) + threadIdx.x;
    }

    /// Enqueues the copy of a tile, if there is such a one, to the current
    /// stage, and goes on to the next stage.
    __device__ __forceinline__ void request(uint32_t t) {
        if (t < numTiles) {
            const T* from = row + span.headEnd +
                    threadIdx.x % Tile::kLinePacks * Tile::kPack;
            KeyPack<T>* to = stage();
#pragma unroll
            for (int v = 0; v < Tile::kPacks; ++v) {
                const uint32_t line = Tile::lineOf(v, t, numTiles);
                if (line < span.lines) {
                    asm volatile(
                            "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                                    uint32_t(__cvta_generic_to_shared(
                                            to + v * Threads))),
                            "l"(from + line * Tile::kLineKeys)
                            : "memory");
                }
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        current = current + 1 == params.stages ? 0 : current + 1;
    }

    /// Tile t, which is in the current stage; the last request was that of tile
    /// t + stages - 1. Every thread reads what it has copied, so that no
    /// barrier is needed.
    __device__ __forceinline__ void read(uint32_t t, Tile& tile) const {
        if (params.stages == 3) {
            asm volatile("cp.async.wait_group 2;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        }
        tile.take(stage(), span, t, numTiles);
    }

    __device__ __forceinline__ uint32_t wanted() const {
        return min(uint32_t(params.k), params.cols);
    }

    /// What k keys of the first tile are not above, and in random order hardly
    /// more. Begins and ends with the block in step.
    __device__ __forceinline__ uint64_t firstLimit(const Tile& tile) {
        uint64_t least[kParts];
#pragma unroll
        for (int p = 0; p < kParts; ++p) {
            // The number of the part makes them distinct.
            least[p] = tile.template hasGroup<kParts>(p)
                    ? makeEntry(
                              orderedKey(tile.template leastOf<kParts>(p)),
                              threadIdx.x * kParts + p)
                    : kNoEntry;
        }
        const auto all = [&](auto take) {
#pragma unroll
            for (int p = 0; p < kParts; ++p) {
                if (least[p] != kNoEntry) {
                    take(least[p]);
                }
            }
        };
        const uint32_t k = wanted();
        return Narrow{shared.narrow}.limit(all, k, k + k / 4 + 4) | kAnyColumn;
    }

    /// Bits of the values of a tile that survive.
    template <class AnyTile>
    __device__ __forceinline__ uint32_t surviving(const AnyTile& tile) const {
        const uint32_t key = entryKey(limit);
        // A limit may be no entry but the end of a bin (Narrow.cuh): beyond
        // infinity its key is no number's, and compares with none.
        if (uint32_t(limit) != uint32_t(kAnyColumn) || key > kInfinityKey) {
            return tile.notAbove(limit);
        }
        const float value = keyValue(key);
        return tile.anyUpTo(value) ? tile.upTo(value) : 0u;
    }

    /// Appends the survivors of one tile, those of `pending`. True if all had
    /// room in the buffer, in every lane of the warp; else what is left.
    template <class AnyTile>
    __device__ __forceinline__ bool append(
            const AnyTile& tile,
            uint32_t& pending) {
        if (!__any_sync(kFullWarp, pending != 0)) {
            return true;
        }
        if (pending != 0) {
            uint32_t slot =
                    atomicAdd(&shared.buffered, uint32_t(__popc(pending)));
            while (pending != 0 && slot < params.capacity) {
                const int i = __ffs(pending) - 1;
                const uint64_t e = tile.entry(i);
                survivors[slot++] = e;
                if (entryKey(e) == kZeroKey && tile.isMinusZero(i)) {
                    shared.minusZero = true;
                }
                pending &= pending - 1;
            }
        }
        return !__any_sync(kFullWarp, pending != 0);
    }

    /// The block meets to lower its limit after `firstPart` tiles (0: never),
    /// partGrowth times as many, and so on, and whenever the buffer is full: a
    /// warp with no room for a survivor waits for the others there, so that no
    /// order of keys takes a second read of the row.
    __device__ __forceinline__ void takeTiles(Tile& tile, const Edges& edges) {
        uint32_t part = params.firstPart == 0 ? numTiles
                                              : min(params.firstPart, numTiles);
        const uint32_t end = numTiles + 1; // the edges
        uint32_t t = 0;
        uint32_t pending = 0;
        bool isStopped = false; // at tile t, the same in all lanes
        while (true) {
            while (t < part) {
                read(t, tile);
                const uint32_t within = surviving(tile);
                pending = isStopped ? within & pending : within;
                isStopped = !append(tile, pending);
                if (isStopped) {
                    break;
                }
                request(t + params.stages);
                ++t;
            }
            if (t == numTiles) {
                const uint32_t within = surviving(edges);
                pending = isStopped ? within & pending : within;
                isStopped = !append(edges, pending);
                t += isStopped ? 0 : 1;
            }
            if (!__syncthreads_or(t < end)) {
                return;
            }
            limit = lowered();
            part = uint32_t(
                    min(uint64_t(part) * params.partGrowth,
                        uint64_t(numTiles)));
        }
    }

    /// A limit that k of the survivors so far are not above. Makes room in a
    /// full buffer.
    __device__ __forceinline__ uint64_t lowered() {
        const uint32_t count = shared.buffered;
        const uint32_t most = wanted() + wanted() / 8 + 8;
        if (count > params.capacity) {
            return makeRoom(shared, survivors, params.capacity, wanted());
        }
        uint64_t lower = limit;
        if (count > most) {
            const auto all = [&](auto take) {
                for (uint32_t i = threadIdx.x; i < count; i += Threads) {
                    take(survivors[i]);
                }
            };
            lower = Narrow{shared.narrow}.limit(all, wanted(), most) |
                    kAnyColumn;
            lower = lower < limit ? lower : limit;
        }
        // All have read the count.
        __syncthreads();
        return lower;
    }

    /// Leaves the `least` least of a full buffer and some more. Out of line and
    /// static, so that it costs the others no registers.
    __device__ static __noinline__ uint64_t makeRoom(
            SharedStorage& shared,
            uint64_t* survivors,
            uint32_t capacity,
            uint32_t least) {
        const auto all = [&](auto take) {
            for (uint32_t i = threadIdx.x; i < capacity; i += Threads) {
                take(survivors[i]);
            }
        };
        const uint64_t limit = Narrow{shared.narrow}.limit(
                all, least, least + (capacity - least) / 4);
        if (threadIdx.x == 0) {
            shared.buffered = 0;
        }
        __syncthreads();
        keepEntries<Threads>(
                survivors, capacity, limit, survivors, &shared.buffered);
        return limit;
    }
};

template <class T, int Threads, int Room>
__global__ void __launch_bounds__(Threads, 1024 / Threads)
        combRowsKernel(const __grid_constant__ ThresholdParams params) {
    using Body = CombRowsBody<T, Threads, Room>;
    extern __shared__ __align__(128) uint64_t memory[];
    auto& shared = *reinterpret_cast<typename Body::SharedStorage*>(memory);
    uint64_t* slots = memory + Body::kStorageWords;
    const uint32_t row = params.firstRow + blockIdx.x;
    Body{shared,
         reinterpret_cast<KeyPack<T>*>(slots),
         slots + Body::tileWords(params.stages),
         params,
         row}
            .run(row);
}

} // namespace faiss_bits

/// One block a row, for many rows of some thousand columns: one read, and the
/// limit from the first tile of it, which spans the row (CombTile.cuh). A
/// sample would be read before, while nothing else of the block is in flight;
/// and no row needs a second read, as k keys of the first tile are not above
/// the limit.
///
/// Bound by: the read of the keys, or for shorter rows instructions, about half
/// of which find the limit and sort.
#pragma once

#include <algorithm>

#include "kernels/device/KeepEntries.cuh"
#include "kernels/device/Narrow.cuh"
#include "kernels/select/threshold/CombReader.cuh"
#include "kernels/survivors/RowFinish.cuh"

namespace faiss_bits {

/// Room: entries that are sorted at the end, at least k.
template <class T, int Threads, int Room, bool Largest>
struct CombRowsBody : CombReader<T, Threads, Largest> {
    using Reader = CombReader<T, Threads, Largest>;
    using Narrow = BlockNarrow<Threads>;
    using Finish = RowFinish<T, ThresholdParams, Threads, Room>;
    using Reader::kPacks;
    using Reader::params;
    using Reader::slots;
    using Reader::span;
    using typename Reader::Edges;
    using typename Reader::Pack;
    /// Groups of a thread's packs, among whose least keys the limit is sought.
    static constexpr int kGroups = Room <= 64 ? (Threads <= 64 ? 2 : 1) : 4;

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
    static constexpr size_t kTileWords =
            std::max<size_t>(2 * Reader::kStagePacks * 2, Finish::kRoomWords);
    static constexpr size_t words(size_t capacity) {
        return kStorageWords + kTileWords + capacity;
    }

    SharedStorage& shared;
    uint64_t* survivors;
    uint64_t limit = kNoEntry;
    uint32_t enough = 0; // survivors of which the limit is lowered

    __device__ __forceinline__ CombRowsBody(
            SharedStorage& storage,
            Pack* tiles,
            uint64_t* room,
            const ThresholdParams& p,
            uint32_t number)
            : Reader(tiles, p, number), shared(storage), survivors(room) {}

    __device__ __forceinline__ void run(uint32_t number) {
        this->request(0);
        this->request(1);
        const Edges edges(*this);
        if (threadIdx.x == 0) {
            shared.buffered = 0;
            shared.minusZero = false;
        }
        limit = firstLimit();
        takeTiles(edges);
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
    __device__ __forceinline__ uint32_t wanted() const {
        return min(uint32_t(params.k), params.cols);
    }

    /// What k keys of the first tile are not above, and in random order hardly
    /// more. Begins and ends with the block in step.
    __device__ __forceinline__ uint64_t firstLimit() {
        this->wait();
        const Pack* packs = this->packsOf(0);
        uint32_t best[kPacks];
#pragma unroll
        for (int v = 0; v < kPacks; ++v) {
            best[v] =
                    Reader::load(packs + v * Threads).template best<Largest>();
        }
        uint64_t least[kGroups];
        if constexpr (sizeof(T) == 2 && kGroups == 4) {
            // Keys of even and odd places of two packs each.
#pragma unroll
            for (int g = 0; g < kGroups; ++g) {
                const auto value = [&](int v) {
                    return g % 2 == 0 ? Pack::template even<Largest>(best[v])
                                      : Pack::template odd<Largest>(best[v]);
                };
                least[g] = this->template leastOf<2>(
                        g / 2, Pack::kCount - 2 + g % 2, value);
            }
        } else {
#pragma unroll
            for (int g = 0; g < kGroups; ++g) {
                const auto value = [&](int v) {
                    return Pack::template valueOf<Largest>(best[v]);
                };
                least[g] = this->template leastOf<kGroups>(
                        g, Pack::kCount - 1, value);
            }
        }
        const auto all = [&](auto take) {
#pragma unroll
            for (int g = 0; g < kGroups; ++g) {
                if (least[g] != kNoEntry) {
                    take(least[g]);
                }
            }
        };
        const uint32_t k = wanted();
        return Narrow{shared.narrow}.limit(all, k, k + k / 4 + 4);
    }

    /// Room that is left in the buffer, the same in every lane of a warp.
    enum class Left { kEnough, kLittle, kNone };

    /// Appends `pending`; keyOf(i) and columnOf(i) say what they are. Where
    /// there was no room for all, `pending` is what is left. A lane takes the
    /// places of all its keys at once: lines of the best would queue for each
    /// otherwise.
    template <class KeyOf, class ColumnOf>
    __device__ __forceinline__ Left
    append(uint32_t& pending, const KeyOf& keyOf, const ColumnOf& columnOf) {
        if (!__any_sync(kFullWarp, pending != 0)) {
            return Left::kEnough;
        }
        uint32_t slot = 0;
        if (pending != 0) {
            slot = atomicAdd(&shared.buffered, __popc(pending));
            for (; pending != 0 && slot < params.capacity; ++slot) {
                const int i = __ffs(pending) - 1;
                const T key = keyOf(i);
                const uint64_t e = makeEntry(
                        orderedKey(Reader::inOrder(key)), columnOf(i));
                survivors[slot] = e;
                if (entryKey(e) == kZeroKey &&
                    __float_as_uint(toFloat(key)) == 0x80000000u) {
                    shared.minusZero = true;
                }
                pending &= pending - 1;
            }
        }
        if (!__any_sync(kFullWarp, slot >= enough)) {
            return Left::kEnough;
        }
        return __any_sync(kFullWarp, pending != 0) ? Left::kNone
                                                   : Left::kLittle;
    }

    __device__ __forceinline__ Left appendTile(uint32_t t, uint32_t& pending) {
        const auto* keys = reinterpret_cast<const T*>(this->packsOf(t));
        const uint32_t place = this->lines.placeOf(t);
        return append(
                pending,
                [&](int i) {
                    return keys
                            [i / Pack::kCount * (Threads * Pack::kCount) +
                             i % Pack::kCount];
                },
                [&](int i) {
                    return this->columnOf(i / Pack::kCount, place) +
                            i % Pack::kCount;
                });
    }

    __device__ __forceinline__ Left
    appendEdges(const Edges& edges, uint32_t& pending) {
        return append(
                pending,
                [&](int i) { return i == 0 ? edges.head : edges.tail; },
                [&](int i) { return (i == 0 ? 0 : span.tail) + threadIdx.x; });
    }

    /// The block meets to lower its limit after `firstPart` tiles (0: never),
    /// partGrowth times as many, and so on; and before that where more have
    /// passed than random rows let through, as neighbours that are alike do;
    /// and whenever the buffer is full. A warp that finds it so waits for the
    /// others there. So no order of keys takes a second read of the row.
    __device__ __forceinline__ void takeTiles(const Edges& edges) {
        const uint32_t numTiles = span.numTiles;
        uint32_t part = numTiles;
        if (params.firstPart > 0) {
            part = min(numTiles, params.firstPart);
        }
        const uint32_t usual = wanted() * part * 3 / 2 + 48;
        enough = min(usual, params.capacity);
        const uint32_t end = numTiles + 1; // the edges
        uint32_t t = 0;
        uint32_t pending = ~0u; // of tile t, less where it was stopped
        while (true) {
            Left left = Left::kEnough;
            while (t < part && left == Left::kEnough) {
                this->wait();
                // With the limit that is lower now, if it was stopped here.
                pending &= this->within(t, limit);
                left = appendTile(t, pending);
                if (left != Left::kNone) {
                    pending = ~0u;
                    this->request(t + 2);
                    ++t;
                }
            }
            if (t == numTiles && left != Left::kNone) {
                pending &= this->within(edges, limit);
                t += appendEdges(edges, pending) == Left::kNone ? 0 : 1;
            }
            const bool isLast = part == numTiles;
            const bool isEarly = __syncthreads_or(t < (isLast ? end : part));
            if (isLast && !isEarly) {
                return;
            }
            limit = lowered();
            enough = min(shared.buffered + usual, params.capacity);
            // All have read the count.
            __syncthreads();
            if (!isEarly) {
                part = min(part * params.partGrowth, numTiles);
            }
        }
    }

    /// A limit that k of the survivors so far are not above, if these are many
    /// more. Makes room in a full buffer.
    __device__ __forceinline__ uint64_t lowered() {
        const uint32_t count = shared.buffered;
        const uint32_t most = wanted() + wanted() / 8 + 8;
        if (count > params.capacity) {
            return makeRoom(shared, survivors, params.capacity, wanted());
        }
        return count > most ? lowered(shared, survivors, count, wanted(), most)
                            : limit;
    }

    /// Out of line and static, as it costs the others registers else.
    __device__ static __noinline__ uint64_t
    lowered(SharedStorage& shared,
            const uint64_t* survivors,
            uint32_t count,
            uint32_t least,
            uint32_t most) {
        const auto all = [&](auto take) {
            for (uint32_t i = threadIdx.x; i < count; i += Threads) {
                take(survivors[i]);
            }
        };
        return Narrow{shared.narrow}.limit(all, least, most);
    }

    /// Leaves the `least` least of a full buffer and some more.
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

template <class T, int Threads, int Room, bool Largest>
__global__ void __launch_bounds__(Threads, kCombThreads / Threads)
        combRowsKernel(const __grid_constant__ ThresholdParams params) {
    using Body = CombRowsBody<T, Threads, Room, Largest>;
    extern __shared__ __align__(128) uint64_t memory[];
    auto& shared = *reinterpret_cast<typename Body::SharedStorage*>(memory);
    uint64_t* slots = memory + Body::kStorageWords;
    const uint32_t row = params.firstRow + blockIdx.x;
    Body{shared,
         reinterpret_cast<typename Body::Pack*>(slots),
         slots + Body::kTileWords,
         params,
         row}
            .run(row);
}

} // namespace faiss_bits

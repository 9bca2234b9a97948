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
#include "kernels/select/threshold/CombTile.cuh"
#include "kernels/select/threshold/ThresholdParams.h"
#include "kernels/select/threshold/ThresholdPolicy.h"
#include "kernels/survivors/RowFinish.cuh"

namespace faiss_bits {

/// Room: entries that are sorted at the end, at least k.
template <class T, int Threads, int Room, bool Largest>
struct CombRowsBody {
    using Narrow = BlockNarrow<Threads>;
    using Finish = RowFinish<T, ThresholdParams, Threads, Room>;
    using Span = CombSpan<T>;
    using Pack = CombPack<T>;
    static constexpr int kPacks = kCombPacks;
    static constexpr int kItems = kPacks * Pack::kCount;
    static_assert(kItems <= 32, "a bit each");
    /// Threads that copy a line; lines of a tile, and those that lie together.
    static constexpr uint32_t kOfLine = Span::kLineBytes / 16;
    static constexpr uint32_t kTogether = Threads / kOfLine;
    static constexpr uint32_t kLines = kTogether * kPacks;
    static_assert(Threads >= int(Span::kLineKeys), "a thread for each edge key");
    /// Groups of a thread's packs, among whose least keys the limit is sought.
    static constexpr int kGroups = Room <= 64 ? (Threads <= 64 ? 2 : 1) : 4;
    static constexpr int kStagePacks = Threads * kPacks;

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
            std::max<size_t>(2 * kStagePacks * 2, Finish::kRoomWords);
    static constexpr size_t words(size_t capacity) {
        return kStorageWords + kTileWords + capacity;
    }

    SharedStorage& shared;
    Pack* slots; // [2][kPacks][Threads], two tiles
    uint64_t* survivors;
    const ThresholdParams& params;
    const T* row;
    Span span;
    uint32_t column;  // of this thread's first pack in tile 0
    uint32_t between; // lines from pack to pack of a tile
    int left;         // pack v of tile t is there if t + v * between < left
    const T* next;    // first pack of the tile that is requested next
    uint64_t limit = kNoEntry;

    __device__ __forceinline__ CombRowsBody(
            SharedStorage& storage,
            Pack* tiles,
            uint64_t* room,
            const ThresholdParams& p,
            uint32_t number)
            : shared(storage),
              slots(tiles),
              survivors(room),
              params(p),
              row(static_cast<const T*>(p.keys) + p.rowStride * number),
              span(row, p.cols, kLines),
              between(kTogether * span.numTiles) {
        const uint32_t line = threadIdx.x / kOfLine * span.numTiles;
        column = span.headEnd + line * Span::kLineKeys +
                threadIdx.x % kOfLine * Pack::kCount;
        left = int(span.lines) - int(line);
        next = row + column;
    }

    __device__ __forceinline__ void run(uint32_t number) {
        request(0);
        request(1);
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
    static constexpr uint32_t kInfinityKey = 0xFF800000u;

    __device__ __forceinline__ static float inOrder(T key) {
        return Largest ? -toFloat(key) : toFloat(key);
    }

    __device__ __forceinline__ uint32_t wanted() const {
        return min(uint32_t(params.k), params.cols);
    }

    /// This thread's packs of tile t, Threads apart.
    __device__ __forceinline__ Pack* packsOf(uint32_t t) const {
        return slots + t % 2 * kStagePacks + threadIdx.x;
    }

    __device__ __forceinline__ bool isThere(int v, uint32_t t) const {
        return int(t + v * between) < left;
    }

    __device__ __forceinline__ uint32_t columnOf(int v, uint32_t t) const {
        return column + (t + v * between) * Span::kLineKeys;
    }

    __device__ __forceinline__ static void copy(Pack* to, const T* from) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                             uint32_t(__cvta_generic_to_shared(to))),
                     "l"(from)
                     : "memory");
    }

    /// Enqueues the copy of tile t, if there is such a one. Tiles are requested
    /// in their order.
    __device__ __forceinline__ void request(uint32_t t) {
        if (t < span.numTiles) {
            Pack* to = packsOf(t);
            const uint32_t step = between * Span::kLineKeys;
            if (isThere(kPacks - 1, t)) {
#pragma unroll
                for (uint32_t v = 0; v < kPacks; ++v) {
                    copy(to + v * Threads, next + size_t(step) * v);
                }
            } else {
#pragma unroll 1
                for (uint32_t v = 0; v < kPacks; ++v) {
                    if (isThere(v, t)) {
                        copy(to + v * Threads, next + size_t(step) * v);
                    } else {
                        reinterpret_cast<uint4&>(to[v * Threads]) = {
                                Pack::kNans,
                                Pack::kNans,
                                Pack::kNans,
                                Pack::kNans};
                    }
                }
            }
            next += Span::kLineKeys;
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }

    /// Waits for a tile; the last request was that of the next one. Every
    /// thread reads what it has copied, so that no barrier is needed.
    __device__ __forceinline__ static void wait() {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
    }

    __device__ __forceinline__ static Pack load(const Pack* from) {
        Pack pack;
        reinterpret_cast<uint4&>(pack) = reinterpret_cast<const uint4&>(*from);
        return pack;
    }

    /// What k keys of the first tile are not above, and in random order hardly
    /// more. Begins and ends with the block in step.
    __device__ __forceinline__ uint64_t firstLimit() {
        wait();
        const Pack* packs = packsOf(0);
        uint32_t best[kPacks];
#pragma unroll
        for (int v = 0; v < kPacks; ++v) {
            best[v] = load(packs + v * Threads).template best<Largest>();
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
                least[g] = leastOf<2>(g / 2, Pack::kCount - 2 + g % 2, value);
            }
        } else {
#pragma unroll
            for (int g = 0; g < kGroups; ++g) {
                const auto value = [&](int v) {
                    return Pack::template valueOf<Largest>(best[v]);
                };
                least[g] = leastOf<kGroups>(g, Pack::kCount - 1, value);
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

    /// An entry that is not below the least of every `Every`-th pack from
    /// `first` on: its key, and the column of place `last` of its pack, which
    /// it does not lie behind. These are distinct. Packs that are there come
    /// first.
    template <int Every, class ValueOf>
    __device__ __forceinline__ uint64_t
    leastOf(int first, int last, const ValueOf& valueOf) const {
        float least = valueOf(first);
        int from = first;
#pragma unroll
        for (int v = first + Every; v < kPacks; v += Every) {
            const float value = valueOf(v);
            // A number is less than NaN.
            if (value < least || (least != least && value == value)) {
                least = value;
                from = v;
            }
        }
        return isThere(first, 0)
                ? makeEntry(orderedKey(least), columnOf(from, 0) + last)
                : kNoEntry;
    }

    /// Bits of a tile's keys that may be within the limit: their value is not
    /// above the limit's, and not equal to it in packs behind its column.
    __device__ __forceinline__ uint32_t within(uint32_t t) const {
        const Pack* packs = packsOf(t);
        const uint32_t key = entryKey(limit);
        // A limit may be no entry but the end of a bin (Narrow.cuh): beyond
        // infinity its key is no number's, and compares with none.
        if (key > kInfinityKey) {
            uint32_t mask = 0;
#pragma unroll
            for (int v = 0; v < kPacks; ++v) {
                mask |= isThere(v, t) ? ((1u << Pack::kCount) - 1)
                                << (v * Pack::kCount)
                                      : 0;
            }
            return mask;
        }
        const float most = keyValue(key);
        uint32_t best = load(packs).template best<Largest>();
#pragma unroll
        for (int v = 1; v < kPacks; ++v) {
            best = Pack::template better<Largest>(
                    best,
                    load(packs + v * Threads).template best<Largest>());
        }
        uint32_t mask = 0;
        if (Pack::template valueOf<Largest>(best) <= most) {
            // Zero is one value: the float below it is not -0.
            const float less = keyValue(key == kZeroKey ? key - 2 : key - 1);
#pragma unroll
            for (int v = 0; v < kPacks; ++v) {
                const Pack pack = load(packs + v * Threads);
                const bool isLate = columnOf(v, t) > entryColumn(limit);
                const float bound = isLate ? less : most;
#pragma unroll
                for (int i = 0; i < Pack::kCount; ++i) {
                    const uint32_t bits = sizeof(T) == 4 ? pack.words[i % 4]
                            : i % 2 == 0
                            ? pack.words[i / 2] & 0xFFFFu
                            : pack.words[i / 2] >> 16;
                    mask |= inOrder(Pack::key(bits)) <= bound
                            ? 1u << (v * Pack::kCount + i)
                            : 0;
                }
            }
        }
        return mask;
    }

    /// Appends those of `pending` that are within the limit; keyOf(i) and
    /// columnOf(i) say what they are. True if all had room in the buffer, in
    /// every lane of the warp; else `pending` is what is left.
    template <class KeyOf, class ColumnOf>
    __device__ __forceinline__ bool append(
            uint32_t& pending,
            const KeyOf& keyOf,
            const ColumnOf& columnOf) {
        if (!__any_sync(kFullWarp, pending != 0)) {
            return true;
        }
        while (pending != 0) {
            const int i = __ffs(pending) - 1;
            const T key = keyOf(i);
            const uint64_t e = makeEntry(orderedKey(inOrder(key)), columnOf(i));
            if (e <= limit) {
                const uint32_t slot = atomicAdd(&shared.buffered, 1u);
                if (slot >= params.capacity) {
                    break;
                }
                survivors[slot] = e;
                if (entryKey(e) == kZeroKey &&
                    __float_as_uint(toFloat(key)) == 0x80000000u) {
                    shared.minusZero = true;
                }
            }
            pending &= pending - 1;
        }
        return !__any_sync(kFullWarp, pending != 0);
    }

    __device__ __forceinline__ bool appendTile(uint32_t t, uint32_t& pending) {
        const auto* keys = reinterpret_cast<const T*>(packsOf(t));
        return append(
                pending,
                [&](int i) {
                    return keys
                            [i / Pack::kCount * (Threads * Pack::kCount) +
                             i % Pack::kCount];
                },
                [&](int i) {
                    return columnOf(i / Pack::kCount, t) + i % Pack::kCount;
                });
    }

    /// Head and tail: a key of each for some threads, which are on their way
    /// from the beginning.
    struct Edges {
        T head;
        T tail;

        __device__ __forceinline__ explicit Edges(const CombRowsBody& body)
                : head(Pack::key(Pack::kNans)), tail(Pack::key(Pack::kNans)) {
            if (threadIdx.x < body.span.headEnd) {
                head = __ldg(body.row + threadIdx.x);
            }
            if (threadIdx.x < body.params.cols - body.span.tail) {
                tail = __ldg(body.row + body.span.tail + threadIdx.x);
            }
        }
    };

    __device__ __forceinline__ uint32_t within(const Edges& edges) const {
        const uint32_t key = entryKey(limit);
        const bool all = key > kInfinityKey;
        const float most = keyValue(key);
        const bool hasHead = threadIdx.x < span.headEnd &&
                (all || inOrder(edges.head) <= most);
        const bool hasTail = threadIdx.x < params.cols - span.tail &&
                (all || inOrder(edges.tail) <= most);
        return (hasHead ? 1u : 0u) | (hasTail ? 2u : 0u);
    }

    __device__ __forceinline__ bool appendEdges(
            const Edges& edges,
            uint32_t& pending) {
        return append(
                pending,
                [&](int i) { return i == 0 ? edges.head : edges.tail; },
                [&](int i) { return (i == 0 ? 0 : span.tail) + threadIdx.x; });
    }

    /// The block meets to lower its limit after `firstPart` tiles (0: never),
    /// partGrowth times as many, and so on, and before that after the first
    /// tile, where neighbours that are alike have let far more than k through;
    /// and whenever the buffer is full: a warp with no room for a survivor waits
    /// for the others there, so that no order of keys takes a second read of the
    /// row.
    __device__ __forceinline__ void takeTiles(const Edges& edges) {
        const uint32_t numTiles = span.numTiles;
        bool isFirst = params.firstPart > 0;
        uint32_t part = isFirst ? min(numTiles, 1u) : numTiles;
        const uint32_t end = numTiles + 1; // the edges
        uint32_t t = 0;
        uint32_t pending = 0;
        bool isStopped = false; // at tile t, the same in all lanes
        while (true) {
            while (t < part) {
                if (!isStopped) {
                    wait();
                    pending = within(t);
                }
                isStopped = !appendTile(t, pending);
                if (isStopped) {
                    break;
                }
                request(t + 2);
                ++t;
            }
            if (t == numTiles) {
                if (!isStopped) {
                    pending = within(edges);
                }
                isStopped = !appendEdges(edges, pending);
                t += isStopped ? 0 : 1;
            }
            if (!__syncthreads_or(t < end)) {
                return;
            }
            limit = lowered(isFirst ? 2 * wanted() + 32 : 0);
            uint64_t wantedPart = uint64_t(part) * params.partGrowth;
            if (isFirst) {
                wantedPart = params.firstPart;
            }
            part = uint32_t(min(wantedPart, uint64_t(numTiles)));
            isFirst = false;
        }
    }

    /// A limit that k of the survivors so far are not above, if they are more
    /// than `enough`. Makes room in a full buffer.
    __device__ __forceinline__ uint64_t lowered(uint32_t enough) {
        const uint32_t count = shared.buffered;
        const uint32_t most = wanted() + wanted() / 8 + 8;
        if (count > params.capacity) {
            return makeRoom(shared, survivors, params.capacity, wanted());
        }
        const uint64_t lower = count > max(most, enough)
                ? lowered(shared, survivors, count, wanted(), most)
                : limit;
        // All have read the count.
        __syncthreads();
        return lower;
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

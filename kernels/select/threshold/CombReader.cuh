/// What a block sees of a row by combs: tiles that span the row, on their way
/// to shared memory two at a time, and the least of them.
#pragma once

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/select/threshold/CombLines.h"
#include "kernels/select/threshold/CombTile.cuh"
#include "kernels/select/threshold/ThresholdParams.h"
#include "kernels/select/threshold/ThresholdPolicy.h"

namespace faiss_bits {

/// Every thread copies and reads its own packs only, so that no barrier is
/// needed.
template <class T, int Threads, bool Largest>
struct CombReader {
    using Span = CombSpan<T>;
    using Pack = CombPack<T>;
    static constexpr int kPacks = kCombPacks;
    static constexpr int kItems = kPacks * Pack::kCount;
    static_assert(kItems <= 32, "a bit each");
    static_assert(kPacks == 4, "a pack of each quarter");
    /// Threads that copy a line; lines of a tile, and those that lie together.
    static constexpr uint32_t kOfLine = Span::kLineBytes / 16;
    static constexpr uint32_t kTogether = Threads / kOfLine;
    static constexpr uint32_t kLines = kTogether * kPacks;
    static_assert(
            Threads >= int(Span::kLineKeys),
            "a thread for each edge key");
    static constexpr int kStagePacks = Threads * kPacks;
    static constexpr uint32_t kInfinityKey = 0xFF800000u;

    Pack* slots; // [2][kPacks][Threads], two tiles
    const ThresholdParams& params;
    const T* row;
    Span span;
    CombLines lines;
    uint32_t column;  // of this thread's keys in the first line
    const char* from; // where these are

    __device__ __forceinline__
    CombReader(Pack* tiles, const ThresholdParams& p, uint32_t number)
            : slots(tiles),
              params(p),
              row(static_cast<const T*>(p.keys) + p.rowStride * number),
              span(row, p.cols, kLines),
              lines(span.numTiles, kTogether, threadIdx.x / kOfLine, number),
              column(span.headEnd + threadIdx.x % kOfLine * Pack::kCount),
              from(reinterpret_cast<const char*>(row + column)) {
        // Else it is made of the parameters again for every pack.
        asm("" : "+l"(from));
    }

    __device__ __forceinline__ static float inOrder(T key) {
        return Largest ? -toFloat(key) : toFloat(key);
    }

    /// This thread's packs of tile t, Threads apart.
    __device__ __forceinline__ Pack* packsOf(uint32_t t) const {
        return slots + t % 2 * kStagePacks + threadIdx.x;
    }

    __device__ __forceinline__ bool isThere(int v, uint32_t place) const {
        return lines.lineOf(v, place) < span.lines;
    }

    __device__ __forceinline__ uint32_t columnOf(int v, uint32_t place) const {
        return column + lines.lineOf(v, place) * Span::kLineKeys;
    }

    __device__ __forceinline__ static void copy(Pack* to, const char* from) {
        copyAsync(sharedAddress(to), from);
    }

    /// Enqueues the copy of tile t, if there is such a one.
    __device__ __forceinline__ void request(uint32_t t) {
        if (t < span.numTiles) {
            Pack* to = packsOf(t);
            const uint32_t place = lines.placeOf(t);
            const auto copyPack = [&](uint32_t v) {
                const uint32_t line = lines.lineOf(v, place);
                copy(to + v * Threads, from + size_t(line) * Span::kLineBytes);
            };
            if (isThere(kPacks - 1, place)) {
#pragma unroll
                for (uint32_t v = 0; v < kPacks; ++v) {
                    copyPack(v);
                }
            } else {
#pragma unroll 1
                for (uint32_t v = 0; v < kPacks; ++v) {
                    if (isThere(v, place)) {
                        copyPack(v);
                    } else {
                        reinterpret_cast<uint4&>(to[v * Threads]) = {
                                Pack::kNans,
                                Pack::kNans,
                                Pack::kNans,
                                Pack::kNans};
                    }
                }
            }
        }
        endCopies();
    }

    /// Waits for a tile; the last request was that of the next one. Every
    /// thread reads what it has copied, so that no barrier is needed.
    __device__ __forceinline__ static void wait() {
        waitForCopies<1>();
    }

    __device__ __forceinline__ static Pack load(const Pack* from) {
        Pack pack;
        reinterpret_cast<uint4&>(pack) = reinterpret_cast<const uint4&>(*from);
        return pack;
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
        const uint32_t place = lines.placeOf(0);
        return isThere(first, place)
                ? makeEntry(orderedKey(least), columnOf(from, place) + last)
                : kNoEntry;
    }

    /// Bits of a tile's keys within the limit, and of some that equal it: packs
    /// behind its column must be less.
    __device__ __forceinline__ uint32_t
    within(uint32_t t, uint64_t limit) const {
        const Pack* packs = packsOf(t);
        const uint32_t place = lines.placeOf(t);
        const uint32_t key = entryKey(limit);
        // A limit may be no entry but the end of a bin (Narrow.cuh): beyond
        // infinity its key is no number's, and compares with none.
        if (key > kInfinityKey) {
            uint32_t mask = 0;
#pragma unroll 1
            for (int i = 0; i < kItems; ++i) {
                const int v = i / Pack::kCount;
                const T* keys = reinterpret_cast<const T*>(packs + v * Threads);
                const uint64_t e = makeEntry(
                        orderedKey(inOrder(keys[i % Pack::kCount])),
                        columnOf(v, place) + i % Pack::kCount);
                mask |= isThere(v, place) && e <= limit ? 1u << i : 0;
            }
            return mask;
        }
        const float most = keyValue(key);
        uint32_t best = load(packs).template best<Largest>();
#pragma unroll
        for (int v = 1; v < kPacks; ++v) {
            best = Pack::template better<Largest>(
                    best, load(packs + v * Threads).template best<Largest>());
        }
        uint32_t mask = 0;
        if (Pack::template valueOf<Largest>(best) <= most) {
            // Zero is one value: the float below it is not -0.
            const float less = keyValue(key == kZeroKey ? key - 2 : key - 1);
#pragma unroll
            for (int v = 0; v < kPacks; ++v) {
                const Pack pack = load(packs + v * Threads);
                const bool isLate = columnOf(v, place) > entryColumn(limit);
                const float bound = isLate ? less : most;
#pragma unroll
                for (int i = 0; i < Pack::kCount; ++i) {
                    const uint32_t bits = sizeof(T) == 4 ? pack.words[i % 4]
                            : i % 2 == 0 ? pack.words[i / 2] & 0xFFFFu
                                         : pack.words[i / 2] >> 16;
                    mask |= inOrder(Pack::key(bits)) <= bound
                            ? 1u << (v * Pack::kCount + i)
                            : 0;
                }
            }
        }
        return mask;
    }

    /// Head and tail: a key of each for some threads, which are on their way
    /// from the beginning.
    struct Edges {
        T head;
        T tail;

        __device__ __forceinline__ explicit Edges(const CombReader& body)
                : head(Pack::key(Pack::kNans)), tail(Pack::key(Pack::kNans)) {
            if (threadIdx.x < body.span.headEnd) {
                head = __ldg(body.row + threadIdx.x);
            }
            if (threadIdx.x < body.params.cols - body.span.tail) {
                tail = __ldg(body.row + body.span.tail + threadIdx.x);
            }
        }
    };

    __device__ __forceinline__ uint32_t
    within(const Edges& edges, uint64_t limit) const {
        const uint32_t key = entryKey(limit);
        const bool all = key > kInfinityKey;
        const float most = keyValue(key);
        const bool hasHead = threadIdx.x < span.headEnd &&
                (all || inOrder(edges.head) <= most);
        const bool hasTail = threadIdx.x < params.cols - span.tail &&
                (all || inOrder(edges.tail) <= most);
        return (hasHead ? 1u : 0u) | (hasTail ? 2u : 0u);
    }
};

} // namespace faiss_bits

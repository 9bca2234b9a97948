/// A tile that spans its row: lines of memory at even distances, as the teeth
/// of a comb. So each tile is a sample of the row, which costs no read of its
/// own, and no slow rise or fall of keys leads it astray.
#pragma once

#include "kernels/device/KeyTile.cuh"

namespace faiss_bits {

/// The lines of a row that begins at any address. What is before the first one
/// (the head) and behind the last (the tail) is less than a line each.
template <class T>
struct CombSpan {
    static constexpr uint32_t kLineBytes = 128;
    static constexpr uint32_t kLineKeys = kLineBytes / sizeof(T);

    uint32_t headEnd; // the head is [0, headEnd)
    uint32_t lines;
    uint32_t tail; // the tail is [tail, cols)

    __device__ __forceinline__ CombSpan(const T* row, uint32_t cols) {
        const auto address = uint32_t(reinterpret_cast<uintptr_t>(row));
        headEnd = min((0u - address) % kLineBytes / uint32_t(sizeof(T)), cols);
        lines = (cols - headEnd) / kLineKeys;
        tail = headEnd + lines * kLineKeys;
    }
};

/// Line s * numTiles + t of the row is line s of tile t; eight threads copy one
/// to shared memory, and read what they have copied.
template <class T, int Threads>
struct CombTile {
    static constexpr int kItems = 16;
    static constexpr int kPack = KeyPack<T>::kCount;
    static constexpr int kPacks = kItems / kPack;
    static constexpr uint32_t kLineKeys = CombSpan<T>::kLineKeys;
    static constexpr uint32_t kLinePacks = kLineKeys / kPack;
    static constexpr uint32_t kLinesAtOnce = Threads / kLinePacks;
    static constexpr uint32_t kLines = kLinesAtOnce * kPacks;

    float values[kItems]; // in the order of "smallest first"; NaN behind the end
    uint32_t valid = 0;   // bit i: values[i] is one of the row's
    const KeyPack<T>* packs = nullptr; // this thread's, Threads apart
    uint32_t firstColumn = 0;
    uint32_t step = 0; // columns from pack to pack
    uint32_t signMask;

    __device__ __forceinline__ explicit CombTile(uint32_t sign)
            : signMask(sign) {}

    /// Line of this thread's v'th pack in tile t.
    __device__ __forceinline__ static uint32_t
    lineOf(int v, uint32_t t, uint32_t numTiles) {
        return (v * kLinesAtOnce + threadIdx.x / kLinePacks) * numTiles + t;
    }

    __device__ __forceinline__ void take(
            const KeyPack<T>* from,
            const CombSpan<T>& span,
            uint32_t t,
            uint32_t numTiles) {
        packs = from;
        firstColumn = span.headEnd + lineOf(0, t, numTiles) * kLineKeys +
                threadIdx.x % kLinePacks * kPack;
        step = kLinesAtOnce * numTiles * kLineKeys;
        valid = 0;
#pragma unroll
        for (int v = 0; v < kPacks; ++v) {
            const KeyPack<T> pack = packs[v * Threads];
            const bool isThere = lineOf(v, t, numTiles) < span.lines;
            valid |= isThere ? ((1u << kPack) - 1) << (v * kPack) : 0;
#pragma unroll
            for (int i = 0; i < kPack; ++i) {
                const float value = valueOf(pack.values[i]);
                values[v * kPack + i] =
                        isThere ? value : __uint_as_float(0x7FFFFFFFu);
            }
        }
    }

    __device__ __forceinline__ uint32_t column(int i) const {
        return firstColumn + i / kPack * step + i % kPack;
    }

    __device__ __forceinline__ uint64_t entry(int i) const {
        return makeEntry(orderedKey(valueOf(keyOf(i))), column(i));
    }

    __device__ __forceinline__ bool isMinusZero(int i) const {
        return __float_as_uint(toFloat(keyOf(i))) == 0x80000000u;
    }

    /// False only if upTo(limit) is 0: one compare a value.
    __device__ __forceinline__ bool anyUpTo(float limit) const {
        float least = values[0];
#pragma unroll
        for (int i = 1; i < kItems; ++i) {
            least = fminf(least, values[i]);
        }
        return least <= limit;
    }

    /// Bits of the numbers up to and including `limit`.
    __device__ __forceinline__ uint32_t upTo(float limit) const {
        uint32_t mask = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            mask |= values[i] <= limit ? 1u << i : 0u;
        }
        return mask & valid;
    }

    /// Bits of the entries up to and including `limit`.
    __device__ __forceinline__ uint32_t notAbove(uint64_t limit) const {
        uint32_t mask = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint64_t e = makeEntry(orderedKey(values[i]), column(i));
            mask |= e <= limit ? 1u << i : 0u;
        }
        return mask & valid;
    }

    /// Of the group'th of `Groups` parts of this thread's values, which are
    /// fours of neighbours: the least key, or none.
    template <int Groups>
    __device__ __forceinline__ float leastOf(int group) const {
        float least = __uint_as_float(0x7FFFFFFFu);
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            if (i / 4 % Groups == group) {
                least = fminf(least, values[i]);
            }
        }
        return least;
    }

    /// Whether such a part has a key. Packs that are there come first.
    template <int Groups>
    __device__ __forceinline__ bool hasGroup(int group) const {
        return (valid >> (4 * group) & 1) != 0;
    }

   private:
    __device__ __forceinline__ float valueOf(T key) const {
        return __uint_as_float(__float_as_uint(toFloat(key)) ^ signMask);
    }

    __device__ __forceinline__ T keyOf(int i) const {
        return packs[i / kPack * Threads].values[i % kPack];
    }
};

/// Head and tail: a key of each for some threads, which is on its way from the
/// beginning.
template <class T>
struct CombEdges {
    static constexpr int kItems = 2;

    T keys[kItems];
    float values[kItems];
    uint32_t valid;
    uint32_t tail;

    __device__ __forceinline__ CombEdges(
            const T* row,
            uint32_t cols,
            const CombSpan<T>& span,
            uint32_t signMask)
            : tail(span.tail) {
        const bool isHead = threadIdx.x < span.headEnd;
        const bool isTail = threadIdx.x < cols - span.tail;
        valid = (isHead ? 1u : 0u) | (isTail ? 2u : 0u);
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            keys[i] = T(__uint_as_float(0x7FC00000u));
        }
        if (isHead) {
            keys[0] = __ldg(row + threadIdx.x);
        }
        if (isTail) {
            keys[1] = __ldg(row + span.tail + threadIdx.x);
        }
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            values[i] = __uint_as_float(
                    __float_as_uint(toFloat(keys[i])) ^ signMask);
        }
    }

    __device__ __forceinline__ uint64_t entry(int i) const {
        return i == 0 ? makeEntry(orderedKey(values[0]), threadIdx.x)
                      : makeEntry(orderedKey(values[1]), tail + threadIdx.x);
    }
    __device__ __forceinline__ bool isMinusZero(int i) const {
        const float key = toFloat(i == 0 ? keys[0] : keys[1]);
        return __float_as_uint(key) == 0x80000000u;
    }
    __device__ __forceinline__ bool anyUpTo(float limit) const {
        return upTo(limit) != 0;
    }
    __device__ __forceinline__ uint32_t upTo(float limit) const {
        return ((values[0] <= limit ? 1u : 0u) |
                (values[1] <= limit ? 2u : 0u)) &
                valid;
    }
    __device__ __forceinline__ uint32_t notAbove(uint64_t limit) const {
        return ((entry(0) <= limit ? 1u : 0u) |
                (entry(1) <= limit ? 2u : 0u)) &
                valid;
    }
};

} // namespace faiss_bits

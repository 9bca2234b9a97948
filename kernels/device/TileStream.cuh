/// Tiles on their way to shared memory while earlier ones are looked at: the
/// bytes in flight cost no registers, and they keep memory busy while other
/// blocks of the multiprocessor sort.
#pragma once

#include <type_traits>

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/device/KeyTile.cuh"

namespace faiss_bits {

/// A tile of keys without bias whose values are in shared memory.
template <class T>
struct StreamTile : KeyTile<T, false> {
    using Base = KeyTile<T, false>;
    static constexpr int kItems = Base::kItems;
    static constexpr int kPack = Base::kPack;
    static constexpr int kPacks = kItems / kPack; // of a thread

    const KeyPack<T>* packs = nullptr; // this thread's, blockDim.x apart

    using Base::Base;

    __device__ __forceinline__ void take(
            const KeyPack<T>* from,
            uint32_t begin) {
        packs = from;
        this->firstColumn = begin;
        this->valid = (1u << kItems) - 1;
#pragma unroll
        for (int v = 0; v < kPacks; ++v) {
            const KeyPack<T> pack = packs[v * blockDim.x];
#pragma unroll
            for (int i = 0; i < kPack; ++i) {
                this->values[v * kPack + i] = this->adjust(pack.values[i], 0);
            }
        }
    }

    /// The same of a tile that ends after `count` keys; NaN behind them.
    __device__ __forceinline__ void takePart(
            const KeyPack<T>* from,
            uint32_t begin,
            uint32_t count) {
        packs = from;
        this->firstColumn = begin;
        this->valid = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t at =
                    (i / kPack * blockDim.x + threadIdx.x) * kPack + i % kPack;
            this->values[i] = __uint_as_float(0x7FFFFFFFu);
            if (at < count) {
                this->values[i] = this->adjust(keyOf(i), 0);
                this->valid |= 1u << i;
            }
        }
    }

    __device__ __forceinline__ uint64_t entry(int i) const {
        return makeEntry(
                orderedKey(this->adjust(keyOf(i), 0)), this->column(i));
    }

    __device__ __forceinline__ bool isMinusZero(int i) const {
        return Base::isMinusZeroKey(keyOf(i));
    }

   protected:
    __device__ __forceinline__ T keyOf(int i) const {
        return packs[i / kPack * blockDim.x].values[i % kPack];
    }
};

/// The same of a row that begins at any address: what is not streamed of it
/// comes key by key, and KeyTile counts its columns so.
template <class T>
struct UnalignedStreamTile : StreamTile<T> {
    using Base = StreamTile<T>;
    using Base::kItems;
    using Base::kPack;

    using Base::Base;

    __device__ __forceinline__ uint32_t column(int i) const {
        return this->firstColumn + i / kPack * (blockDim.x * kPack) +
                threadIdx.x * kPack + i % kPack;
    }

    __device__ __forceinline__ uint64_t entry(int i) const {
        return makeEntry(
                orderedKey(this->adjust(this->keyOf(i), 0)), column(i));
    }

    __device__ __forceinline__ uint32_t notAbove(uint64_t limit) const {
        uint32_t mask = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t key = orderedKey(this->values[i]);
            mask |= makeEntry(key, column(i)) <= limit ? 1u << i : 0u;
        }
        return mask & this->valid;
    }
};

/// Two or three tiles of one block. Every thread copies and reads its own
/// values only, so that no barrier is needed. HasTail: what is left of a row
/// behind its last whole tile comes as one tile more, as a load of it when it
/// is needed would take as long as several tiles.
template <class T, int Threads, bool Unaligned, bool HasTail = false>
struct TileStream {
    using Tile = std::
            conditional_t<Unaligned, UnalignedStreamTile<T>, StreamTile<T>>;
    static constexpr uint32_t kTile = Threads * Tile::kItems;
    static constexpr int kStagePacks = Tile::kPacks * Threads;
    static constexpr int kStageBytes = kStagePacks * 16;

    KeyPack<T>* slots; // [stages][kPacks][Threads], aligned to 128 bytes
    int stages;        // 2 or 3
    const T* row;
    uint32_t firstColumn;  // of the first tile
    uint32_t numTiles;     // whole ones
    uint32_t tailKeys = 0; // behind them, if HasTail
    int current = 0;       // stage

    __device__ __forceinline__ void begin() {
        for (int t = 0; t < stages; ++t) {
            request(t);
        }
    }

    __device__ __forceinline__ uint32_t column(uint32_t t) const {
        return firstColumn + t * kTile;
    }

    /// Enqueues the copy of a tile, if there is such a one, to the current
    /// stage, and goes on to the next stage.
    __device__ __forceinline__ void request(uint32_t t) {
        if (t < numTiles) {
            const T* from = row + column(t) + threadIdx.x * Tile::kPack;
            KeyPack<T>* to = stage();
#pragma unroll
            for (int v = 0; v < Tile::kPacks; ++v) {
                copyAsync(
                        sharedAddress(to + v * Threads),
                        from + v * Threads * Tile::kPack);
            }
        } else if (HasTail && t == numTiles) {
            requestTail();
        }
        endCopies();
        current = current + 1 == stages ? 0 : current + 1;
    }

    /// Waits for tile t, which is in the current stage; the last request was
    /// that of tile t + stages - 1.
    __device__ __forceinline__ void read(uint32_t t, Tile& tile) const {
        wait();
        tile.take(stage(), column(t));
    }

    /// The same of the tail, tile numTiles.
    __device__ __forceinline__ void readTail(Tile& tile) const {
        wait();
        tile.takePart(stage(), column(numTiles), tailKeys);
    }

   private:
    __device__ __forceinline__ void wait() const {
        if (stages == 3) {
            waitForCopies<2>();
        } else {
            waitForCopies<1>();
        }
    }

    /// Whole packs, and of the row's last one what belongs to the row.
    __device__ __forceinline__ void requestTail() {
        const T* from = row + column(numTiles);
        KeyPack<T>* to = stage();
#pragma unroll
        for (int v = 0; v < Tile::kPacks; ++v) {
            const uint32_t at = (v * Threads + threadIdx.x) * Tile::kPack;
            if (at < tailKeys) {
                const uint32_t bytes = min(
                        uint32_t(16), (tailKeys - at) * uint32_t(sizeof(T)));
                copyAsync(sharedAddress(to + v * Threads), from + at, bytes);
            }
        }
    }

    __device__ __forceinline__ KeyPack<T>* stage() const {
        return slots + current * kStagePacks + threadIdx.x;
    }
};

} // namespace faiss_bits

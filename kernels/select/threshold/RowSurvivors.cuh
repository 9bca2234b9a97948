/// One reading of a segment of a row: what is no worse than a limit goes to a
/// buffer in shared memory, in any order. Nothing is compared among survivors
/// and the warps of a block do not wait for each other.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/KeyTile.cuh"
#include "kernels/device/Narrow.cuh"

namespace faiss_bits {

/// What the buffer has no room for goes to overflow(tile, pending), which the
/// lanes of a warp call together; a lane's bits of `pending` say which values.
/// With Overflow::kIsDirect there may be no buffer at all (capacity = 0).
/// Ahead: the next tile is loaded before this one is looked at.
template <class Tile, bool Ahead, class Overflow>
struct RowSurvivors {
    uint64_t limit; // the worst entry that survives
    uint64_t* buffer;
    uint32_t* buffered; // survivors so far; may go beyond the capacity
    uint32_t capacity;
    Overflow overflow;
    bool* minusZero = nullptr; // set, if given, when a survivor is -0

    __device__ __forceinline__ void take(
            const KeySource& params,
            uint32_t row,
            uint32_t begin,
            uint32_t end) {
        Tile tile(params, row);
        const uint32_t tileSize = blockDim.x * Tile::kItems;
        if constexpr (Ahead) {
            tile.load(begin, end);
        }
        for (uint32_t at = begin; at < end; at += tileSize) {
            Tile next = tile;
            if constexpr (Ahead) {
                if (at + tileSize < end) {
                    next.load(at + tileSize, end);
                }
            } else {
                tile.load(at, end);
            }
            if (!admit(tile) && overflow.isFull) {
                return;
            }
            if constexpr (Ahead) {
                tile = next;
            }
        }
    }

    /// Appends the survivors of one tile; of `among`, whose bits are values.
    /// True if all had room in the buffer, in every lane of the warp.
    template <class AnyTile>
    __device__ __forceinline__ bool admit(
            const AnyTile& tile,
            uint32_t among = ~0u) {
        const uint32_t pending = surviving(tile) & among;
        return !__any_sync(kFullWarp, pending != 0) || append(tile, pending);
    }

   private:
    static constexpr uint32_t kInfinityKey = 0xFF800000u;

    /// Bits of the values that survive.
    template <class AnyTile>
    __device__ __forceinline__ uint32_t surviving(const AnyTile& tile) const {
        const uint32_t at = tile.firstColumn;
        const uint32_t tileSize = blockDim.x * AnyTile::kItems;
        const uint32_t key = entryKey(limit);
        const uint32_t column = entryColumn(limit);
        // Behind the limit's column an equal key is too late, and before it,
        // in time. Zero is one value: the float below it is not -0.
        const bool late = at > column;
        const uint32_t last =
                late ? (key == kZeroKey ? key - 2 : key - 1) : key;
        const bool mixed = !late && column - at < tileSize;
        // A limit may be no entry but the end of a bin (Narrow.cuh): beyond
        // infinity its key is no number's, and compares with none.
        if (mixed || key > kInfinityKey || tile.clampsAt(key)) {
            return tile.notAbove(limit);
        }
        const float value = keyValue(last);
        return tile.anyUpTo(value) ? tile.upTo(value) : 0u;
    }

    /// Lanes with survivors are few: each takes its places by itself.
    template <class AnyTile>
    __device__ __forceinline__ bool append(
            const AnyTile& tile,
            uint32_t pending) {
        if constexpr (requires { Overflow::kIsDirect; }) {
            if (capacity == 0) {
                overflow(tile, pending);
                __syncwarp();
                return false;
            }
        }
        if (pending != 0) {
            uint32_t slot = atomicAdd(buffered, uint32_t(__popc(pending)));
            while (pending != 0 && slot < capacity) {
                const int i = __ffs(pending) - 1;
                const uint64_t entry = tile.entry(i);
                buffer[slot++] = entry;
                if constexpr (!AnyTile::kHasBias) {
                    if (minusZero && entryKey(entry) == kZeroKey &&
                        tile.isMinusZero(i)) {
                        *minusZero = true;
                    }
                }
                pending &= pending - 1;
            }
        }
        const bool hadRoom = !__any_sync(kFullWarp, pending != 0);
        if (!hadRoom) {
            overflow(tile, pending);
        }
        // The next loads are those of a whole warp.
        __syncwarp();
        return hadRoom;
    }
};

/// For a caller that looks at the count afterwards.
struct DropOverflow {
    static constexpr bool isFull = false; // true: no more is of any use

    template <class Tile>
    __device__ __forceinline__ void operator()(const Tile&, uint32_t) const {}
};

} // namespace faiss_bits

/// A few of the best of each row, 1 < k <= 32, of many rows: some lanes of a
/// warp have a row, whose keys come through shared memory while other rows are
/// looked at.
///
/// Each lane finds the least of its columns. What k of the lanes' least keys
/// are not above, k keys are not above, and in random order hardly more are:
/// the limit comes from the row itself, by one sort of a number or two a lane,
/// and no order misleads it by more than the room for survivors can take. Then
/// the keys are read again, from shared memory, and what is within the limit is
/// ranked by counting.
///
/// Bound by: instructions, and what they wait for. A key costs a lane about 11,
/// and a row its warp some 300; an H200 has time for 26 a key while 32 floats
/// come. Half of that time is lost as few warps have room
/// (docs/design/selection_short_rows.md).
#pragma once

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/select/short_rows/FewOfRowsLaunch.h"
#include "kernels/select/short_rows/FewOfTile.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// The rows of a warp, 32 / kLanes at a time. kMinima: numbers of a lane among
/// which the limit is sought; k is up to half of all of a row.
template <class T, int kLanes, int kMinima>
struct FewOfRows {
    using Group = LaneGroup<kLanes>;
    using Tile = FewOfTile<T, kLanes, kMinima>;
    static constexpr uint32_t kRows = kWarpSize / kLanes;
    static constexpr uint32_t kPackBytes = 16;

    const FewOfRowsParams& params;
    T* stages;      // of this warp, [stages][kRows][pitch]
    uint64_t* room; // of this row, [Tile::kRoom]

    /// Warps take rows in turn.
    __device__ void run(uint32_t warp, uint32_t warps) {
        const uint32_t sets = (params.rows + kRows - 1) / kRows;
        const uint32_t mine =
                warp < sets ? (sets - warp - 1) / warps + 1 : 0; // of this warp
        const uint32_t items = mine * params.tiles;
        Place copied{warp * kRows + group(), 0};
        uint32_t stage = 0;
        for (uint32_t i = 0; i < params.stages; ++i) {
            request(i < items, copied, i, warps);
        }
        Place taken{warp * kRows + group(), 0};
        Tile tile{params.select, room};
        for (uint32_t i = 0; i < items; ++i) {
            if (params.stages == 3) {
                waitForCopies<2>();
            } else {
                waitForCopies<1>();
            }
            T* keys = stageOf(stage) + skewOf(keysOf(taken)) / sizeof(T);
            if constexpr (sizeof(T) < 4) {
                endHalfWord(stageOf(stage), taken);
            }
            __syncwarp();
            // Each tile lets fewer through than the one before: twice as many
            // are as good for a new limit.
            const bool lowers = (taken.tile & (taken.tile + 1)) == 0;
            tile.take(
                    keys, taken.tile * params.tileCols, colsOf(taken), lowers);
            __syncwarp();
            request(i + params.stages < items, copied, stage, warps);
            stage = stage + 1 == params.stages ? 0 : stage + 1;
            if (taken.tile + 1 == params.tiles) {
                tile.rank([&](uint32_t place, uint64_t entry) {
                    if (taken.row < params.rows) {
                        writeResult<T>(
                                params.select, rowOf(taken), place, entry);
                    }
                });
                tile.reset();
            }
            advance(taken, warps);
        }
    }

   private:
    /// A tile of a row of this launch; rows behind the last one are the last
    /// one again, so that lanes of a warp go along.
    struct Place {
        uint32_t row;
        uint32_t tile;
    };

    __device__ __forceinline__ static uint32_t group() {
        return threadIdx.x % kWarpSize / kLanes;
    }

    __device__ __forceinline__ uint32_t rowOf(const Place& place) const {
        return params.select.firstRow + min(place.row, params.rows - 1);
    }

    __device__ __forceinline__ const T* keysOf(const Place& place) const {
        return static_cast<const T*>(params.select.keys) +
                params.select.rowStride * int64_t(rowOf(place)) +
                place.tile * params.tileCols;
    }

    __device__ __forceinline__ uint32_t colsOf(const Place& place) const {
        return min(
                params.tileCols,
                params.select.cols - place.tile * params.tileCols);
    }

    /// Bytes behind a multiple of 16.
    __device__ __forceinline__ static uint32_t skewOf(const T* from) {
        return uint32_t(reinterpret_cast<uintptr_t>(from)) % kPackBytes;
    }

    __device__ __forceinline__ T* stageOf(uint32_t stage) const {
        return stages + (stage * kRows + group()) * params.pitch;
    }

    __device__ __forceinline__ void advance(Place& place, uint32_t warps)
            const {
        if (++place.tile == params.tiles) {
            place.tile = 0;
            place.row += warps * kRows;
        }
    }

    /// kBytes from one multiple of that to another; the last of them may be
    /// none of the row's and are not read then.
    template <int kBytes>
    __device__ __forceinline__ static void copy(
            uint8_t* to,
            const uint8_t* from,
            uint32_t bytes = kBytes) {
        const uint32_t at = sharedAddress(to);
        if constexpr (kBytes == 16) {
            copyAsync(at, from);
        } else {
            copyAsyncByL1<4>(at, from, bytes);
        }
    }

    /// The word of 4 bytes that this lane copies of a tile from byte `begin` to
    /// `end`, behind a multiple of 16: of what is before the first 16 whole
    /// bytes, or behind the last.
    struct EdgeWord {
        uint32_t at;
        bool isThere;

        __device__ __forceinline__ EdgeWord(uint32_t begin, uint32_t end) {
            const uint32_t lane = Group::lane();
            const uint32_t endPack = end / kPackBytes;
            const bool isTail = (lane & 4) != 0;
            at = (isTail ? endPack * kPackBytes : 0) + lane % 4 * 4;
            const bool isEdge = isTail
                    ? endPack >= (begin > 0 ? 1 : 0) && at < end
                    : begin > 0 && at + 4 > begin && at < end;
            isThere = lane < 8 && isEdge;
        }
    };

    /// The last word of a tile may have no second key: its copy has put a zero
    /// there. The lane that copied it waited for it, and no other writes to it.
    __device__ __forceinline__ void endHalfWord(T* stage, const Place& place)
            const {
        const uint32_t begin = skewOf(keysOf(place));
        const uint32_t end = begin + colsOf(place) * uint32_t(sizeof(T));
        const EdgeWord edge(begin, end);
        if (edge.isThere && end - edge.at == sizeof(T)) {
            stage[end / sizeof(T)] = Tile::nan();
        }
    }

    /// Enqueues the copy of a tile, if there is one, as it lies in memory by
    /// 16 bytes, and goes on to the next. What is before the first 16 and
    /// behind the last comes by words of 4: of the first one, a key of the row
    /// before may be read.
    __device__ __forceinline__ void request(
            bool isThere,
            Place& place,
            uint32_t stage,
            uint32_t warps) const {
        if (isThere) {
            const T* keys = keysOf(place);
            const uint32_t cols = colsOf(place);
            const uint32_t begin = skewOf(keys);
            const uint32_t end = begin + cols * uint32_t(sizeof(T));
            const uint8_t* from =
                    reinterpret_cast<const uint8_t*>(keys) - begin;
            uint8_t* to = reinterpret_cast<uint8_t*>(stageOf(stage));
            const uint32_t lane = Group::lane();
            const uint32_t firstPack = begin > 0 ? 1 : 0;
            const uint32_t endPack = end / kPackBytes;
            for (uint32_t p = firstPack + lane; p < endPack; p += kLanes) {
                copy<16>(to + p * kPackBytes, from + p * kPackBytes);
            }
            const EdgeWord edge(begin, end);
            if (edge.isThere) {
                copy<4>(to + edge.at, from + edge.at, min(end - edge.at, 4u));
            }
            const uint32_t halves = end % 4 / sizeof(T); // in a word of copies
            Tile::pad(stageOf(stage) + begin / sizeof(T), cols, halves);
            advance(place, warps);
        }
        endCopies();
    }
};

template <class T, int kLanes, int kMinima>
__global__ void __launch_bounds__(kShortRowsThreads, kFewOfRowsBlocks)
        fewOfRowsKernel(const __grid_constant__ FewOfRowsParams params) {
    using Body = FewOfRows<T, kLanes, kMinima>;
    constexpr uint32_t kWarps = kShortRowsThreads / kWarpSize;
    extern __shared__ __align__(128) uint64_t memory[];
    const uint32_t warp = threadIdx.x / kWarpSize;
    const size_t ofWarp = size_t(params.stages) * Body::kRows * params.pitch;
    constexpr size_t kGroups = kShortRowsThreads / kLanes;
    uint64_t* room = memory + threadIdx.x / kLanes * size_t(Body::Tile::kRoom);
    T* stages = reinterpret_cast<T*>(memory + kGroups * Body::Tile::kRoom) +
            warp * ofWarp;
    Body{params, stages, room}.run(
            blockIdx.x * kWarps + warp, gridDim.x * kWarps);
}

} // namespace faiss_bits

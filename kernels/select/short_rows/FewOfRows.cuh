/// A few of the best of each row, 1 < k <= 32, of many rows of floats: some
/// lanes of a warp have a row, whose keys come through shared memory while
/// other rows are looked at.
///
/// Each lane finds the least of its columns. What k of the lanes' least keys
/// are not above, k keys are not above, and in random order hardly more are: the
/// limit comes from the row itself, by one sort of a number or two a lane, and
/// no order misleads it by more than the room for survivors can take. Then the
/// keys are read again, from shared memory, and what is within the limit is
/// ranked by counting.
///
/// Bound by: the read of the keys. A key costs a lane about 10 instructions,
/// where a multiprocessor of an H200 has time for 26 while 32 keys come; a row
/// 200 to 250 of its warp.
#pragma once

#include "kernels/device/KeyTile.cuh"
#include "kernels/select/short_rows/FewOfRowsLaunch.h"
#include "kernels/select/short_rows/FewOfTile.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// The rows of a warp, 32 / kLanes at a time. kMinima: numbers of a lane among
/// which the limit is sought; k is up to half of all of a row.
template <int kLanes, int kMinima>
struct FewOfRows {
    using Group = LaneGroup<kLanes>;
    using Tile = FewOfTile<kLanes, kMinima>;
    static constexpr uint32_t kRows = kWarpSize / kLanes;

    const FewOfRowsParams& params;
    float* stages;  // of this warp, [stages][kRows][pitch]
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
                asm volatile("cp.async.wait_group 2;" ::: "memory");
            } else {
                asm volatile("cp.async.wait_group 1;" ::: "memory");
            }
            __syncwarp();
            tile.take(
                    stageOf(stage) + misalignment(keysOf(taken)),
                    taken.tile * params.tileCols,
                    colsOf(taken));
            __syncwarp();
            request(i + params.stages < items, copied, stage, warps);
            stage = stage + 1 == params.stages ? 0 : stage + 1;
            if (taken.tile + 1 == params.tiles) {
                tile.rank([&](uint32_t place, uint64_t entry) {
                    if (taken.row < params.rows) {
                        writeResult<float>(
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

    __device__ __forceinline__ const float* keysOf(const Place& place) const {
        return static_cast<const float*>(params.select.keys) +
                params.select.rowStride * int64_t(rowOf(place)) +
                place.tile * params.tileCols;
    }

    __device__ __forceinline__ uint32_t colsOf(const Place& place) const {
        return min(params.tileCols,
                   params.select.cols - place.tile * params.tileCols);
    }

    /// Floats behind a multiple of 16 bytes.
    __device__ __forceinline__ static uint32_t misalignment(const float* from) {
        return uint32_t(reinterpret_cast<uintptr_t>(from)) / 4 % 4;
    }

    __device__ __forceinline__ float* stageOf(uint32_t stage) const {
        return stages + (stage * kRows + group()) * params.pitch;
    }

    __device__ __forceinline__ void advance(Place& place, uint32_t warps)
            const {
        if (++place.tile == params.tiles) {
            place.tile = 0;
            place.row += warps * kRows;
        }
    }

    template <int kBytes>
    __device__ __forceinline__ static void copy(float* to, const float* from) {
        const uint32_t at = uint32_t(__cvta_generic_to_shared(to));
        if constexpr (kBytes == 16) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at),
                         "l"(from)
                         : "memory");
        } else {
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at),
                         "l"(from)
                         : "memory");
        }
    }

    /// Enqueues the copy of a tile, if there is one, as it lies in memory by
    /// 16 bytes, and goes on to the next.
    __device__ __forceinline__ void request(
            bool isThere,
            Place& place,
            uint32_t stage,
            uint32_t warps) const {
        if (isThere) {
            constexpr uint32_t kPack = 4;
            const float* from = keysOf(place);
            const uint32_t cols = colsOf(place);
            const uint32_t skew = misalignment(from);
            float* to = stageOf(stage) + skew;
            const uint32_t head = min((kPack - skew) % kPack, cols);
            const uint32_t packs = (cols - head) / kPack;
            const uint32_t lane = Group::lane();
            for (uint32_t p = lane; p < packs; p += kLanes) {
                copy<16>(to + head + p * kPack, from + head + p * kPack);
            }
            // What is before and behind: up to three each.
            const bool isTail = (lane & kPack) != 0;
            const uint32_t begin = isTail ? head + packs * kPack : 0;
            const uint32_t end = isTail ? cols : head;
            const uint32_t at = begin + lane % kPack;
            if (lane < 2 * kPack && at < end) {
                copy<4>(to + at, from + at);
            }
            Tile::pad(to, cols);
            advance(place, warps);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
};

template <int kLanes, int kMinima>
__global__ void __launch_bounds__(kShortRowsThreads, kFewOfRowsBlocks)
        fewOfRowsKernel(const __grid_constant__ FewOfRowsParams params) {
    using Body = FewOfRows<kLanes, kMinima>;
    constexpr uint32_t kWarps = kShortRowsThreads / kWarpSize;
    extern __shared__ __align__(128) uint64_t memory[];
    const uint32_t warp = threadIdx.x / kWarpSize;
    const size_t stageWords =
            size_t(params.stages) * Body::kRows * params.pitch / 2;
    uint64_t* room = memory +
            threadIdx.x / kLanes * size_t(Body::Tile::kRoom);
    float* stages = reinterpret_cast<float*>(
            memory + kShortRowsThreads / kLanes * size_t(Body::Tile::kRoom) +
            warp * stageWords);
    Body{params, stages, room}.run(
            blockIdx.x * kWarps + warp, gridDim.x * kWarps);
}

} // namespace faiss_bits

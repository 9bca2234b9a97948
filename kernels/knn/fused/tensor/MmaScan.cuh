/// The scan by mma.sync and cp.async: 128 queries x 128 vectors a step, of
/// which each of eight warps has 64 x 32. Two blocks share a multiprocessor
/// where they fit: one compares while the other multiplies.
#pragma once

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/device/MmaFloat16.cuh"
#include "kernels/knn/fused/tensor/LimitTest.cuh"
#include "kernels/knn/fused/tensor/MmaShape.h"

namespace faiss_bits {

/// Finder: what becomes of the values (FindPassing, FindNearest).
template <int kRowBytes, int kStages, bool kIsL2, class Finder>
struct MmaScanBody {
    static constexpr int kSlabBytes = TensorImageLayout::kTileRows * kRowBytes;
    static constexpr int kBlocks = 4; // of 16 queries, a warp
    static constexpr int kWidth = 32; // vectors of a warp
    using Buffer = typename Finder::Buffer;

    const TensorScanParams& params;
    MmaSharedLayout layout;
    uint8_t* shared;

    __device__ void run() {
        const int warp = threadIdx.x / kWarpSize;
        const int lane = threadIdx.x % kWarpSize;
        const int warpRow = warp / 4 * 64;
        const int warpColumn = warp % 4 * kWidth;
        Buffer buffer(
                reinterpret_cast<uint64_t*>(shared + layout.passed) +
                        warp * Buffer::kEntries,
                params);
        typename Finder::template Test<
                kIsL2 ? ScanNorms::ToBeAdded : ScanNorms::None,
                kBlocks,
                kWidth,
                16>
                test;
        float values[kBlocks][kWidth / 2];
        for (uint32_t item = blockIdx.x; item < params.items;
             item += gridDim.x) {
            const uint32_t queryTile = item % params.queryTiles;
            const uint32_t chunk = item / params.queryTiles;
            test.start(params, queryTile * kMmaQueries + warpRow + lane / 4);
            // Of the item before, nothing is read any more.
            waitForCopies<0>();
            __syncthreads();
            if (layout.resident) {
                for (int slab = 0; slab < params.slabs; ++slab) {
                    copySlab(shared + slab * kSlabBytes, queryTile, slab, true);
                }
            }
            Place ahead{chunk, 0, 0, 0};
            for (int i = 0; i < kStages - 1; ++i) {
                fetch(ahead, queryTile);
            }
            Place now{chunk, 0, 0, 0};
            while (now.unit < params.units) {
                waitForCopies<kStages - 2>();
                // This step is there; the one before has been read by all.
                __syncthreads();
                fetch(ahead, queryTile);
                if (now.slab == 0) {
#pragma unroll
                    for (int i = 0; i < kBlocks * kWidth / 2; ++i) {
                        values[i / (kWidth / 2)][i % (kWidth / 2)] = 0.0f;
                    }
                }
                const uint8_t* stage = stageAt(now.stage);
                multiplySlab(
                        values,
                        sharedAddress(
                                layout.resident ? shared + now.slab * kSlabBytes
                                                : stage),
                        sharedAddress(
                                layout.resident ? stage : stage + kSlabBytes),
                        warpRow,
                        warpColumn,
                        now.slab + 1 < params.slabs ? kRowBytes / 32
                                                    : params.lastSteps);
                if (now.slab + 1 == params.slabs) {
                    test.run(
                            values,
                            normsAt(now.slot) + warpColumn,
                            now.unit * kMmaVectors + warpColumn,
                            buffer);
                }
                next(now);
            }
            test.finish(params, chunk * 4 + warp % 4);
        }
        buffer.flush();
    }

   private:
    /// A step: a slab of a unit, and where it lies.
    struct Place {
        uint32_t unit;
        int slab;
        int stage;
        int slot; // of norms
    };

    __device__ __forceinline__ void next(Place& place) const {
        place.stage = place.stage + 1 == kStages ? 0 : place.stage + 1;
        if (++place.slab == params.slabs) {
            place.slab = 0;
            place.unit += params.chunks;
            place.slot = place.slot == kStages ? 0 : place.slot + 1;
        }
    }

    __device__ __forceinline__ uint8_t* stageAt(int stage) const {
        return shared + layout.stages + stage * layout.stageBytes;
    }
    __device__ __forceinline__ float* normsAt(int slot) const {
        return reinterpret_cast<float*>(shared + layout.norms) +
                slot * kMmaVectors;
    }

    /// By all threads: a slab of a tile, as it lies in the image.
    __device__ __forceinline__ void copySlab(
            uint8_t* to,
            uint32_t tile,
            int slab,
            bool ofQueries) const {
        const uint8_t* from = (ofQueries ? params.queries : params.vectors) +
                (size_t(tile) * params.slabs + slab) * kSlabBytes;
#pragma unroll
        for (int i = 0; i < kSlabBytes / 16 / kMmaThreads; ++i) {
            const int at = (i * kMmaThreads + threadIdx.x) * 16;
            copyAsync(sharedAddress(to) + at, globalAddress(from + at));
        }
    }

    /// Starts the copies of a step, if there is one; a group in any case.
    __device__ __forceinline__ void fetch(Place& ahead, uint32_t queryTile)
            const {
        if (ahead.unit < params.units) {
            uint8_t* stage = stageAt(ahead.stage);
            if (!layout.resident) {
                copySlab(stage, queryTile, ahead.slab, true);
            }
            copySlab(
                    layout.resident ? stage : stage + kSlabBytes,
                    ahead.unit,
                    ahead.slab,
                    false);
            if (kIsL2 && ahead.slab == 0 && threadIdx.x < kMmaVectors / 4) {
                copyAsync(
                        sharedAddress(normsAt(ahead.slot)) + threadIdx.x * 16,
                        globalAddress(
                                params.norms +
                                size_t(ahead.unit) * kMmaVectors +
                                threadIdx.x * 4));
            }
            next(ahead);
        }
        endCopies();
    }

    /// Of a 16-byte piece in a swizzled slab.
    static __device__ __forceinline__ uint32_t at(int row, int piece) {
        constexpr int kPieces = kRowBytes / 16;
        const int offset = row * kRowBytes;
        return offset + (piece ^ (offset / 128 % kPieces)) * 16;
    }

    __device__ __forceinline__ void multiplySlab(
            float (&values)[kBlocks][kWidth / 2],
            uint32_t queries,
            uint32_t vectors,
            int warpRow,
            int warpColumn,
            int steps) const {
        const int lane = threadIdx.x % kWarpSize;
#pragma unroll
        for (int step = 0; step < kRowBytes / 32; ++step) {
            if (step >= steps) {
                break;
            }
            uint32_t b[kWidth / 16][4];
#pragma unroll
            for (int i = 0; i < kWidth / 16; ++i) {
                loadFragments(
                        b[i],
                        vectors +
                                at(warpColumn + 16 * i + lane / 16 * 8 +
                                           lane % 8,
                                   2 * step + lane / 8 % 2));
            }
#pragma unroll
            for (int block = 0; block < kBlocks; ++block) {
                uint32_t a[4];
                loadFragments(
                        a,
                        queries +
                                at(warpRow + 16 * block + lane % 16,
                                   2 * step + lane / 16));
#pragma unroll
                for (int j = 0; j < kWidth / 8; ++j) {
                    mmaFloat16(&values[block][4 * j], a, &b[j / 2][j % 2 * 2]);
                }
            }
        }
    }
};

} // namespace faiss_bits

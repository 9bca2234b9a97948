/// The scan on Hopper: products of warpgroups (wgmma), fed by bulk copies.
///
/// One thread of a warpgroup copies, the other warpgroups multiply and compare:
/// while one compares, others multiply.
///
/// Up to d = 256 the block's queries stay in shared memory, and vectors stream
/// by: 256 queries x 128 vectors. Beyond, both stream: 128 x 256, as with 256
/// columns a product reads less of shared memory, which the copies need too.
///
/// Bound by: the products for d >= 64; below, the comparisons.
#pragma once

#include "kernels/knn/fused/tensor/BulkPipeline.cuh"
#include "kernels/knn/fused/tensor/PassedBuffer.cuh"
#include "kernels/knn/fused/tensor/Wgmma.cuh"
#include "kernels/knn/fused/tensor/WgmmaShape.h"

namespace faiss_bits {

/// kLastSteps: of 16 components in the last slab. A condition on a number of
/// steps known at run time makes the compiler wait after every product.
template <int kRowBytes, bool kStreamed, int kLastSteps, bool kIsL2>
struct WgmmaScanBody {
    static constexpr WgmmaShape kShape{kRowBytes, kStreamed};
    static constexpr int kBlocks = kShape.blocks();
    static constexpr int kWidth = kShape.width();
    static constexpr int kSlabBytes =
            TensorImageLayout::kTileRows * kShape.rowBytes;
    static constexpr int kBlockBytes = 64 * kShape.rowBytes;
    static constexpr int kWarps = 4 * kShape.groups(); // that compare

    const TensorScanParams& params;
    WgmmaSharedLayout layout;
    uint8_t* shared;

    __device__ __forceinline__ uint64_t* full(int stage) const {
        return reinterpret_cast<uint64_t*>(shared + layout.barriers) + stage;
    }
    __device__ __forceinline__ uint64_t* empty(int stage) const {
        return full(kMaxStages + stage);
    }
    __device__ __forceinline__ uint64_t* queriesFull(int buffer) const {
        return full(2 * kMaxStages + buffer);
    }
    __device__ __forceinline__ uint64_t* queriesEmpty(int buffer) const {
        return full(2 * kMaxStages + 2 + buffer);
    }
    __device__ __forceinline__ float* norms(int slot) const {
        return reinterpret_cast<float*>(shared + layout.norms) +
                slot * kShape.unit();
    }
    __device__ __forceinline__ uint8_t* stageAt(int stage) const {
        return shared + layout.stages + stage * kShape.stageBytes();
    }

    __device__ void run() {
        if (threadIdx.x == 0) {
            for (int i = 0; i < kMaxStages; ++i) {
                initBarrier(full(i), 1);
                initBarrier(empty(i), kWarps);
            }
            for (int i = 0; i < 2; ++i) {
                initBarrier(queriesFull(i), 1);
                initBarrier(queriesEmpty(i), kWarps);
            }
            fenceBarrierInit();
        }
        __syncthreads();
        if (threadIdx.x < 128) {
            wgmma::lowerRegisters<kShape.groups() == 4 ? 24 : 40>();
            if (threadIdx.x == 0) {
                produce();
            }
        } else {
            wgmma::raiseRegisters<kShape.groups() == 4 ? 112 : 232>();
            consume();
        }
    }

    __device__ __forceinline__ uint32_t firstUnit(uint32_t item) const {
        return item / params.queryTiles * params.unitsPerChunk;
    }
    __device__ __forceinline__ uint32_t lastUnit(uint32_t item) const {
        return min(firstUnit(item) + params.unitsPerChunk, params.units);
    }

    __device__ __forceinline__ void produce() {
        RingPlace stage;
        RingPlace slot;
        RingPlace buffer;
        const uint32_t tileBytes = params.slabs * kSlabBytes;
        for (uint32_t item = blockIdx.x; item < params.items;
             item += gridDim.x) {
            const uint32_t queryTile = item % params.queryTiles;
            if (!kShape.streamed) {
                const uint32_t bytes = 2 * tileBytes;
                waitFor(queriesEmpty(buffer.at), buffer.parity ^ 1);
                arriveExpecting(queriesFull(buffer.at), bytes);
                copyBulk(
                        shared + buffer.at * bytes,
                        params.queries + size_t(queryTile) * bytes,
                        bytes,
                        queriesFull(buffer.at));
                buffer.next(params.queryBuffers);
            }
            const uint8_t* queries =
                    params.queries + size_t(queryTile) * tileBytes;
            const uint32_t end = lastUnit(item);
            for (uint32_t unit = firstUnit(item); unit < end; ++unit) {
                const uint8_t* vectors = params.vectors +
                        size_t(unit) * kShape.tilesOfUnit() * tileBytes;
                for (int slab = 0; slab < params.slabs; ++slab) {
                    uint64_t* barrier = full(stage.at);
                    waitFor(empty(stage.at), stage.parity ^ 1);
                    uint32_t bytes = kShape.stageBytes();
                    constexpr uint32_t kNormBytes = kShape.unit() * 4;
                    const bool withNorms = kIsL2 && slab == 0;
                    arriveExpecting(
                            barrier, bytes + (withNorms ? kNormBytes : 0));
                    if (withNorms) {
                        copyBulk(
                                norms(slot.at),
                                params.norms + size_t(unit) * kShape.unit(),
                                kNormBytes,
                                barrier);
                    }
                    uint8_t* to = stageAt(stage.at);
                    if (kShape.streamed) {
                        copyBulk(
                                to,
                                queries + slab * kSlabBytes,
                                kSlabBytes,
                                barrier);
                        copyBulk(
                                to + kSlabBytes,
                                vectors + slab * kSlabBytes,
                                kSlabBytes,
                                barrier);
                        copyBulk(
                                to + 2 * kSlabBytes,
                                vectors + tileBytes + slab * kSlabBytes,
                                kSlabBytes,
                                barrier);
                    } else {
                        copyBulk(
                                to,
                                vectors + slab * kSlabBytes,
                                kShape.stageBytes(),
                                barrier);
                    }
                    stage.next(params.stages);
                }
                slot.next(params.stages + 1);
            }
        }
    }

    /// Products of one slab, added to those before it if `add`.
    template <int kSteps>
    __device__ __forceinline__ void multiplySlab(
            float (&values)[kBlocks][kWidth / 2],
            uint64_t a,
            uint64_t b,
            bool add) const {
        wgmma::fence();
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
#pragma unroll
            for (int block = 0; block < kBlocks; ++block) {
                wgmma::multiply<kWidth>(
                        values[block],
                        a + block * (kBlockBytes / 16) + 2 * step,
                        b + 2 * step,
                        step > 0 || add);
            }
        }
        wgmma::commit();
    }

    __device__ __forceinline__ void consume() {
        // From lane 0, so that the compiler knows it to be the same in all.
        const int warp =
                __shfl_sync(kFullWarp, int(threadIdx.x) / kWarpSize - 4, 0);
        const int lane = threadIdx.x % kWarpSize;
        const int group = warp / 4;
        const int half = group % 2; // of the queries
        PassedBuffer buffer(
                reinterpret_cast<uint64_t*>(shared + layout.passed) +
                        warp * PassedBuffer::kEntries,
                params);
        PassTest<kIsL2, kBlocks, kWidth, 64> test;
        float values[kBlocks][kWidth / 2];
        RingPlace stage;
        RingPlace slot;
        RingPlace queries;
        const bool inTurn = kMayTakeTurns && params.inTurn;
        if (inTurn && group == 1) {
            giveTurn(0);
        }
        for (uint32_t item = blockIdx.x; item < params.items;
             item += gridDim.x) {
            const uint32_t firstRow =
                    item % params.queryTiles * kShape.queries() +
                    half * (64 * kBlocks);
            const bool active = firstRow < params.numQueries;
            test.start(params, firstRow + warp % 4 * 16 + lane / 4);
            uint64_t a = 0;
            if (!kShape.streamed) {
                waitFor(queriesFull(queries.at), queries.parity);
                a = wgmma::descriptor<kShape.rowBytes>(sharedAddress(
                        shared +
                        (2 * queries.at + half) * params.slabs * kSlabBytes));
            }
            const uint32_t end = lastUnit(item);
            for (uint32_t unit = firstUnit(item); unit < end; ++unit) {
                if (inTurn) {
                    takeTurn(group);
                }
                if (active) {
                    takeUnit(
                            values,
                            a,
                            unit,
                            stage,
                            slot,
                            group,
                            inTurn,
                            test,
                            buffer);
                } else {
                    if (inTurn) {
                        giveTurn(1 - group);
                    }
                    for (int slab = 0; slab < params.slabs; ++slab) {
                        waitFor(full(stage.at), stage.parity);
                        release(empty(stage.at));
                        stage.next(params.stages);
                    }
                }
                slot.next(params.stages + 1);
            }
            if (!kShape.streamed) {
                release(queriesEmpty(queries.at));
                queries.next(params.queryBuffers);
            }
        }
        if (inTurn && group == 0) {
            takeTurn(0); // the last that was given: no barrier is left open
        }
        buffer.flush();
    }

    /// The groups multiply in turn, so that one compares meanwhile. Left to
    /// themselves both multiply at half the speed and then both compare.
    static constexpr bool kMayTakeTurns = kShape.groups() == 2 &&
            !kShape.streamed;

    __device__ __forceinline__ void takeTurn(int group) const {
        asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory");
    }
    __device__ __forceinline__ void giveTurn(int group) const {
        asm volatile("bar.arrive %0, 256;" ::"r"(1 + group) : "memory");
    }

    /// Each warp for itself: what another warp of the group still reads is no
    /// matter of this one.
    __device__ __forceinline__ void release(uint64_t* barrier) const {
        __syncwarp();
        if (threadIdx.x % kWarpSize == 0) {
            arrive(barrier);
        }
    }

    template <class Test>
    __device__ __forceinline__ void takeUnit(
            float (&values)[kBlocks][kWidth / 2],
            uint64_t a,
            uint32_t unit,
            RingPlace& stage,
            const RingPlace& slot,
            int group,
            bool inTurn,
            const Test& test,
            PassedBuffer& buffer) const {
        const uint32_t column = unit * kShape.unit();
        if constexpr (kShape.rowBytes < 128) {
            // Several tiles a stage, of one slab.
            waitFor(full(stage.at), stage.parity);
            const uint64_t b = wgmma::descriptor<kShape.rowBytes>(
                    sharedAddress(stageAt(stage.at)));
            const int first = group / 2 * kWidth; // vector of the tile
#pragma unroll 1
            for (int tile = 0; tile < kShape.tilesOfUnit(); ++tile) {
                multiplySlab<kLastSteps>(
                        values,
                        a,
                        b + (tile * kSlabBytes + first * kRowBytes) / 16,
                        false);
                wgmma::wait<0>();
                if (tile == kShape.tilesOfUnit() - 1) {
                    release(empty(stage.at));
                    stage.next(params.stages);
                }
                const int offset =
                        tile * TensorImageLayout::kTileRows + first;
                test.run(
                        values,
                        norms(slot.at) + offset,
                        column + offset,
                        buffer);
            }
        } else {
            int before = 0;
            const int last = params.slabs - 1;
            for (int slab = 0; slab < last; ++slab) {
                const Operands operands = nextSlab(a, slab, stage, group);
                multiplySlab<4>(
                        values, operands.left, operands.right, slab > 0);
                // The slab before has been read.
                if (slab > 0) {
                    wgmma::wait<1>();
                    release(empty(before));
                }
                before = stage.at;
                stage.next(params.stages);
            }
            // The last step apart: when only that is left, the other group may
            // begin.
            const Operands operands = nextSlab(a, last, stage, group);
            if constexpr (kLastSteps > 1) {
                multiplySlab<kLastSteps - 1>(
                        values, operands.left, operands.right, last > 0);
            }
            multiplySlab<1>(
                    values,
                    operands.left + 2 * (kLastSteps - 1),
                    operands.right + 2 * (kLastSteps - 1),
                    kLastSteps > 1 || last > 0);
            wgmma::wait<1>();
            if (inTurn) {
                giveTurn(1 - group);
            }
            if (last > 0) {
                release(empty(before));
            }
            wgmma::wait<0>();
            release(empty(stage.at));
            stage.next(params.stages);
            test.run(values, norms(slot.at), column, buffer);
        }
    }

    struct Operands {
        uint64_t left;
        uint64_t right;
    };

    /// Waits for a slab. a: of the queries that stay.
    __device__ __forceinline__ Operands
    nextSlab(uint64_t a, int slab, const RingPlace& stage, int group) const {
        waitFor(full(stage.at), stage.parity);
        const uint64_t here =
                wgmma::descriptor<128>(sharedAddress(stageAt(stage.at)));
        if (kShape.streamed) {
            return {here + group * (kBlockBytes / 16), here + kSlabBytes / 16};
        }
        return {a + slab * (kSlabBytes / 16), here};
    }
};

template <int kRowBytes, bool kStreamed, int kLastSteps, bool kIsL2>
__global__ void __launch_bounds__(
        WgmmaShape{kRowBytes, kStreamed}.threads(),
        1)
        wgmmaScanKernel(const __grid_constant__ TensorScanParams params) {
    extern __shared__ __align__(1024) uint8_t shared[];
    WgmmaScanBody<kRowBytes, kStreamed, kLastSteps, kIsL2> body{
            params,
            WgmmaSharedLayout(
                    {kRowBytes, kStreamed},
                    params.slabs,
                    params.stages,
                    params.queryBuffers),
            shared};
    body.run();
}

} // namespace faiss_bits

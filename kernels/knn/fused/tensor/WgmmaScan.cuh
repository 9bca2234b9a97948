/// The scan on Hopper: products of warpgroups (wgmma), fed by bulk copies.
///
/// One thread of a warpgroup copies (WgmmaCopies.cuh), the other warpgroups
/// multiply and compare: while one compares, others multiply.
///
/// Up to d = 256 the block's queries stay in shared memory, and vectors stream
/// by: 256 queries x 128 vectors. Beyond, both stream: 128 x 256, as with 256
/// columns a product reads less of shared memory, which the copies need too.
///
/// Up to 64 queries (TakesTurns): warpgroups take units of vectors in turn,
/// each with all queries, where parts of the queries would leave all but one
/// idle.
///
/// L2: the norms of the vectors are a step of 16 components more
/// (TensorImage::normSteps), whose products the accumulators begin with.
///
/// Bound by: the products for d >= 64; below, the comparisons.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/fused/tensor/LimitTest.cuh"
#include "kernels/knn/fused/tensor/Wgmma.cuh"
#include "kernels/knn/fused/tensor/WgmmaCopies.cuh"

namespace faiss_bits {

/// A finder for kMostTurnQueries at most, of one tile. Its tests write what
/// passes by atomic operations, as several warps have the same queries.
template <class Finder>
struct TakesTurns : Finder {
    static constexpr bool kTakesTurns = true;
};

/// kLastSteps: of 16 components in the last slab. A condition on a number of
/// steps known at run time makes the compiler wait after every product.
/// Finder: what becomes of the values (FindPassing, FindNearest).
template <
        int kRowBytes,
        bool kStreamed,
        int kLastSteps,
        bool kIsL2,
        class Finder>
struct WgmmaScanBody {
    using Block = WgmmaBlock<kRowBytes, kStreamed>;
    static constexpr WgmmaShape kShape = Block::kShape;
    static constexpr bool kTakesTurns = requires {
        Finder::kTakesTurns;
    };
    static constexpr int kBlocks = kTakesTurns ? 1 : kShape.blocks();
    static constexpr int kWidth = kShape.width();
    static constexpr int kSlabBytes = Block::kSlabBytes;
    static constexpr int kBlockBytes = 64 * kRowBytes;
    using Buffer = typename Finder::Buffer;
    using Test = typename Finder::template Test<
            kIsL2 ? ScanNorms::InValues : ScanNorms::None,
            kBlocks,
            kWidth,
            64>;
    static constexpr int kWarps = 4 * kShape.groups(); // that compare

    Block block;

    __device__ void run() {
        if (threadIdx.x == 0) {
            for (int i = 0; i < kMaxStages; ++i) {
                initBarrier(block.full(i), 1);
                initBarrier(block.empty(i), kWarps);
            }
            for (int i = 0; i < 2; ++i) {
                initBarrier(block.queriesFull(i), 1);
                initBarrier(block.queriesEmpty(i), kWarps);
            }
            fenceBarrierInit();
        }
        __syncthreads();
        allowNext();
        waitForPrevious();
        if (threadIdx.x < 128) {
            wgmma::lowerRegisters<kShape.groups() == 4 ? 24 : 40>();
            if (threadIdx.x == 0) {
                copySlabs<kIsL2>(block);
            }
        } else {
            wgmma::raiseRegisters<kShape.groups() == 4 ? 112 : 232>();
            consume();
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
        constexpr int kParts = kShape.queryParts();
        const int part = kTakesTurns ? 0 : group % kParts; // of the queries
        // Units of others, before one of its own.
        int turns = kTakesTurns ? group % kParts : 0;
        Buffer buffer(
                reinterpret_cast<uint64_t*>(
                        block.shared + block.layout.passed) +
                        warp * Buffer::kEntries,
                block.params);
        Test test;
        float values[kBlocks][kWidth / 2];
        RingPlace stage;
        RingPlace slot;
        RingPlace queries;
        const auto items = block.ownItems();
        for (uint32_t item = items.first; item < items.last;
             item += items.step) {
            if (kIsL2 && block.isOfBytes(item)) {
                continue;
            }
            const uint32_t firstRow = block.tileOf(item) * kShape.queries() +
                    part * (64 * kBlocks);
            const bool active = firstRow < block.params.numQueries;
            test.start(block.params, firstRow + warp % 4 * 16 + lane / 4);
            Left left{};
#pragma unroll
            for (int r = 0; kIsL2 && r < 2 * kBlocks; ++r) {
                left.norms[r / 2][r % 2] = test.normFactors(r);
            }
            if (!kShape.streamed) {
                waitFor(block.queriesFull(queries.at), queries.parity);
                // Parts are tiles of the image, or halves of them.
                const int tile = 2 * queries.at + part * kBlocks / 2;
                left.queries = wgmma::descriptor<kRowBytes>(sharedAddress(
                        block.shared + tile * block.params.slabs * kSlabBytes +
                        part * kBlocks % 2 * kBlockBytes));
            }
            for (uint32_t unit = block.chunkOf(item); unit < block.params.units;
                 unit += block.params.chunks) {
                const bool isOwn = turns == 0;
                if (kTakesTurns) {
                    turns = (isOwn ? kParts : turns) - 1;
                }
                if (active && isOwn) {
                    takeUnit(
                            values,
                            left,
                            unit,
                            stage,
                            slot,
                            group,
                            test,
                            buffer);
                } else {
                    for (int slab = 0; slab < block.params.slabs; ++slab) {
                        waitFor(block.full(stage.at), stage.parity);
                        release(block.empty(stage.at));
                        stage.next(block.params.stages);
                    }
                }
                slot.next(block.layout.slots);
            }
            if (!kShape.streamed && !block.keepsTile(items, item)) {
                release(block.queriesEmpty(queries.at));
                queries.next(block.params.queryBuffers);
            }
            test.finish(
                    block.params,
                    block.chunkOf(item) * kShape.vectorParts() +
                            group / kShape.queryParts());
        }
        buffer.flush();
    }

    /// Each warp for itself: what another warp of the group still reads is no
    /// matter of this one.
    __device__ __forceinline__ void release(uint64_t* barrier) const {
        __syncwarp();
        if (threadIdx.x % kWarpSize == 0) {
            arrive(barrier);
        }
    }

    /// What a group's products of an item are made of.
    struct Left {
        uint64_t queries;           // descriptor, of those that stay
        uint32_t norms[kBlocks][2]; // LimitTest::normFactors
    };

    __device__ __forceinline__ void takeUnit(
            float (&values)[kBlocks][kWidth / 2],
            const Left& left,
            uint32_t unit,
            RingPlace& stage,
            const RingPlace& slot,
            int group,
            Test& test,
            Buffer& buffer) const {
        constexpr uint32_t kTiles = kShape.tilesOfUnit();
        const uint32_t column = unit * kShape.unit();
        const uint32_t first = firstOf(group);
        if constexpr (kRowBytes < 128) {
            // Several tiles a stage, of one slab.
            waitFor(block.full(stage.at), stage.parity);
            const uint64_t b = wgmma::descriptor<kRowBytes>(
                    sharedAddress(block.stageAt(stage.at)));
#pragma unroll 1
            for (uint32_t tile = 0; tile < kTiles; ++tile) {
                const uint32_t offset =
                        tile * TensorImageLayout::kTileRows + first;
                multiplyNorms(values, left, slot, offset);
                multiplySlab<kLastSteps>(
                        values,
                        left.queries,
                        b + offset * (kRowBytes / 16),
                        kIsL2);
                wgmma::wait<0>();
                if (tile == kTiles - 1) {
                    release(block.empty(stage.at));
                    stage.next(block.params.stages);
                }
                test.run(values, nullptr, column + offset, buffer);
            }
        } else {
            int before = 0;
            const int last = block.params.slabs - 1;
            for (int slab = 0; slab < last; ++slab) {
                const Operands operands =
                        nextSlab(left.queries, slab, stage, group);
                if (kIsL2 && slab == 0) {
                    multiplyNorms(values, left, slot, first);
                }
                multiplySlab<4>(
                        values,
                        operands.left,
                        operands.right,
                        kIsL2 || slab > 0);
                // The slab before has been read.
                if (slab > 0) {
                    wgmma::wait<1>();
                    release(block.empty(before));
                }
                before = stage.at;
                stage.next(block.params.stages);
            }
            const Operands operands =
                    nextSlab(left.queries, last, stage, group);
            if (kIsL2 && last == 0) {
                multiplyNorms(values, left, slot, first);
            }
            multiplySlab<kLastSteps>(
                    values, operands.left, operands.right, kIsL2 || last > 0);
            wgmma::wait<0>();
            if (last > 0) {
                release(block.empty(before));
            }
            release(block.empty(stage.at));
            stage.next(block.params.stages);
            test.run(values, nullptr, column + first, buffer);
        }
    }

    /// The first vector of a group's part of a tile.
    static __device__ __forceinline__ uint32_t firstOf(int group) {
        return uint32_t(group) / kShape.queryParts() * kWidth;
    }

    /// values = minus half of the norms, of the vectors from `offset` of the
    /// unit on.
    __device__ __forceinline__ void multiplyNorms(
            float (&values)[kBlocks][kWidth / 2],
            const Left& left,
            const RingPlace& slot,
            uint32_t offset) const {
        if constexpr (kIsL2) {
            const uint64_t b = wgmma::descriptor<32>(sharedAddress(
                                       block.normStepAt(slot.at))) +
                    offset * 2;
            wgmma::fence();
#pragma unroll
            for (int block = 0; block < kBlocks; ++block) {
                wgmma::multiplyOwn<kWidth>(values[block], left.norms[block], b);
            }
        }
    }

    struct Operands {
        uint64_t left;
        uint64_t right;
    };

    /// Waits for a slab. a: of the queries that stay.
    __device__ __forceinline__ Operands
    nextSlab(uint64_t a, int slab, const RingPlace& stage, int group) const {
        waitFor(block.full(stage.at), stage.parity);
        const uint64_t here =
                wgmma::descriptor<128>(sharedAddress(block.stageAt(stage.at)));
        if (kShape.streamed) {
            return {here + group * (kBlockBytes / 16), here + kSlabBytes / 16};
        }
        return {a + slab * (kSlabBytes / 16),
                here + firstOf(group) * (kRowBytes / 16)};
    }
};

} // namespace faiss_bits

/// One thread's part of the scan on Hopper: the copies.
#pragma once

#include "kernels/knn/fused/tensor/WgmmaBlock.cuh"

namespace faiss_bits {

/// The queries and vectors of all items of the block, slab by slab, and with
/// the first slab of some vectors their norm steps. One thread calls it.
template <bool kIsL2, int kRowBytes, bool kStreamed>
__device__ __forceinline__ void copySlabs(
        const WgmmaBlock<kRowBytes, kStreamed>& block) {
    using Block = WgmmaBlock<kRowBytes, kStreamed>;
    constexpr WgmmaShape kShape = Block::kShape;
    constexpr int kSlabBytes = Block::kSlabBytes;
    RingPlace stage;
    RingPlace slot;
    RingPlace buffer;
    const uint32_t tileBytes = block.params.slabs * kSlabBytes;
    const auto items = block.ownItems();
    bool isThere = false; // the tile of queries
    for (uint32_t item = items.first; item < items.last; item += items.step) {
        if (kIsL2 && block.isOfBytes(item)) {
            continue;
        }
        const uint32_t queryTile = block.tileOf(item);
        if (!kShape.streamed && !isThere) {
            const uint32_t bytes = 2 * tileBytes;
            waitFor(block.queriesEmpty(buffer.at), buffer.parity ^ 1);
            arriveExpecting(block.queriesFull(buffer.at), bytes);
            copyBulk(
                    block.shared + buffer.at * bytes,
                    block.params.queries + size_t(queryTile) * bytes,
                    bytes,
                    block.queriesFull(buffer.at));
            buffer.next(block.params.queryBuffers);
        }
        isThere = block.keepsTile(items, item);
        const uint8_t* queries =
                block.params.queries + size_t(queryTile) * tileBytes;
        for (uint32_t unit = block.chunkOf(item); unit < block.params.units;
             unit += block.params.chunks) {
            const uint8_t* vectors = block.params.vectors +
                    size_t(unit) * kShape.tilesOfUnit() * tileBytes;
            for (int slab = 0; slab < block.params.slabs; ++slab) {
                uint64_t* barrier = block.full(stage.at);
                waitFor(block.empty(stage.at), stage.parity ^ 1);
                uint32_t bytes = kShape.stageBytes();
                constexpr uint32_t kNormBytes = kShape.normBytes();
                const bool withNorms = kIsL2 && slab == 0;
                arriveExpecting(barrier, bytes + (withNorms ? kNormBytes : 0));
                if (withNorms) {
                    copyBulk(
                            block.normStepAt(slot.at),
                            block.params.normSteps + size_t(unit) * kNormBytes,
                            kNormBytes,
                            barrier);
                }
                uint8_t* to = block.stageAt(stage.at);
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
                stage.next(block.params.stages);
            }
            slot.next(block.layout.slots);
        }
    }
}

} // namespace faiss_bits

/// What those of a block share that copy and those that multiply, in the scan
/// on Hopper: places in shared memory, barriers, and the items of the block.
#pragma once

#include "kernels/knn/fused/ByteSearch.h"
#include "kernels/knn/fused/tensor/BulkPipeline.cuh"
#include "kernels/knn/fused/tensor/WgmmaShape.h"

namespace faiss_bits {

template <int kRowBytes, bool kStreamed>
struct WgmmaBlock {
    static constexpr WgmmaShape kShape{kRowBytes, kStreamed};
    static constexpr int kSlabBytes = TensorImageLayout::kTileRows * kRowBytes;
    static constexpr bool kMeetsBytes = kRowBytes == 128; // runByteScan()
    static_assert(
            !kMeetsBytes || ByteSearch::kTileQueries % kShape.queries() == 0);

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
    __device__ __forceinline__ uint8_t* normStepAt(int slot) const {
        return shared + layout.norms + slot * kShape.normBytes();
    }
    __device__ __forceinline__ uint8_t* stageAt(int stage) const {
        return shared + layout.stages + stage * kShape.stageBytes();
    }

    /// Items of this block: every step'th from `first` on before `last`.
    struct Items {
        uint32_t first;
        uint32_t last;
        uint32_t step;
    };
    __device__ __forceinline__ Items ownItems() const {
        if (params.chunksOfTile == 0) {
            return {blockIdx.x, params.items, gridDim.x};
        }
        const uint64_t items = params.items;
        return {uint32_t(items * blockIdx.x / gridDim.x),
                uint32_t(items * (blockIdx.x + 1) / gridDim.x),
                1};
    }
    __device__ __forceinline__ uint32_t tileOf(uint32_t item) const {
        return params.chunksOfTile == 0 ? item % params.queryTiles
                                        : item / params.chunksOfTile;
    }
    __device__ __forceinline__ uint32_t chunkOf(uint32_t item) const {
        return params.chunksOfTile == 0 ? item / params.queryTiles
                                        : item % params.chunksOfTile;
    }
    /// Whether another scan has the item (TensorScanParams::tileCosts).
    __device__ __forceinline__ bool isOfBytes(uint32_t item) const {
        if (!kMeetsBytes || !params.tileCosts) {
            return false;
        }
        const uint32_t query = tileOf(item) * kShape.queries();
        return params.tileCosts[query / ByteSearch::kTileQueries] <=
                params.mostTileCost;
    }
    /// Whether the next item of the block has the same queries.
    __device__ __forceinline__ bool keepsTile(const Items& items, uint32_t item)
            const {
        return params.chunksOfTile != 0 && item + 1 < items.last &&
                chunkOf(item + 1) != 0;
    }
};

} // namespace faiss_bits

/// What the kernels of a scan get, and how its work is cut.
#pragma once

#include <cstdint>

#include "kernels/knn/fused/PassedLists.h"
#include "kernels/knn/fused/tensor/NearestStrips.h"
#include "kernels/knn/fused/tensor/SpreadRows.h"
#include "kernels/knn/fused/tensor/StripKeys.h"
#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

/// An item of work is one tile of queries against one chunk of vectors: units
/// that lie as far apart as there are chunks, as neighbours are often alike and
/// what passes takes a block time (vectors stored cluster by cluster). Items
/// are numbered with the tile of queries fastest, and blocks take them in
/// turn: those at work at a time read the same few chunks, from L2. By wgmma
/// they may be numbered with the chunk fastest, and a block takes some side by
/// side (chunksOfTile).
struct TensorScanParams {
    const uint8_t* vectors;        // pieces of the image
    const uint8_t* normSteps;      // of the image: L2 by wgmma
    const float* norms;            // [padded n], +inf behind n
    const TensorImageFacts* facts; // of the vectors
    SpreadRows rows;               // which vectors rows are
    const uint8_t* queries;        // pieces of the image
    const float* inverses;         // [padded q] 1 / scale
    const float* queryNorms;       // [q] |q|^2: L2
    const uint32_t* allowedBits;   // [n / 32], or nullptr
    PassedLists passed;
    // In place of passed.
    NearestStrips nearest;
    StripKeys strips;
    uint32_t numQueries;
    uint32_t numVectors;
    int slabs;        // of a row
    int lastSteps;    // of 16 components in the last one, of bytes 32
    int stages;       // of the stream through shared memory
    int queryBuffers; // 2: the next tile of queries is read ahead
    uint32_t units;   // steps of vectors: kUnit of the shape
    uint32_t chunks;  // chunk i has the units i, i + chunks, i + 2 chunks ...
    uint32_t unitsPerChunk; // at most
    uint32_t queryTiles;
    uint32_t items;
    uint32_t chunksOfTile; // 0: the tile of queries is fastest
    // nullptr, or of each ByteSearch::kTileQueries: up to this cost they are
    // for the scan in 8 bits (ByteScan.h), and no other takes them.
    const uint32_t* tileCosts;
    uint32_t mostTileCost;
};

/// Strips of a lane's columns in an item, where it has so many blocks of rows
/// (StripTest).
template <int kBlocks>
constexpr int kStripGroups = kBlocks > 2 ? 1 : 4;

/// The largest number of vectors of one step is TensorImageLayout::kRowPadding.
static_assert(TensorImageLayout::kRowPadding % 512 == 0);

} // namespace faiss_bits

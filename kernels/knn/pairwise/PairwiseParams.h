#pragma once

#include "kernels/common/Types.h"

namespace faiss_bits {

/// The vectors, or the queries, of one tile of distances.
struct PairwiseRows {
    const void* data = nullptr; // component c of row r: r * rowStride + c *
    idx_t rowStride = 0;        //   columnStride elements on
    idx_t columnStride = 1;
    idx_t count = 0;
    /// What the metric wants to know of each row (RowFacts), below 0 for rows
    /// that the fast arithmetic is not for; nullptr if it wants nothing.
    const float* facts = nullptr; // [count]
    DataType type = DataType::Float32;
    /// Components are next to each other, and every fourth is aligned to the
    /// size of four.
    bool quads = false;
};

/// What pairwiseKernel gets by value.
struct PairwiseParams {
    PairwiseRows vectors;
    PairwiseRows queries;
    float* distances = nullptr; // [queries.count, distanceStride]
    idx_t distanceStride = 0;
    unsigned queryTiles = 1; // tiles of queries beside each other in the grid
    int d = 0;
    float power = 0;         // p of an Lp metric
    bool quadStores = false; // every fourth distance of a row is aligned to 16
};

/// Queries and vectors that a block takes. All have the same arithmetic.
enum class PairwiseShape {
    FourQueries,    ///< 4 x 256
    SixteenQueries, ///< 16 x 256
    ManyQueries     ///< 128 x 128
};

/// Up to this many, tiles of sixteen queries leave less undone than tiles of
/// 128, which do the same work in less time.
constexpr idx_t kMostQueriesBySixteen = 96;

constexpr PairwiseShape pairwiseShape(idx_t queries) {
    return queries <= 4                        ? PairwiseShape::FourQueries
            : queries <= kMostQueriesBySixteen ? PairwiseShape::SixteenQueries
                                               : PairwiseShape::ManyQueries;
}

} // namespace faiss_bits

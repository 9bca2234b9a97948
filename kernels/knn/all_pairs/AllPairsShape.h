/// How searches by all pairs are cut.
#pragma once

#include <algorithm>

#include "kernels/knn/all_pairs/AllPairsKnn.h"

namespace faiss_bits {

/// The matrix stays in L2 between its two kernels.
constexpr size_t kPairBytes = size_t(24) << 20;
/// Products and distances of some queries: more than L2 holds, as cuBLAS wants
/// many tiles.
constexpr size_t kProductBytes = size_t(128) << 20;
constexpr idx_t kLeastPairQueries = 64;
/// More are better found by a sample, or by their nearest ones.
constexpr idx_t kMostPairVectors = 16384;
/// The same where products go through memory.
constexpr idx_t kMostWideVectors = 131072;
/// Whether plans choose products by themselves: their model is arithmetic, and
/// no GPU has timed them yet. Without it they are for who asks for them.
constexpr bool kChoosesProducts = false;

/// Of a row of the matrix: rows begin on 32 bytes.
inline idx_t allPairsStride(const FlatKnnProblem& p) {
    constexpr idx_t kStep = 8;
    return (p.numVectors + kStep - 1) / kStep * kStep;
}

/// Queries of a launch.
inline idx_t mostPairQueries(idx_t stride, AllPairsBy by) {
    const size_t bytes = by == AllPairsBy::Products
            ? kProductBytes / (sizeof(double) + sizeof(float))
            : kPairBytes / sizeof(float);
    return std::max<idx_t>(bytes / stride, kLeastPairQueries);
}

} // namespace faiss_bits

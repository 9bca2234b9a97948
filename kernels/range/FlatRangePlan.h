#pragma once

#include <string>

#include "kernels/knn/fused/FusedMethod.h"
#include "kernels/range/FlatRange.h"

namespace faiss_bits {

struct FlatRangePlan {
    /// That finds what may be in range.
    const FusedMethod* method = nullptr;
    idx_t tileQueries = 0; ///< scanned for together
    /// The words of a row, which hold a bit for every vector, are cut into
    /// items: of so many words, a multiple of 32.
    uint32_t itemWords = 0;
    /// Candidates that are scored together, at least those of an item.
    idx_t capacity = 0;
    /// Queries whose distances to all vectors fit into the same memory; 0:
    /// no tiles of all pairs.
    idx_t matrixQueries = 0;
    /// Of all pairs of a tile, from which on they have distances.
    double matrixShare = 1;
    size_t bytes = 0;

    /// One line.
    std::string toString() const;
};

/// Words of a row.
constexpr uint64_t rangeWords(idx_t numVectors) {
    return uint64_t(numVectors + 31) / 32;
}

/// Items of a row; one where there are no vectors.
constexpr uint32_t rangeItems(idx_t numVectors, uint32_t itemWords) {
    const uint64_t words = rangeWords(numVectors);
    return words == 0 ? 1 : uint32_t((words + itemWords - 1) / itemWords);
}

/// Elements of a row of the matrix of distances: a multiple of 32 bytes.
constexpr idx_t rangeStride(idx_t numVectors) {
    return (numVectors + 7) / 8 * 8;
}

} // namespace faiss_bits

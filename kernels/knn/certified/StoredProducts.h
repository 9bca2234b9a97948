#pragma once

#include <cstdint>

namespace faiss_bits {

/// Sums of products that were computed elsewhere, in float64 and in any order,
/// and the squared norms of the rows that they are of: of rows less a center,
/// the same for all, in L2. On the device.
struct StoredProducts {
    const double* products = nullptr;  // [queries, stride]
    int64_t stride = 0;                // a multiple of 4
    const double* ofVectors = nullptr; // [n]
    const double* ofQueries = nullptr; // [queries]
    /// Two words: not 0 where the components of vectors, or of queries, or of
    /// the center are not all integers, or a square is not small (EstimateRow).
    const uint32_t* areNotIntegers = nullptr;
};

} // namespace faiss_bits

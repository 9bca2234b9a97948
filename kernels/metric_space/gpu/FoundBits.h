#pragma once

#include "kernels/metric_space/gpu/SearchParams.h"

/// Results of a range search as bits, and how they become lists: by counts,
/// sums of them and one more look at the vectors that are in range, in the
/// order of their ids. Nothing is sorted, and nothing overflows.
namespace faiss_bits::metric_space {

/// Words of an item, which one warp counts and writes.
constexpr uint32_t kItemWords = 256;

/// Items of a query, one at least.
inline uint32_t bitItems(idx_t numIds) {
    const idx_t ids = kItemWords * 32;
    return uint32_t(numIds <= ids ? 1 : (numIds + ids - 1) / ids);
}

/// Bits of some queries.
struct FoundBits {
    const uint32_t* bits = nullptr; ///< [rows, items, kItemWords]
    uint32_t rows = 0;              ///< queries
    uint32_t items = 0;             ///< of a query
    uint32_t* counts = nullptr;     ///< [rows, items] results
    uint32_t* places = nullptr;     ///< [rows, items] results before
};

/// counts, places and limits [rows + 1]. Fewer than 2^32 results.
void launchBitLimits(
        const FoundBits& found,
        idx_t* limits,
        cudaStream_t stream);

/// Results of the queries from first to first + rows - 1, of which `before` are
/// before them in all: canonical distances, and ids in ascending order.
///
/// vectors   [numIds, d] by their ids
void launchBitResults(
        const FoundBits& found,
        const SearchParams& params,
        const float* vectors,
        uint32_t first,
        uint32_t rows,
        idx_t before,
        float* distances,
        idx_t* ids,
        cudaStream_t stream);

} // namespace faiss_bits::metric_space

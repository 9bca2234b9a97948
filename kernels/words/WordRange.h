#pragma once

#include <cstdint>
#include <vector>

#include "kernels/common/Types.h"

namespace faiss_bits::words {

/// All words near enough to queries, query after query.
struct WordRange {
    std::vector<idx_t> limits; ///< [queries + 1]; i: limits[i] .. limits[i + 1]
    std::vector<int32_t> distances; ///< [limits.back()]
    std::vector<idx_t> ids;         ///< ascending within a query
};

} // namespace faiss_bits::words

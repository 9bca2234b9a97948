#pragma once

#include <vector>

#include "faiss_bits/common/HostParts.h"

namespace faiss {
struct RangeSearchResult;
}

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// Results of some queries on the host, query after query.
struct FoundRanges {
    std::vector<size_t> limits = {0}; ///< [queries + 1]
    UnclearedVector<float> distances;
    UnclearedVector<idx_t> ids; ///< ascending within a query

    size_t numQueries() const {
        return limits.size() - 1;
    }
    /// Those of the queries behind ours.
    void append(const FoundRanges& more);
    /// result.nq must be the number of queries.
    void copyTo(faiss::RangeSearchResult& result) const;
};

} // namespace faiss_bits::gpu::detail

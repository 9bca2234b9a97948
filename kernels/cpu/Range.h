#pragma once

#include <vector>

#include "kernels/cpu/Problem.h"

namespace faiss_bits::cpu {

/// All vectors nearer than a radius, query after query.
template <class T>
struct RangeResult {
    std::vector<idx_t>
            limits; ///< [numQueries + 1]; query i: limits[i] .. limits[i + 1]
    std::vector<T> distances; ///< [limits.back()]
    /// Within a query as the search says: runRange by ascending number of the
    /// vectors, runIvfRange (ivf/IvfRange.h) list by list.
    std::vector<idx_t> ids;
};

/// All vectors with distance < radius (similarity > radius), as FAISS's
/// range_search. Modes, arithmetic, threads and errors as runKnn (Knn.h).
template <class T>
RangeResult<T> runRange(const Problem<T>& problem, T radius);

} // namespace faiss_bits::cpu

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
    std::vector<idx_t> ids;   ///< ascending within a query
};

/// All vectors with distance < radius (similarity > radius), as FAISS's
/// range_search. Modes, arithmetic, threads and errors as runKnn (Knn.h).
template <class T>
RangeResult<T> runRange(const Problem<T>& problem, T radius);

} // namespace faiss_bits::cpu

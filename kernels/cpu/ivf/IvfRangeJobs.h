#pragma once

#include <vector>

#include "kernels/cpu/ivf/IvfChecks.h"
#include "kernels/cpu/ivf/IvfRange.h"

namespace faiss_bits::cpu {

/// Work between two calls of the interrupt hook, for one thread, in operations:
/// about 20 ms.
constexpr double kIvfRangeOperations = 5e8;

/// Places of a list that count; nullptr: all.
inline const IvfPlaces* allowedPlaces(const IvfRangeProblem& p, idx_t list) {
    return p.allowed ? p.allowed + list : nullptr;
}

/// What a thread does at a time: some lists of a query, those of probes begin
/// .. end - 1; or `columns` of the places that count of the first of them.
struct IvfRangeJob {
    idx_t query, begin, end;
    idx_t first, columns; ///< columns < 0: whole lists
    idx_t pairs;          ///< of the query and a vector, at most
    idx_t block;          ///< of results; below 0: that of the thread
};

/// Jobs by ascending queries, and then probes. Queries are whole, but those
/// that are much work for a thread, or where there is a hook, without a call of
/// it. `pairs`: of the queries.
///
/// The results of a query in parts go to blocks of their own, from number
/// `threads` on, in the order of the parts; numBlocks: those and the threads'.
std::vector<IvfRangeJob> cutIvfRange(
        const IvfRangeProblem& problem,
        const std::vector<idx_t>& pairs,
        int threads,
        idx_t& numBlocks);

} // namespace faiss_bits::cpu

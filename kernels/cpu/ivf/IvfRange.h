#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/common/SearchMode.h"
#include "kernels/cpu/Range.h"
#include "kernels/cpu/ivf/IvfKnn.h"

namespace faiss_bits::cpu {

/// All vectors nearer than a radius among those in the lists of each query.
struct IvfRangeProblem {
    Metric metric = Metric::L2; ///< or InnerProduct
    int d = 0;                  ///< components of a row, 1 or more

    idx_t numQueries = 0;
    const float* queries = nullptr; ///< [numQueries, d]
    float radius = 0;               ///< a number

    const IvfLists* lists = nullptr;
    idx_t numLists = 0;
    idx_t nprobe = 0; ///< lists of a query, 1 or more
    /// [numQueries, nprobe] numbers of lists; below 0: none. A list that is
    /// named twice is searched twice.
    const idx_t* probes = nullptr;
    /// [numLists] Places of each list to search in, ascending; of the lists in
    /// `probes` alone they are read. nullptr: all.
    const IvfPlaces* allowed = nullptr;

    int threads = 0;              ///< 0: as many as OpenMP would use
    std::string target;           ///< instruction set, as Choice::target
    SearchStats* stats = nullptr; ///< what was done is added to it; may be null
    /// Called now and then on the calling thread, never inside the parallel
    /// loops; what it throws ends the search.
    std::function<void()> interrupt;
};

/// All vectors with distance < radius (similarity > radius).
///
/// Result   canonical distances (kernels/canonical/Distance.h), which the
///          radius is compared with; those of a query list by list, in the
///          order of its probes, and by ascending place in a list. A vector at
///          NaN is no result. The same bits for every target, batch and number
///          of threads
/// Threads  OpenMP: over the queries, or over their lists where queries are
///          few. Safe to call from several threads
/// Errors   throws Error that names a bad argument and its value
/// Cost     one read of a list for each query that probes it
RangeResult<float> runIvfRange(const IvfRangeProblem& problem);

} // namespace faiss_bits::cpu

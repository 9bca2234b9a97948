#pragma once

#include <string>

#include "kernels/cpu/Range.h"
#include "kernels/cpu/ivf/IvfProblem.h"

namespace faiss_bits::cpu {

/// All vectors nearer than a radius among those in the lists of each query.
struct IvfRangeProblem : IvfProblem {
    float radius = 0;   ///< a number
    std::string target; ///< instruction set, as Choice::target
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

#include "kernels/cpu/Range.h"

#include <cmath>
#include <vector>

#include "kernels/common/Error.h"
#include "kernels/cpu/CertifiedRange.h"
#include "kernels/cpu/RangeSweep.h"
#include "kernels/cpu/SearchPlan.h"

namespace faiss_bits::cpu {

template <class T>
RangeResult<T> runRange(const Problem<T>& problem, T radius) {
    const Setup<T> setup = checkProblem(problem, false);
    BITS_THROW_IF_NOT_FMT(
            problem.choice.arithmetic != Arithmetic::Int16 &&
                    problem.choice.arithmetic != Arithmetic::Bytes &&
                    problem.choice.arithmetic != Arithmetic::Doubles,
            "choice.arithmetic = %s is not for a range search",
            nameOf(problem.choice.arithmetic));
    const Plan plan = planSearch(setup, problem, 0, false);
    RangeResult<T> result;
    result.limits.reserve(setup.numQueries + 1);
    result.limits.push_back(0);
    // Nothing is less than NaN.
    if (setup.numQueries == 0 || setup.numVectors == 0 || std::isnan(radius)) {
        result.limits.resize(setup.numQueries + 1, 0);
        return result;
    }
    const T limit = setup.similarity ? -radius : radius;
    const bool isPlain = problem.mode == SearchMode::Plain;
    if (!isPlain && !isAlwaysCanonical(setup.metric)) {
        runCertifiedRange(problem, setup, limit, result);
        return result;
    }
    const std::vector<T> limits(setup.numQueries, limit);
    sweepRange(setup, plan, limits.data(), [&](idx_t, RangeHits<T> hits) {
        appendHits(setup, hits, result);
    });
    if (!isPlain && problem.stats) {
        problem.stats->certified += setup.numQueries;
    }
    return result;
}

template RangeResult<float> runRange(const Problem<float>&, float);
template RangeResult<double> runRange(const Problem<double>&, double);

} // namespace faiss_bits::cpu

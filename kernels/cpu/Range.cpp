#include "kernels/cpu/Range.h"

#include <cmath>
#include <vector>

#include "kernels/common/Error.h"
#include "kernels/cpu/CertifiedRange.h"
#include "kernels/cpu/RangeSweep.h"
#include "kernels/cpu/SearchPlan.h"

namespace faiss_bits::cpu {

namespace {

/// The next query of a result.
template <class T>
void appendHits(
        const Setup<T>& setup,
        const RangeSelection<T>& selection,
        idx_t row,
        RangeResult<T>& to) {
    for (int part = 0; part < selection.parts(); ++part) {
        for (const RangeHit<T>& hit : selection.hits(part, row)) {
            to.distances.push_back(setup.similarity ? T(0) - hit.key : hit.key);
            to.ids.push_back(setup.idOf(hit.id));
        }
    }
    to.limits.push_back(idx_t(to.ids.size()));
}

} // namespace

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
        return runCertifiedRange(problem, setup, limit);
    }
    const std::vector<T> limits(setup.numQueries, limit);
    sweepRange(
            setup,
            plan,
            limits.data(),
            [&](idx_t, idx_t rows, const RangeSelection<T>& selection) {
                for (idx_t row = 0; row < rows; ++row) {
                    appendHits(setup, selection, row, result);
                }
            });
    if (!isPlain && problem.stats) {
        problem.stats->certified += setup.numQueries;
    }
    return result;
}

template RangeResult<float> runRange(const Problem<float>&, float);
template RangeResult<double> runRange(const Problem<double>&, double);

} // namespace faiss_bits::cpu

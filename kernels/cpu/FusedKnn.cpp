#include "kernels/cpu/FusedKnn.h"

#include "kernels/common/Error.h"
#include "kernels/cpu/FusedRun.h"
#include "kernels/cpu/FusedSearch.h"

namespace faiss_bits {

namespace {

template <class T>
FusedSetup<T> checkKnn(const FusedKnnProblem<T>& problem, bool shapeOnly) {
    BITS_THROW_IF_NOT_FMT(
            problem.k >= 1, "k = %lld is below 1", (long long)problem.k);
    FusedSetup<T> setup = checkFused(problem, shapeOnly);
    if (!shapeOnly && problem.numQueries > 0) {
        BITS_THROW_IF_NOT_FMT(problem.outDistances, "outDistances is null");
        BITS_THROW_IF_NOT_FMT(problem.outIds, "outIds is null");
    }
    return setup;
}

} // namespace

template <class T>
void runFusedKnn(const FusedKnnProblem<T>& problem) {
    const FusedSetup<T> setup = checkKnn(problem, false);
    runPlanned(problem, setup, planFused(setup, problem, problem.k, false));
}

template <class T>
FusedPlan planFusedKnn(const FusedKnnProblem<T>& problem) {
    return planFused(checkKnn(problem, true), problem, problem.k, true);
}

template void runFusedKnn(const FusedKnnProblem<float>&);
template void runFusedKnn(const FusedKnnProblem<double>&);
template FusedPlan planFusedKnn(const FusedKnnProblem<float>&);
template FusedPlan planFusedKnn(const FusedKnnProblem<double>&);

} // namespace faiss_bits

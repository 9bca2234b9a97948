#include "kernels/cpu/Knn.h"

#include <algorithm>
#include <type_traits>

#include "kernels/common/Error.h"
#include "kernels/cpu/AllPairs.h"
#include "kernels/cpu/Certified.h"
#include "kernels/cpu/Int16.h"
#include "kernels/cpu/Run.h"
#include "kernels/cpu/SearchPlan.h"

namespace faiss_bits::cpu {

namespace {

template <class T>
Setup<T> checkKnn(const KnnProblem<T>& problem, bool shapeOnly) {
    BITS_THROW_IF_NOT_FMT(
            problem.k >= 1, "k = %lld is below 1", (long long)problem.k);
    Setup<T> setup = checkProblem(problem, shapeOnly);
    if (!shapeOnly && problem.numQueries > 0) {
        BITS_THROW_IF_NOT_FMT(problem.outDistances, "outDistances is null");
        BITS_THROW_IF_NOT_FMT(problem.outIds, "outIds is null");
    }
    return setup;
}

} // namespace

template <class T>
void runKnn(const KnnProblem<T>& problem) {
    const Setup<T> setup = checkKnn(problem, false);
    if (problem.choice.arithmetic != Arithmetic::Auto) {
        // These throw where they are forced and cannot run, whatever follows.
        isForInt16(setup, problem);
        allPairsFor(setup, problem, problem.k, true);
    }
    const bool isPlain = problem.mode == SearchMode::Plain;
    if (!isPlain && !isAlwaysCanonical(setup.metric)) {
        runCertified(problem, setup);
        return;
    }
    runPlanned(problem, setup, planSearch(setup, problem, problem.k, false));
    if (!isPlain && problem.stats) {
        problem.stats->certified += setup.numQueries;
    }
}

template <class T>
Plan planKnn(const KnnProblem<T>& problem) {
    Setup<T> setup = checkKnn(problem, true);
    const AllPairs way = allPairsFor(
            setup, problem, std::min(problem.k, setup.numVectors), true);
    const bool isAllPairs = way != AllPairs::None;
    const bool byInt16 = !isAllPairs && isForInt16(setup, problem);
    if constexpr (std::is_same_v<T, float>) {
        sweepAllPairs(setup, way);
        if (byInt16) {
            sweepByInt16(setup);
        }
    }
    // An empty index still has a plan of a search, not of a range search.
    const auto least = [](idx_t count) { return std::max<idx_t>(1, count); };
    if (way == AllPairs::Rows) {
        KnnProblem<T> direct = problem;
        direct.choice.variant = Variant::Direct;
        setup.byDoubles = true;
        return planSearch(setup, direct, least(problem.k), true);
    }
    if (problem.mode == SearchMode::Plain || isAllPairs ||
        isAlwaysCanonical(setup.metric)) {
        return planSearch(setup, problem, least(problem.k), true);
    }
    const idx_t k = std::min(problem.k, setup.numVectors);
    const idx_t candidates = withMargin(
            k, {setup.metric, setup.depth, setup.numVectors, byInt16});
    return planCandidates(setup, problem, least(k), least(candidates), true);
}

template void runKnn(const KnnProblem<float>&);
template void runKnn(const KnnProblem<double>&);
template Plan planKnn(const KnnProblem<float>&);
template Plan planKnn(const KnnProblem<double>&);

} // namespace faiss_bits::cpu

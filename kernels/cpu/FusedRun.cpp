#include "kernels/cpu/FusedRun.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/cpu/FusedSelection.h"

namespace faiss_bits {

namespace {

/// Batches whose threads share the vectors.
template <class T>
void runAcrossVectors(
        const FusedKnnProblem<T>& problem,
        const FusedSetup<T>& setup,
        const FusedPlan& plan,
        idx_t k) {
    const idx_t batch = std::min<idx_t>(plan.batchQueries, setup.numQueries);
    FusedSelection<T> selection(
            setup, plan, k, batch, plan.threads, plan.threads);
    for (idx_t begin = 0; begin < setup.numQueries; begin += batch) {
        const idx_t rows = std::min(batch, setup.numQueries - begin);
        selection.reset();
        sweepByVectors(
                setup, plan, begin, rows, selection.sinks(), selection.parts());
        selection.finish(
                rows,
                problem.outDistances + begin * problem.k,
                problem.outIds + begin * problem.k,
                problem.k);
    }
}

/// Batches whose threads share the queries.
template <class T>
void runByBatch(
        const FusedKnnProblem<T>& problem,
        const FusedSetup<T>& setup,
        const FusedPlan& plan,
        idx_t k) {
    const idx_t batch = std::min<idx_t>(plan.batchQueries, setup.numQueries);
    FusedSelection<T> selection(setup, plan, k, batch, 1, plan.threads);
    FusedSink<T>& sink = selection.sinks()[0];
    QuerySweep<T> sweep(setup, plan, batch);
    for (idx_t begin = 0; begin < setup.numQueries; begin += batch) {
        const idx_t rows = std::min(batch, setup.numQueries - begin);
        selection.reset();
        std::function<void(idx_t, idx_t)> blockDone;
        if (plan.variant == FusedVariant::Var5) {
            sink.firstId = 0;
            blockDone = [&](idx_t first, idx_t count) {
                selection.takeBlock(first, count, rows);
            };
        }
        sweep.run(begin, rows, sink, blockDone);
        selection.finish(
                rows,
                problem.outDistances + begin * problem.k,
                problem.outIds + begin * problem.k,
                problem.k);
    }
}

/// Every thread selects for the block of queries that it works on, and
/// finishes it: the candidates stay in its own cache.
template <class T>
void runByBlock(
        const FusedKnnProblem<T>& problem,
        const FusedSetup<T>& setup,
        const FusedPlan& plan,
        idx_t k) {
    QuerySweep<T> sweep(setup, plan, setup.numQueries);
    std::vector<FusedSelection<T>> selections;
    selections.reserve(plan.threads);
    for (int thread = 0; thread < plan.threads; ++thread) {
        selections.emplace_back(setup, plan, k, sweep.blockRows(), 1, 1);
    }
    sweep.runApart(
            [&](int thread) {
                selections[thread].reset();
                return selections[thread].sinks();
            },
            [&](int thread, idx_t row, idx_t rows) {
                selections[thread].finish(
                        rows,
                        problem.outDistances + row * problem.k,
                        problem.outIds + row * problem.k,
                        problem.k);
            });
}

} // namespace

template <class T>
void runPlanned(
        const FusedKnnProblem<T>& problem,
        const FusedSetup<T>& setup,
        const FusedPlan& plan) {
    const idx_t k = std::min(problem.k, setup.numVectors);
    if (setup.numQueries == 0) {
        return;
    }
    if (k == 0) {
        const T none = setup.similarity ? std::numeric_limits<T>::lowest()
                                        : std::numeric_limits<T>::max();
        std::fill_n(problem.outDistances, setup.numQueries * problem.k, none);
        std::fill_n(problem.outIds, setup.numQueries * problem.k, idx_t(-1));
        return;
    }
    if (plan.acrossVectors) {
        runAcrossVectors(problem, setup, plan, k);
    } else if (plan.selectsByBlock) {
        runByBlock(problem, setup, plan, k);
    } else {
        runByBatch(problem, setup, plan, k);
    }
}

#define INSTANTIATE(T)                 \
    template void runPlanned(          \
            const FusedKnnProblem<T>&, \
            const FusedSetup<T>&,      \
            const FusedPlan&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace faiss_bits

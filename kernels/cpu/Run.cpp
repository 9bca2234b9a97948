#include "kernels/cpu/Run.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/cpu/KnnSelection.h"
#include "kernels/cpu/Sweep.h"

namespace faiss_bits::cpu {

namespace {

/// Queries of the next batch. A certified search begins with few, to see
/// whether its candidates are of any use; 0: they are not.
template <class T>
idx_t rowsOfBatch(
        const Setup<T>& setup,
        const Plan& plan,
        idx_t begin,
        const Certifier<T>* certifier) {
    const idx_t rows =
            std::min<idx_t>(plan.batchQueries, setup.numQueries - begin);
    if (!certifier) {
        return rows;
    }
    const idx_t few = 16 * plan.tileQueries;
    if (begin == 0 && rows > 2 * few) {
        return few;
    }
    return certifier->isHopeless() ? 0 : rows;
}

/// Batches whose threads share the vectors.
template <class T>
void runAcrossVectors(
        const Setup<T>& setup,
        const Plan& plan,
        idx_t k,
        const KnnOutput<T>& out,
        Certifier<T>* certifier) {
    const idx_t batch = std::min<idx_t>(plan.batchQueries, setup.numQueries);
    KnnSelection<T> selection(
            setup, plan, k, batch, plan.threads, plan.threads);
    for (idx_t begin = 0; begin < setup.numQueries;) {
        const idx_t rows = rowsOfBatch(setup, plan, begin, certifier);
        if (rows == 0) {
            break;
        }
        selection.reset(certifier);
        sweepByVectors(
                setup, plan, begin, rows, selection.sinks(), selection.parts());
        selection.finish(rows, begin, out, certifier);
        begin += rows;
    }
}

/// Batches whose threads share the queries.
template <class T>
void runByBatch(
        const Setup<T>& setup,
        const Plan& plan,
        idx_t k,
        const KnnOutput<T>& out,
        Certifier<T>* certifier) {
    const idx_t batch = std::min<idx_t>(plan.batchQueries, setup.numQueries);
    KnnSelection<T> selection(setup, plan, k, batch, 1, plan.threads);
    Sink<T>& sink = selection.sinks()[0];
    QuerySweep<T> sweep(setup, plan, batch);
    for (idx_t begin = 0; begin < setup.numQueries;) {
        const idx_t rows = rowsOfBatch(setup, plan, begin, certifier);
        if (rows == 0) {
            break;
        }
        selection.reset(certifier);
        std::function<void(idx_t, idx_t)> blockDone;
        if (plan.variant == Variant::Var5) {
            sink.firstId = 0;
            blockDone = [&](idx_t first, idx_t count) {
                selection.takeBlock(first, count, rows);
            };
        }
        sweep.run(begin, rows, sink, blockDone);
        selection.finish(rows, begin, out, certifier);
        begin += rows;
    }
}

/// Every thread selects for the block of queries that it works on, and
/// finishes it: the candidates stay in its own cache.
template <class T>
void runByBlock(
        const Setup<T>& setup,
        const Plan& plan,
        idx_t k,
        const KnnOutput<T>& out,
        Certifier<T>* certifier) {
    QuerySweep<T> sweep(setup, plan, setup.numQueries);
    std::vector<KnnSelection<T>> selections;
    selections.reserve(plan.threads);
    for (int thread = 0; thread < plan.threads; ++thread) {
        selections.emplace_back(setup, plan, k, sweep.blockRows(), 1, 1);
    }
    sweep.runApart(
            [&](int thread) -> Sink<T>* {
                if (certifier && certifier->isHopeless()) {
                    return nullptr;
                }
                selections[thread].reset(certifier);
                return selections[thread].sinks();
            },
            [&](int thread, idx_t row, idx_t rows) {
                selections[thread].finish(rows, row, out, certifier);
            });
}

} // namespace

template <class T>
void runSweep(
        const Setup<T>& setup,
        const Plan& plan,
        idx_t k,
        const KnnOutput<T>& out,
        Certifier<T>* certifier) {
    if (plan.acrossVectors) {
        runAcrossVectors(setup, plan, k, out, certifier);
    } else if (plan.selectsByBlock) {
        runByBlock(setup, plan, k, out, certifier);
    } else {
        runByBatch(setup, plan, k, out, certifier);
    }
}

template <class T>
void runPlanned(
        const KnnProblem<T>& problem,
        const Setup<T>& setup,
        const Plan& plan) {
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
    const KnnOutput<T> out = {
            problem.outDistances, problem.outIds, problem.k, nullptr};
    runSweep<T>(setup, plan, k, out, nullptr);
}

#define INSTANTIATE(T)           \
    template void runSweep(      \
            const Setup<T>&,     \
            const Plan&,         \
            idx_t,               \
            const KnnOutput<T>&, \
            Certifier<T>*);      \
    template void runPlanned(    \
            const KnnProblem<T>&, const Setup<T>&, const Plan&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace faiss_bits::cpu

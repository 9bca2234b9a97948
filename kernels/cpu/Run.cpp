#include "kernels/cpu/Run.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/cpu/KnnSelection.h"
#include "kernels/cpu/ParallelFor.h"
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

/// The selection of a thread: rows of a block, or of several, which wait to be
/// finished together.
template <class T>
struct BlockRows {
    KnnSelection<T> selection;
    std::vector<idx_t> queries; ///< of the rows that are in use
};

/// What is left in the end goes to all threads, in even shares.
template <class T>
void finishLeft(
        const Setup<T>& setup,
        const Plan& plan,
        std::vector<BlockRows<T>>& all,
        const KnnOutput<T>& out,
        Certifier<T>& certifier) {
    idx_t left = 0;
    for (const BlockRows<T>& each : all) {
        left += idx_t(each.queries.size());
    }
    const idx_t share = (left + plan.threads - 1) / plan.threads;
    struct Part {
        KnnSelection<T>* selection;
        typename KnnSelection<T>::Rows rows;
    };
    std::vector<Part> parts;
    for (BlockRows<T>& each : all) {
        const idx_t count = idx_t(each.queries.size());
        for (idx_t row = 0; row < count; row += share) {
            parts.push_back(
                    {&each.selection,
                     {row,
                      std::min(share, count - row),
                      0,
                      each.queries.data() + row}});
        }
    }
    parallelFor(
            setup.team,
            plan.threads,
            idx_t(parts.size()),
            [&](idx_t i, int thread) {
                parts[i].selection->finishTogether(
                        parts[i].rows, out, certifier, all[thread].selection);
            });
}

/// Every thread selects for the block of queries that it works on, and
/// finishes it: the candidates stay in its own cache. Certified, it finishes
/// some blocks together, as a vector that is read may be a candidate in each of
/// them; but the first one alone, to see whether candidates are of any use.
template <class T>
void runByBlock(
        const Setup<T>& setup,
        const Plan& plan,
        idx_t k,
        const KnnOutput<T>& out,
        Certifier<T>* certifier) {
    QuerySweep<T> sweep(setup, plan, setup.numQueries);
    const idx_t blockRows = sweep.blockRows();
    const idx_t room = certifier
            ? std::max<idx_t>(blockRows, plan.pooledQueries)
            : blockRows;
    std::vector<BlockRows<T>> all;
    all.reserve(plan.threads);
    for (int thread = 0; thread < plan.threads; ++thread) {
        all.push_back({KnnSelection<T>(setup, plan, k, room, 1, 1), {}});
        all.back().queries.reserve(room);
    }
    sweep.runApart(
            [&](int thread) -> typename QuerySweep<T>::Place {
                BlockRows<T>& mine = all[thread];
                if (certifier && certifier->isHopeless()) {
                    return {};
                }
                if (mine.queries.empty()) {
                    mine.selection.reset(certifier);
                }
                return {mine.selection.sinks(), idx_t(mine.queries.size())};
            },
            [&](int thread, idx_t query, idx_t rows) {
                BlockRows<T>& mine = all[thread];
                if (!certifier) {
                    mine.selection.finish(rows, query, out, nullptr);
                    return;
                }
                for (idx_t i = 0; i < rows; ++i) {
                    mine.queries.push_back(query + i);
                }
                const idx_t used = idx_t(mine.queries.size());
                if (used + blockRows > room || certifier->isUntried()) {
                    mine.selection.finishTogether(
                            {0, used, 0, mine.queries.data()},
                            out,
                            *certifier,
                            mine.selection);
                    mine.queries.clear();
                }
            });
    if (certifier && !certifier->isHopeless()) {
        finishLeft(setup, plan, all, out, *certifier);
    }
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

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "kernels/common/Error.h"
#include "kernels/cpu/FusedKnn.h"
#include "kernels/cpu/FusedParallel.h"
#include "kernels/cpu/FusedSearch.h"

namespace faiss_bits {

namespace {

/// The sinks of a batch of queries: one for each part of the vectors.
template <class T>
class RangeSelection {
   public:
    RangeSelection(
            const FusedSetup<T>& setup,
            const FusedPlan& plan,
            T limit,
            idx_t rows,
            int parts)
            : sinks_(parts), hits_(parts) {
        const idx_t padded = rows + plan.tileQueries;
        filters_.assign(parts * padded, -std::numeric_limits<T>::infinity());
        limits_.assign(rows, limit);
        states_.assign(rows, FusedRowState::Below);
        terms_.assign(parts * rows, T(0));
        for (int part = 0; part < parts; ++part) {
            hits_[part].resize(rows);
            FusedSink<T>& sink = sinks_[part];
            sink.kind = FusedSinkKind::Range;
            sink.clampAtZero = setup.metric == FusedKernelMetric::L2;
            sink.filter = filters_.data() + part * padded;
            sink.limit = limits_.data();
            sink.queryTerm = terms_.data() + part * rows;
            sink.state = states_.data();
            sink.hits = hits_[part].data();
        }
    }

    FusedSink<T>* sinks() {
        return sinks_.data();
    }

    /// Appends rows 0 .. rows - 1 to the result and forgets them.
    void moveTo(
            const FusedSetup<T>& setup,
            idx_t rows,
            FusedRangeResult<T>& out) {
        for (idx_t row = 0; row < rows; ++row) {
            for (auto& ofPart : hits_) {
                for (const FusedHit<T>& hit : ofPart[row]) {
                    out.distances.push_back(
                            setup.similarity ? T(0) - hit.key : hit.key);
                    out.ids.push_back(setup.idOf(hit.id));
                }
                std::vector<FusedHit<T>>().swap(ofPart[row]);
            }
            out.limits.push_back(idx_t(out.ids.size()));
        }
    }

   private:
    std::vector<FusedSink<T>> sinks_;
    std::vector<std::vector<std::vector<FusedHit<T>>>> hits_; ///< [part][row]
    std::vector<T> filters_, limits_, terms_;
    std::vector<FusedRowState> states_;
};

} // namespace

template <class T>
FusedRangeResult<T> runFusedRange(const FusedProblem<T>& problem, T radius) {
    const FusedSetup<T> setup = checkFused(problem, false);
    const FusedPlan plan = planFused(setup, problem, 0, false);
    FusedRangeResult<T> result;
    result.limits.reserve(setup.numQueries + 1);
    result.limits.push_back(0);
    // Nothing is less than NaN.
    if (setup.numQueries == 0 || setup.numVectors == 0 || std::isnan(radius)) {
        result.limits.resize(setup.numQueries + 1, 0);
        return result;
    }
    const T limit = setup.similarity ? -radius : radius;
    const idx_t batch = std::min<idx_t>(plan.batchQueries, setup.numQueries);
    const int parts = plan.acrossVectors ? plan.threads : 1;
    RangeSelection<T> selection(setup, plan, limit, batch, parts);
    std::optional<QuerySweep<T>> byQueries;
    if (!plan.acrossVectors) {
        byQueries.emplace(setup, plan, batch);
    }
    for (idx_t begin = 0; begin < setup.numQueries; begin += batch) {
        const idx_t rows = std::min(batch, setup.numQueries - begin);
        if (plan.acrossVectors) {
            sweepByVectors(setup, plan, begin, rows, selection.sinks(), parts);
        } else {
            byQueries->run(begin, rows, selection.sinks()[0], {});
        }
        selection.moveTo(setup, rows, result);
    }
    return result;
}

template FusedRangeResult<float> runFusedRange(
        const FusedProblem<float>&,
        float);
template FusedRangeResult<double> runFusedRange(
        const FusedProblem<double>&,
        double);

} // namespace faiss_bits

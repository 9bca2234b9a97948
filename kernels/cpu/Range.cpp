#include "kernels/cpu/Range.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "kernels/cpu/SearchPlan.h"
#include "kernels/cpu/Sweep.h"

namespace faiss_bits::cpu {

namespace {

/// The sinks of a batch of queries: one for each part of the vectors.
template <class T>
class RangeSelection {
   public:
    RangeSelection(
            const Setup<T>& setup,
            const Plan& plan,
            T limit,
            idx_t rows,
            int parts)
            : sinks_(parts), hits_(parts) {
        const idx_t padded = rows + plan.tileQueries;
        filters_.assign(parts * padded, -std::numeric_limits<T>::infinity());
        limits_.assign(rows, limit);
        states_.assign(rows, RowState::Below);
        terms_.assign(parts * rows, T(0));
        for (int part = 0; part < parts; ++part) {
            hits_[part].resize(rows);
            Sink<T>& sink = sinks_[part];
            sink.kind = SinkKind::Range;
            sink.clampAtZero = setup.metric == KernelMetric::L2;
            sink.filter = filters_.data() + part * padded;
            sink.limit = limits_.data();
            sink.queryTerm = terms_.data() + part * rows;
            sink.state = states_.data();
            sink.hits = hits_[part].data();
        }
    }

    Sink<T>* sinks() {
        return sinks_.data();
    }

    /// Appends rows 0 .. rows - 1 to the result and forgets them.
    void moveTo(const Setup<T>& setup, idx_t rows, RangeResult<T>& out) {
        for (idx_t row = 0; row < rows; ++row) {
            for (auto& ofPart : hits_) {
                for (const RangeHit<T>& hit : ofPart[row]) {
                    out.distances.push_back(
                            setup.similarity ? T(0) - hit.key : hit.key);
                    out.ids.push_back(setup.idOf(hit.id));
                }
                std::vector<RangeHit<T>>().swap(ofPart[row]);
            }
            out.limits.push_back(idx_t(out.ids.size()));
        }
    }

   private:
    std::vector<Sink<T>> sinks_;
    std::vector<std::vector<std::vector<RangeHit<T>>>> hits_; ///< [part][row]
    std::vector<T> filters_, limits_, terms_;
    std::vector<RowState> states_;
};

} // namespace

template <class T>
RangeResult<T> runRange(const Problem<T>& problem, T radius) {
    const Setup<T> setup = checkProblem(problem, false);
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

template RangeResult<float> runRange(const Problem<float>&, float);
template RangeResult<double> runRange(const Problem<double>&, double);

} // namespace faiss_bits::cpu

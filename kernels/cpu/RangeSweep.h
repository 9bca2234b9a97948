#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/cpu/Range.h"
#include "kernels/cpu/Sweep.h"

/// The sweep of a range search, which plain and certified ones share.
namespace faiss_bits::cpu {

template <class T>
using RangeHits = std::vector<RangeHit<T>>;

/// The sinks of a batch of queries: one for each part of the vectors.
template <class T>
class RangeSelection {
   public:
    RangeSelection(
            const Setup<T>& setup,
            const Plan& plan,
            idx_t rows,
            int parts)
            : sinks_(parts), hits_(parts) {
        const idx_t padded = rows + plan.tileQueries;
        filters_.assign(parts * padded, -std::numeric_limits<T>::infinity());
        limits_.assign(rows, T(0));
        states_.assign(rows, RowState::Below);
        terms_.assign(parts * rows, T(0));
        for (int part = 0; part < parts; ++part) {
            hits_[part].resize(rows);
            for (RangeHits<T>& hits : hits_[part]) {
                hits.reserve(kFirstHits);
            }
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

    void setLimits(const T* limits, idx_t rows) {
        std::copy_n(limits, rows, limits_.begin());
    }

    /// The hits of a row in a part of the vectors, by ascending number.
    const RangeHits<T>& hits(int part, idx_t row) const {
        return hits_[part][row];
    }
    int parts() const {
        return int(hits_.size());
    }

    /// No row has hits any more; the memory is kept for the next.
    void clear() {
        for (auto& part : hits_) {
            for (RangeHits<T>& hits : part) {
                hits.clear();
            }
        }
    }

   private:
    static constexpr idx_t kFirstHits = 8;

    std::vector<Sink<T>> sinks_;
    std::vector<std::vector<RangeHits<T>>> hits_; ///< [part][row]
    std::vector<T> filters_, limits_, terms_;
    std::vector<RowState> states_;
};

/// Calls done(begin, rows, selection) for one batch of queries after the other:
/// the selection has the vectors with a key under the limit of the query
/// begin + row, for each row.
template <class T, class Done>
void sweepRange(
        const Setup<T>& setup,
        const Plan& plan,
        const T* limits,
        const Done& done) {
    const idx_t batch = std::min<idx_t>(plan.batchQueries, setup.numQueries);
    const int parts = plan.acrossVectors ? plan.threads : 1;
    RangeSelection<T> selection(setup, plan, batch, parts);
    std::optional<QuerySweep<T>> byQueries;
    if (!plan.acrossVectors) {
        byQueries.emplace(setup, plan, batch);
    }
    for (idx_t begin = 0; begin < setup.numQueries; begin += batch) {
        const idx_t rows = std::min(batch, setup.numQueries - begin);
        selection.setLimits(limits + begin, rows);
        if (plan.acrossVectors) {
            sweepByVectors(setup, plan, begin, rows, selection.sinks(), parts);
        } else {
            byQueries->run(begin, rows, selection.sinks()[0], {});
        }
        done(begin, rows, std::as_const(selection));
        selection.clear();
    }
}

} // namespace faiss_bits::cpu

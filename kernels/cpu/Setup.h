#pragma once

#include <functional>
#include <vector>

#include "kernels/cpu/ByteTypes.h"
#include "kernels/cpu/Int16Types.h"
#include "kernels/cpu/KernelTypes.h"
#include "kernels/cpu/Lengths.h"
#include "kernels/cpu/Problem.h"

namespace faiss_bits::cpu {

/// A problem that was checked, with its defaults filled in.
template <class T>
struct Setup {
    KernelMetric metric = KernelMetric::L2;
    bool similarity = false; ///< keys are negated results
    T power = 0;
    int depth = 0;
    RowView<T> queries, vectors;
    idx_t numQueries = 0, numVectors = 0;
    int team = 1; ///< threads of every parallel loop; a plan may use fewer
    int64_t target = 0;
    CommonKernels<T> common;
    MetricKernels<T> kernels;
    Int16Kernels int16; ///< if any: those that sweeps are made of
    int panelValues =
            0; ///< of a packed row, if not `depth` or those of `int16`
    /// Kernels are those of AllPairs::Doubles; of plans, or of AllPairs::Rows.
    bool byDoubles = false;
    std::vector<idx_t>
            sortedIds; ///< behind vectors.ids, if the caller's are not
    const std::function<void()>* interrupt = nullptr;
    Lengths<T>* lengths = nullptr; ///< wanted of the sweeps, if not null

    Setup() = default;
    Setup(Setup&&) = default;
    Setup& operator=(Setup&&) = default;

    /// The same search for some rows of the caller's queries. This setup must
    /// outlive it.
    Setup forQueries(const std::vector<idx_t>& rows) const {
        Setup other = alike();
        other.queries = {queries.data, queries.stride, rows.data()};
        other.numQueries = idx_t(rows.size());
        return other;
    }

    /// The same search in `count` of the vectors, from one on. This setup must
    /// outlive it.
    Setup forVectors(idx_t begin, idx_t count) const {
        Setup other = alike();
        if (vectors.ids) {
            other.vectors.ids += begin;
        } else {
            other.vectors.data += begin * vectors.stride;
        }
        other.numVectors = count;
        return other;
    }

    /// Values of a packed row.
    int panelDepth() const {
        return panelValues ? panelValues
                : int16    ? int16PanelDepth(depth)
                           : depth;
    }
    /// The caller's row of a candidate.
    idx_t idOf(CandidateId<T> id) const {
        return vectors.ids ? vectors.ids[id] : idx_t(id);
    }
    void callInterrupt() const {
        if (*interrupt) {
            (*interrupt)();
        }
    }

   private:
    /// Of the same queries and vectors; the ids lie here.
    Setup alike() const {
        Setup other;
        other.metric = metric;
        other.similarity = similarity;
        other.power = power;
        other.depth = depth;
        other.queries = queries;
        other.vectors = vectors;
        other.numQueries = numQueries;
        other.numVectors = numVectors;
        other.team = team;
        other.target = target;
        other.common = common;
        other.kernels = kernels;
        other.int16 = int16;
        other.panelValues = panelValues;
        other.byDoubles = byDoubles;
        other.interrupt = interrupt;
        other.lengths = lengths;
        return other;
    }
};

/// Throws Error that names what is bad in a problem, its k aside, and the
/// value. With `shapeOnly`, pointers are not looked at.
template <class T>
Setup<T> checkProblem(const Problem<T>& problem, bool shapeOnly);

} // namespace faiss_bits::cpu

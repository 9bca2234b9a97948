#pragma once

#include <faiss/IndexIVFFlat.h>

#include "faiss_bits/common/FaissMetric.h"
#include "faiss_bits/common/Interrupt.h"
#include "faiss_bits/ivf/AllowedPlaces.h"
#include "faiss_bits/ivf/FaissLists.h"
#include "faiss_bits/ivf/FusedIvfSearch.h"

/// Not part of the API.
namespace faiss_bits::detail {

/// The lists that n queries of a search probe, as kernels read them, and what
/// it selects there.
class ProbedLists {
   public:
    /// assign  [n, search.nprobe]; outlives this, as the index
    ProbedLists(
            const faiss::IndexIVFFlat& index,
            const FusedIvfSearch& search,
            idx_t n,
            const idx_t* assign)
            : lists_(*index.invlists) {
        if (search.sel) {
            allowed_ = allowedPlaces(
                    *search.sel, *index.invlists, n * search.nprobe, assign);
        }
        problem_.metric = fusedMetricOf(index.metric_type, index.metric_arg);
        problem_.d = int(index.d);
        problem_.numQueries = n;
        problem_.lists = &lists_;
        problem_.numLists = idx_t(index.nlist);
        problem_.nprobe = search.nprobe;
        problem_.probes = assign;
        problem_.allowed = search.sel ? allowed_.ofList.data() : nullptr;
        problem_.interrupt = throwIfInterrupted;
    }
    ProbedLists(const ProbedLists&) = delete;
    ProbedLists& operator=(const ProbedLists&) = delete;

    /// A problem of one kind in these lists, of queries x.
    template <class Problem>
    Problem problemOf(const float* x, SearchStats& stats) const {
        Problem problem;
        static_cast<cpu::IvfProblem&>(problem) = problem_;
        problem.queries = x;
        problem.stats = &stats;
        return problem;
    }

    idx_t length(idx_t list) const {
        return list < 0 ? 0 : lists_.length(list);
    }

   private:
    FaissLists lists_;
    AllowedPlaces allowed_;
    cpu::IvfProblem problem_;
};

} // namespace faiss_bits::detail

#pragma once

#include "kernels/common/Error.h"
#include "kernels/cpu/ivf/IvfProblem.h"

namespace faiss_bits::cpu {

/// Vectors of a list that count; of no list 0.
inline idx_t countAllowed(const IvfProblem& problem, idx_t list) {
    return list < 0           ? 0
            : problem.allowed ? idx_t(problem.allowed[list].size())
                              : problem.lists->length(list);
}

/// Throws Error naming what is wrong, also behind the pointers. each(query,
/// vectors that count) is called for every probe in turn.
template <class Each>
void checkIvf(const IvfProblem& p, const Each& each) {
    BITS_THROW_IF_NOT_FMT(
            p.metric == Metric::L2 || p.metric == Metric::InnerProduct,
            "metric = %d: inverted lists are searched by L2 and by inner "
            "product",
            int(p.metric));
    BITS_THROW_IF_NOT_FMT(p.d >= 1, "d = %d is below 1", p.d);
    BITS_THROW_IF_NOT_FMT(
            p.numQueries >= 0,
            "numQueries = %lld is negative",
            (long long)p.numQueries);
    BITS_THROW_IF_NOT_FMT(
            p.nprobe >= 1, "nprobe = %lld is below 1", (long long)p.nprobe);
    BITS_THROW_IF_NOT_FMT(
            p.threads >= 0, "threads = %d is negative", p.threads);
    BITS_THROW_IF_NOT_FMT(p.lists, "lists is null");
    if (p.numQueries == 0) {
        return;
    }
    BITS_THROW_IF_NOT_FMT(p.queries, "queries is null");
    BITS_THROW_IF_NOT_FMT(p.probes, "probes is null");
    for (idx_t query = 0; query < p.numQueries; ++query) {
        for (idx_t i = query * p.nprobe; i < (query + 1) * p.nprobe; ++i) {
            const idx_t list = p.probes[i];
            BITS_THROW_IF_NOT_FMT(
                    list < p.numLists,
                    "probes[%lld] = %lld, but there are %lld lists",
                    (long long)i,
                    (long long)list,
                    (long long)p.numLists);
            each(query, countAllowed(p, list));
        }
    }
}

} // namespace faiss_bits::cpu

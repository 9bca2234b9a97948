#include "kernels/cpu/ivf/IvfKnn.h"

#include <omp.h>

#include <algorithm>
#include <numeric>

#include "kernels/common/Error.h"
#include "kernels/cpu/KernelTable.h"
#include "kernels/cpu/Targets.h"
#include "kernels/cpu/ivf/IvfSearch.h"

namespace faiss_bits::cpu {

namespace {

/// Also of what is behind the pointers, and of the lists that are probed.
IvfSize checkIvf(const IvfKnnProblem& p) {
    BITS_THROW_IF_NOT_FMT(
            p.metric == Metric::L2 || p.metric == Metric::InnerProduct,
            "metric = %d: inverted lists are searched by L2 and by inner "
            "product",
            int(p.metric));
    BITS_THROW_IF_NOT_FMT(p.d >= 1, "d = %d is below 1", p.d);
    BITS_THROW_IF_NOT_FMT(p.k >= 1, "k = %lld is below 1", (long long)p.k);
    BITS_THROW_IF_NOT_FMT(
            p.numQueries >= 0,
            "numQueries = %lld is negative",
            (long long)p.numQueries);
    BITS_THROW_IF_NOT_FMT(
            p.nprobe >= 1, "nprobe = %lld is below 1", (long long)p.nprobe);
    BITS_THROW_IF_NOT_FMT(
            p.mostVectors >= 0,
            "mostVectors = %lld is negative",
            (long long)p.mostVectors);
    BITS_THROW_IF_NOT_FMT(
            p.threads >= 0, "threads = %d is negative", p.threads);
    BITS_THROW_IF_NOT_FMT(
            p.choice.queryBlock >= 0,
            "choice.queryBlock = %d is negative",
            p.choice.queryBlock);
    BITS_THROW_IF_NOT_FMT(p.lists, "lists is null");
    IvfSize size;
    if (p.numQueries == 0) {
        return size;
    }
    BITS_THROW_IF_NOT_FMT(p.queries, "queries is null");
    BITS_THROW_IF_NOT_FMT(p.probes, "probes is null");
    BITS_THROW_IF_NOT_FMT(p.outDistances, "outDistances is null");
    BITS_THROW_IF_NOT_FMT(p.outIds, "outIds is null");
    for (idx_t query = 0; query < p.numQueries; ++query) {
        idx_t total = 0;
        for (idx_t i = 0; i < p.nprobe; ++i) {
            const idx_t list = p.probes[query * p.nprobe + i];
            BITS_THROW_IF_NOT_FMT(
                    list < p.numLists,
                    "probes[%lld] = %lld, but there are %lld lists",
                    (long long)(query * p.nprobe + i),
                    (long long)list,
                    (long long)p.numLists);
            const idx_t columns = list < 0 ? 0
                    : p.allowed            ? idx_t(p.allowed[list].size())
                                           : p.lists->length(list);
            total += columns;
            size.numProbes += columns > 0;
        }
        size.largestTotal = std::max(size.largestTotal, total);
        size.numPairs += double(total);
    }
    return size;
}

} // namespace

void runIvfKnn(const IvfKnnProblem& problem) {
    const IvfSize size = checkIvf(problem);
    const int64_t target = targetOf(problem.choice.target);
    if (problem.numQueries > 0) {
        IvfSearch(problem, size, target).run();
    }
}

} // namespace faiss_bits::cpu

#include "kernels/cpu/ivf/IvfKnn.h"

#include <omp.h>

#include <algorithm>
#include <numeric>

#include "kernels/common/Error.h"
#include "kernels/cpu/KernelTable.h"
#include "kernels/cpu/Targets.h"
#include "kernels/cpu/ivf/IvfChecks.h"
#include "kernels/cpu/ivf/IvfSearch.h"

namespace faiss_bits::cpu {

namespace {

IvfSize checkKnn(const IvfKnnProblem& p) {
    BITS_THROW_IF_NOT_FMT(p.k >= 1, "k = %lld is below 1", (long long)p.k);
    BITS_THROW_IF_NOT_FMT(
            p.mostVectors >= 0,
            "mostVectors = %lld is negative",
            (long long)p.mostVectors);
    BITS_THROW_IF_NOT_FMT(
            p.choice.queryBlock >= 0,
            "choice.queryBlock = %d is negative",
            p.choice.queryBlock);
    IvfSize size;
    idx_t last = -1, total = 0;
    checkIvf(p, [&](idx_t query, idx_t columns) {
        total = query == last ? total + columns : columns;
        last = query;
        size.numProbes += columns > 0;
        size.largestTotal = std::max(size.largestTotal, total);
        size.numPairs += double(columns);
    });
    if (p.numQueries > 0) {
        BITS_THROW_IF_NOT_FMT(p.outDistances, "outDistances is null");
        BITS_THROW_IF_NOT_FMT(p.outIds, "outIds is null");
    }
    return size;
}

} // namespace

void runIvfKnn(const IvfKnnProblem& problem) {
    const IvfSize size = checkKnn(problem);
    const int64_t target = targetOf(problem.choice.target);
    if (problem.numQueries > 0) {
        IvfSearch(problem, size, target).run();
    }
}

} // namespace faiss_bits::cpu

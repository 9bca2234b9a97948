#include "kernels/ivf/IvfRange.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/Error.h"
#include "kernels/ivf/IvfDistances.h"
#include "kernels/ivf/IvfRangeParams.h"

namespace faiss_bits {

namespace {

/// A search that keeps all distances, and finds nothing itself.
IvfKnnProblem distancesOf(IvfKnnProblem p) {
    p.k = 1;
    p.mayWait = false;
    return p;
}

/// Results of as many vectors as the matrix has.
struct RangeScratch {
    uint32_t* counts = nullptr;
    idx_t* firsts = nullptr;
    float* distances = nullptr;
    idx_t* ids = nullptr;

    RangeScratch(const IvfKnnPlan& plan, WorkspaceSlices& slices) {
        const size_t rows = size_t(plan.rowsAtATime);
        const size_t all = rows * size_t(plan.stride);
        counts = slices.take<uint32_t>(rows);
        firsts = slices.take<idx_t>(rows);
        distances = slices.take<float>(all);
        ids = slices.take<idx_t>(all);
    }
};

} // namespace

IvfRangePlan planIvfRange(const IvfKnnProblem& problem, size_t maxBytes) {
    // Of 16 bytes a vector four are the matrix.
    const IvfKnnProblem p = distancesOf(problem);
    IvfRangePlan plan;
    plan.search = planIvfKnn(p, maxBytes / 4);
    WorkspaceSlices slices;
    RangeScratch(plan.search, slices);
    IvfScratch(p, plan.search, slices);
    plan.bytes = slices.used();
    return plan;
}

void runIvfRange(
        const IvfRangePlan& plan,
        const IvfKnnProblem& problem,
        float radius,
        Workspace workspace,
        cudaStream_t stream,
        const std::function<void(const IvfRangePart&)>& take) {
    const IvfKnnProblem p = distancesOf(problem);
    checkIvf(p);
    if (p.numQueries == 0) {
        return;
    }
    BITS_THROW_IF_NOT_FMT(p.queries, "%s = nullptr", "queries");
    BITS_THROW_IF_NOT_FMT(p.probes, "%s = nullptr", "probes");
    WorkspaceSlices slices(workspace);
    const RangeScratch results(plan.search, slices);
    const IvfScratch scratch(p, plan.search, slices);
    IvfRangePart part;
    std::vector<uint32_t> counts;
    for (idx_t q = 0; q < p.numQueries; q += plan.search.rowsAtATime) {
        const idx_t rows = std::min(plan.search.rowsAtATime, p.numQueries - q);
        IvfRangeParams params;
        params.search = beginIvfRows(p, scratch, q, rows, stream);
        launchIvfDistances(plan.search, p, params.search, stream);
        params.radius = radius;
        params.largest = isSimilarity(p.metric);
        params.counts = results.counts;
        params.firsts = results.firsts;
        params.outDistances = results.distances;
        params.outIds = results.ids;
        launchIvfRangeCounts(params, stream);
        counts.resize(size_t(rows));
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                counts.data(),
                results.counts,
                counts.size() * sizeof(uint32_t),
                cudaMemcpyDeviceToHost,
                stream));
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        part.first = q;
        part.counts.assign(counts.begin(), counts.end());
        std::vector<idx_t> firsts;
        part.total = 0;
        for (const idx_t count : part.counts) {
            firsts.push_back(part.total);
            part.total += count;
        }
        if (part.total > 0) {
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    results.firsts,
                    firsts.data(),
                    firsts.size() * sizeof(idx_t),
                    cudaMemcpyHostToDevice,
                    stream));
            launchIvfRangeResults(params, stream);
        }
        part.distances = results.distances;
        part.ids = results.ids;
        take(part);
    }
}

} // namespace faiss_bits

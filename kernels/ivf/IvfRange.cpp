#include "kernels/ivf/IvfRange.h"

#include <algorithm>
#include <cmath>

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

/// Where the results of each row begin.
struct RangeScratch {
    uint32_t* counts = nullptr;
    idx_t* firsts = nullptr;

    RangeScratch(const IvfKnnPlan& plan, WorkspaceSlices& slices) {
        const size_t rows = size_t(plan.rowsAtATime);
        counts = slices.take<uint32_t>(rows);
        firsts = slices.take<idx_t>(rows);
    }
};

/// What the rows that `params` tell of have found.
RangePart countRows(
        const IvfRangeParams& params,
        idx_t first,
        idx_t rows,
        cudaStream_t stream) {
    launchIvfRangeCounts(params, stream);
    std::vector<uint32_t> counts(static_cast<size_t>(rows));
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            counts.data(),
            params.counts,
            counts.size() * sizeof(uint32_t),
            cudaMemcpyDeviceToHost,
            stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    RangePart part;
    part.first = first;
    part.counts.assign(counts.begin(), counts.end());
    for (const idx_t count : part.counts) {
        part.total += count;
    }
    return part;
}

/// Enqueues results to a room of a part.
void writeResults(
        IvfRangeParams params,
        idx_t* firsts,
        const RangePart& part,
        const RangeRoom& room,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(room.ids, "room.ids = nullptr");
    std::vector<idx_t> places;
    idx_t place = 0;
    for (const idx_t count : part.counts) {
        places.push_back(place);
        place += count;
    }
    // Pageable memory, which may go when the call returns.
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            firsts,
            places.data(),
            places.size() * sizeof(idx_t),
            cudaMemcpyHostToDevice,
            stream));
    params.firsts = firsts;
    params.outDistances = room.distances;
    params.outIds = room.ids;
    launchIvfRangeResults(params, stream);
}

void searchRows(
        const IvfRangePlan& plan,
        const IvfKnnProblem& p,
        float radius,
        const RangeScratch& results,
        const IvfScratch& scratch,
        cudaStream_t stream,
        RangeSink& sink) {
    for (idx_t q = 0; q < p.numQueries; q += plan.search.rowsAtATime) {
        const idx_t rows = std::min(plan.search.rowsAtATime, p.numQueries - q);
        IvfRangeParams params;
        params.search = beginIvfRows(p, scratch, q, rows, stream);
        launchIvfDistances(plan.search, p, params.search, stream);
        params.radius = radius;
        params.largest = isSimilarity(p.metric);
        params.counts = results.counts;
        const RangePart part = countRows(params, q, rows, stream);
        RangeRoom room;
        if (part.total > 0) {
            room = sink.room(part);
            if (room.distances) {
                writeResults(params, results.firsts, part, room, stream);
            }
        }
        sink.take(part, room);
    }
}

} // namespace

IvfRangePlan planIvfRange(const IvfKnnProblem& problem, size_t maxBytes) {
    const IvfKnnProblem p = distancesOf(problem);
    IvfRangePlan plan;
    // The 12 bytes of a row are no more than the search takes for it.
    plan.search = planIvfDistances(p, maxBytes / 2);
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
        RangeSink& sink) {
    const IvfKnnProblem p = distancesOf(problem);
    checkIvf(p);
    BITS_THROW_IF_NOT_FMT(!std::isnan(radius), "radius is NaN");
    if (p.numQueries == 0) {
        return;
    }
    BITS_THROW_IF_NOT_FMT(p.queries, "%s = nullptr", "queries");
    BITS_THROW_IF_NOT_FMT(p.probes, "%s = nullptr", "probes");
    WorkspaceSlices slices(workspace);
    const RangeScratch results(plan.search, slices);
    const IvfScratch scratch(p, plan.search, slices);
    try {
        searchRows(plan, p, radius, results, scratch, stream, sink);
    } catch (...) {
        sink.abandon();
        throw;
    }
}

} // namespace faiss_bits

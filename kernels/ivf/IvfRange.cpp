#include "kernels/ivf/IvfRange.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/Error.h"
#include "kernels/ivf/IvfDistances.h"
#include "kernels/ivf/IvfRangeFound.h"
#include "kernels/ivf/IvfRangeParams.h"
#include "kernels/ivf/IvfTimes.h"

namespace faiss_bits {

namespace {

/// A search that keeps all distances, and finds nothing itself.
IvfKnnProblem distancesOf(IvfKnnProblem p) {
    p.k = 1;
    p.mayWait = false;
    return p;
}

/// Blocks that a device is busy with: few rows are cut into parts for them.
constexpr idx_t kBlocks = 512;
constexpr size_t kPartBytes = sizeof(uint32_t) + sizeof(idx_t);

/// Parts of a row, where so many are looked at.
uint32_t partsOfRow(const IvfKnnPlan& plan, idx_t rows) {
    const idx_t most = (plan.stride + kIvfRangeStep - 1) / kIvfRangeStep;
    return uint32_t(std::clamp<idx_t>(
            kBlocks / std::max<idx_t>(rows, 1), 1, std::max<idx_t>(most, 1)));
}

/// Where the results of each part of a row begin.
struct RangeScratch {
    uint32_t* counts = nullptr;
    idx_t* firsts = nullptr;

    RangeScratch(const IvfKnnPlan& plan, WorkspaceSlices& slices) {
        // Of fewer rows, which the last ones may be, there are no more parts
        // than these.
        const size_t parts = size_t(std::max(plan.rowsAtATime, kBlocks));
        counts = slices.take<uint32_t>(parts);
        firsts = slices.take<idx_t>(parts);
    }
};

/// What the parts of the rows that `params` tell of have found.
std::vector<uint32_t> countParts(
        const IvfRangeParams& params,
        cudaStream_t stream) {
    launchIvfRangeCounts(params, stream);
    std::vector<uint32_t> counts(size_t(params.search.rows) * params.parts);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            counts.data(),
            params.counts,
            counts.size() * sizeof(uint32_t),
            cudaMemcpyDeviceToHost,
            stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    return counts;
}

/// Their sums, of rows.
RangePart partOf(
        const std::vector<uint32_t>& counts,
        uint32_t partsOfRow,
        idx_t first) {
    RangePart part;
    part.first = first;
    part.counts.assign(counts.size() / partsOfRow, 0);
    for (size_t i = 0; i < counts.size(); ++i) {
        part.counts[i / partsOfRow] += counts[i];
        part.total += counts[i];
    }
    return part;
}

/// Enqueues results to a room of a part.
void writeResults(
        IvfRangeParams params,
        idx_t* firsts,
        const std::vector<uint32_t>& counts,
        const RangeRoom& room,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(room.ids, "room.ids = nullptr");
    std::vector<idx_t> places;
    idx_t place = 0;
    places.reserve(counts.size());
    for (const uint32_t count : counts) {
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

/// Of queries first and on, with all their distances.
void searchRows(
        const IvfRangePlan& plan,
        const IvfKnnProblem& p,
        idx_t first,
        idx_t count,
        float radius,
        Workspace workspace,
        cudaStream_t stream,
        RangeSink& sink) {
    WorkspaceSlices slices(workspace);
    const RangeScratch results(plan.search, slices);
    const IvfScratch scratch(p, plan.search, slices);
    const idx_t end = first + count;
    for (idx_t q = first; q < end; q += plan.search.rowsAtATime) {
        const idx_t rows = std::min(plan.search.rowsAtATime, end - q);
        IvfRangeParams params;
        params.search = beginIvfRows(p, scratch, q, rows, stream);
        launchIvfDistances(plan.search, p, params.search, stream);
        params.radius = radius;
        params.largest = isSimilarity(p.metric);
        params.counts = results.counts;
        params.parts = partsOfRow(plan.search, rows);
        params.partColumns = uint32_t(
                (plan.search.stride + params.parts * kIvfRangeStep - 1) /
                (params.parts * kIvfRangeStep) * kIvfRangeStep);
        const std::vector<uint32_t> counts = countParts(params, stream);
        const RangePart part = partOf(counts, params.parts, q);
        RangeRoom room;
        if (part.total > 0) {
            room = sink.room(part);
            if (room.distances) {
                writeResults(params, results.firsts, counts, room, stream);
            }
        }
        sink.take(part, room);
    }
}

/// Bounds first; where those do not pay, the queries that are left get all
/// distances.
void searchFound(
        const IvfRangePlan& plan,
        const IvfKnnProblem& p,
        float radius,
        Workspace workspace,
        cudaStream_t stream,
        RangeSink& sink) {
    WorkspaceSlices slices(workspace);
    const IvfFoundSearch search(*plan.found, p, slices);
    const idx_t most = plan.found->search.rowsAtATime;
    for (idx_t q = 0; q < p.numQueries; q += most) {
        const idx_t rows = std::min(most, p.numQueries - q);
        if (!search.run(q, rows, radius, sink, stream)) {
            // Those behind are like these.
            searchRows(
                    plan,
                    p,
                    q,
                    p.numQueries - q,
                    radius,
                    workspace,
                    stream,
                    sink);
            return;
        }
    }
}

/// Whether bounds are expected to take less time.
bool boundsPay(
        const IvfFoundPlan& found,
        const IvfKnnPlan& all,
        const IvfKnnProblem& p) {
    return found.seconds < (all.listMajor ? ivf_times::ofTiles(all, p)
                                          : ivf_times::ofStreams(p));
}

} // namespace

IvfRangePlan planIvfRange(
        const IvfKnnProblem& problem,
        size_t maxBytes,
        IvfRangeWay way) {
    const IvfKnnProblem p = distancesOf(problem);
    IvfRangePlan plan;
    // Of very many rows the parts are no more than the search takes for them.
    const size_t ofParts =
            (size_t(std::max(p.numQueries, kBlocks)) + 64) * kPartBytes;
    plan.search =
            planIvfDistances(p, maxBytes - std::min(maxBytes / 2, ofParts));
    WorkspaceSlices slices;
    RangeScratch(plan.search, slices);
    IvfScratch(p, plan.search, slices);
    plan.bytes = slices.used();
    if (way != IvfRangeWay::Distances && p.numQueries > 0) {
        plan.found = planIvfFound(p, maxBytes);
        if (plan.found && way == IvfRangeWay::Best &&
            !boundsPay(*plan.found, plan.search, p)) {
            plan.found.reset();
        }
        if (plan.found) {
            plan.bytes = std::max(plan.bytes, plan.found->bytes);
        }
    }
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
    BITS_THROW_IF_NOT_FMT(
            !p.lists.idTest.isThere(),
            "lists.idTest.kind = %d: ranges take bits alone",
            int(p.lists.idTest.kind));
    BITS_THROW_IF_NOT_FMT(p.queries, "%s = nullptr", "queries");
    BITS_THROW_IF_NOT_FMT(p.probes, "%s = nullptr", "probes");
    try {
        if (plan.found) {
            searchFound(plan, p, radius, workspace, stream, sink);
        } else {
            searchRows(
                    plan, p, 0, p.numQueries, radius, workspace, stream, sink);
        }
    } catch (...) {
        sink.abandon();
        throw;
    }
}

} // namespace faiss_bits

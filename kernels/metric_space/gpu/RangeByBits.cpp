// Ranges of few queries: bits of what is in range, then lists of them.

#include <algorithm>
#include <vector>

#include "kernels/common/CudaCheck.h"
#include "kernels/metric_space/gpu/SearchPlan.h"
#include "kernels/metric_space/gpu/SearchScratch.h"

namespace faiss_bits::metric_space {

namespace {

/// Queries from `first` on whose results have room together; one has always.
idx_t rowsThatFit(
        const std::vector<idx_t>& limits,
        idx_t first,
        idx_t capacity) {
    const auto end = std::upper_bound(
            limits.begin() + first + 1, limits.end(), limits[first] + capacity);
    return std::max<idx_t>(end - limits.begin() - 1 - first, 1);
}

} // namespace

void runRangeByBits(
        const MetricSearchPlan& plan,
        const MetricSearchProblem& problem,
        float limit,
        Workspace workspace,
        cudaStream_t stream,
        const std::function<void(const MetricRangePart&)>& take,
        MetricCounters* counters,
        const MetricRoom& room) {
    const idx_t rows = problem.numQueries;
    if (rows == 0) {
        return;
    }
    WorkspaceSlices slices(workspace);
    SearchScratch scratch(problem, plan, false, SearchStage::Whole, slices);
    SearchParams& params = scratch.params;
    params.queries = problem.queries;
    params.rows = uint32_t(rows);
    params.words = uint32_t((rows + 31) / 32);
    BITS_CUDA_CHECK(cudaMemsetAsync(
            params.found.count, 0, scratch.clearedBytes, stream));
    launchGroupWarps(params, limit, problem.multiprocessors, stream);
    launchBitLimits(scratch.bits, scratch.limits, stream);
    std::vector<idx_t> report(size_t(rows) + 4);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            report.data(),
            params.found.count,
            report.size() * sizeof(idx_t),
            cudaMemcpyDeviceToHost,
            stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    if (counters) {
        const uint64_t references =
                uint64_t(rows) * problem.groups.numReferences;
        counters->distances += uint64_t(report[1]) + references;
        counters->references += references;
    }
    std::vector<idx_t> limits(report.begin() + 3, report.end());
    for (idx_t first = 0; first < rows;) {
        MetricRangePart part;
        part.first = first;
        part.rows = rowsThatFit(limits, first, plan.capacity);
        const idx_t before = limits[first];
        part.total = limits[first + part.rows] - before;
        part.limits = scratch.limits;
        part.distances = scratch.bitDistances;
        part.ids = scratch.bitIds;
        std::vector<idx_t> rebased;
        part.hostLimits = limits.data();
        if (before > 0) {
            rebased.assign(
                    limits.begin() + first,
                    limits.begin() + first + part.rows + 1);
            for (idx_t& one : rebased) {
                one -= before;
            }
            part.hostLimits = rebased.data();
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    scratch.limits,
                    rebased.data(),
                    rebased.size() * sizeof(idx_t),
                    cudaMemcpyHostToDevice,
                    stream));
        }
        RangeRoom to{scratch.bitDistances, scratch.bitIds};
        if (room && part.total > 0) {
            to = room(part);
            part.isInRoom = true;
            part.distances = to.distances;
            part.ids = to.ids;
        }
        if (part.total > 0 && to.distances) {
            launchBitResults(
                    scratch.bits,
                    params,
                    problem.vectors,
                    uint32_t(first),
                    uint32_t(part.rows),
                    before,
                    to.distances,
                    to.ids,
                    stream);
        }
        take(part);
        first += part.rows;
    }
}

} // namespace faiss_bits::metric_space

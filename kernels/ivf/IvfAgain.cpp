#include "kernels/ivf/IvfAgain.h"

#include <algorithm>
#include <climits>
#include <optional>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/HostWord.h"
#include "kernels/ivf/IvfDistances.h"
#include "kernels/ivf/IvfTimes.h"

namespace faiss_bits {

namespace {

/// Of a row: what is within the k-th distance that it knows. Clusters that
/// share a list have some hundreds.
constexpr idx_t kLeastRoom = 2048;
constexpr idx_t kRoomPart = 4; // of k
constexpr idx_t kLeastRows = 64;

/// Of rows whose limits are known. Bounds of all lists are compared with them,
/// and all that is within is scored.
IvfKnnPlan planOfRows(const IvfKnnProblem& p, idx_t rows) {
    IvfKnnPlan plan;
    plan.listMajor = true;
    plan.nearProbes = p.nprobe;
    plan.room = std::max(kLeastRoom, kRoomPart * idx_t(p.k));
    plan.candidates = int(std::min<idx_t>(plan.room, INT_MAX - 1));
    plan.rowsAtATime = rows;
    plan.selection = planSelection(ivfSelection(p, plan, rows));
    const idx_t last = p.numQueries - (p.numQueries - 1) / rows * rows;
    plan.lastSelection = planSelection(ivfSelection(p, plan, last));
    return plan;
}

/// What such a search needs beside its limits.
struct WithinScratch {
    IvfAgainScratch again;
    IvfScratch search;

    WithinScratch(
            const IvfKnnProblem& p,
            const IvfKnnPlan& plan,
            WorkspaceSlices& slices)
            : again(p, plan, slices), search(p, plan, slices, false) {}
};

/// Nothing where all distances are expected to take less time, or there is too
/// little scratch.
std::optional<IvfKnnPlan> planWithin(
        const IvfKnnProblem& p,
        const IvfKnnPlan& all,
        size_t maxBytes) {
    const double ofAll = all.direct ? ivf_times::ofDirect(*all.direct, p)
            : all.listMajor         ? ivf_times::ofTiles(all, p)
                                    : ivf_times::ofStreams(p);
    IvfKnnPlan plan = planOfRows(p, p.numQueries);
    if (ivf_times::ofRangeEstimates(plan, p) >= ofAll) {
        return std::nullopt;
    }
    // One row that is left has room in any case.
    WorkspaceSlices ofOne;
    IvfAgainScratch(p, plan, ofOne);
    IvfSomeRows(p, 1, ofOne);
    const size_t least =
            ofOne.used() + planIvfKnn(ivfProblemOfSome(p, 1), 0).bytes;
    const auto isFitting = [&] {
        WorkspaceSlices slices;
        WithinScratch(p, plan, slices);
        return std::max(slices.used(), least) <= maxBytes &&
                plan.rowsAtATime * p.nprobe < INT_MAX;
    };
    while (!isFitting()) {
        if (plan.rowsAtATime <= kLeastRows) {
            return std::nullopt;
        }
        plan = planOfRows(p, (plan.rowsAtATime + 1) / 2);
    }
    return plan;
}

void searchWithin(
        const IvfKnnPlan& plan,
        const IvfKnnProblem& p,
        const IvfAgainLimits& limits,
        const WithinScratch& scratch,
        cudaStream_t stream) {
    BITS_CUDA_CHECK(
            cudaMemsetAsync(scratch.again.count, 0, sizeof(uint32_t), stream));
    for (idx_t first = 0; first < p.numQueries; first += plan.rowsAtATime) {
        const idx_t rows = std::min(plan.rowsAtATime, p.numQueries - first);
        IvfParams params = beginIvfRows(p, scratch.search, first, rows, stream);
        beginIvfEstimates(params, p.metric);
        params.lastProbe = params.nprobe;
        params.k = 1;
        params.nearest = limits.keys + first;
        params.nearestPlaces = limits.places + first;
        launchIvfFound(p, params, stream);
        params.k = p.k;
        IvfResultParams result;
        result.rescored = scratch.search.rescored;
        result.rescored.takesAll = true;
        result.rescored.search = params;
        launchIvfFoundDistances(p, result.rescored, stream);
        SelectProblem select = ivfSelection(p, plan, rows);
        select.keys = result.rescored.distances;
        select.outKeys = scratch.search.keys;
        select.outIds = scratch.search.places;
        runSelect(
                rows == plan.rowsAtATime ? plan.selection : plan.lastSelection,
                select,
                scratch.search.select,
                stream);
        result.search = params;
        result.keys = scratch.search.keys;
        result.places = scratch.search.places;
        result.largest = isSimilarity(p.metric);
        result.outDistances = p.outDistances + first * p.k;
        result.outIds = p.outIds + first * p.k;
        result.isRescored = true;
        result.lostRows = scratch.again.rows;
        result.numLost = scratch.again.count;
        result.firstRow = uint32_t(first);
        launchIvfResults(result, stream);
    }
}

/// Limits are no part of a problem: they lie with the rows.
class AgainSearch {
   public:
    AgainSearch(const IvfKnnProblem& problem, cudaStream_t stream)
            : p_(problem), stream_(stream) {}

    bool run(const IvfAgainScratch& again, Workspace workspace, bool mayFind)
            const {
        const uint32_t count = waitForWord(again.count, stream_);
        // As many at a time as leave three quarters of the scratch to the
        // search. One has room in any case, and more may take of what it needs.
        const auto isFitting = [&](idx_t rows) {
            WorkspaceSlices slices;
            IvfSomeRows(p_, rows, slices);
            const size_t used = slices.used();
            return used <= workspace.bytes / 4 &&
                    planIvfKnn(
                            ivfProblemOfSome(p_, rows), workspace.bytes - used)
                            .bytes <= workspace.bytes - used;
        };
        idx_t most = count;
        while (most > 1 && !isFitting(most)) {
            most = (most + 1) / 2;
        }
        for (idx_t first = 0; first < count; first += most) {
            const idx_t rows = std::min<idx_t>(most, count - first);
            runRows(again.rows + first, rows, workspace, mayFind);
        }
        return count > 0;
    }

   private:
    void runRows(
            const uint32_t* rows,
            idx_t count,
            Workspace workspace,
            bool mayFind) const {
        WorkspaceSlices slices(workspace);
        IvfSomeRows some(p_, count, slices);
        IvfAgainParams& params = some.params;
        params.rows = rows;
        params.count = uint32_t(count);
        params.d = p_.lists.d;
        params.nprobe = p_.nprobe;
        params.k = p_.k;
        params.queries = p_.queries;
        params.probes = p_.probes;
        params.outDistances = p_.outDistances;
        params.outIds = p_.outIds;
        launchIvfGather(params, stream_);
        IvfKnnProblem problem = ivfProblemOfSome(p_, count);
        problem.queries = params.someQueries;
        problem.probes = params.someProbes;
        problem.outDistances = params.someDistances;
        problem.outIds = params.someIds;
        Workspace left;
        left.bytes = workspace.bytes - slices.used();
        left.data = slices.take<uint8_t>(left.bytes);
        const IvfKnnPlan all = planIvfKnn(problem, left.bytes);
        const auto within =
                mayFind ? planWithin(problem, all, left.bytes) : std::nullopt;
        if (within) {
            problem.centroids = p_.centroids;
            some.limits.rows = rows;
            some.limits.count = uint32_t(count);
            some.limits.k = p_.k;
            some.limits.largest = isSimilarity(p_.metric);
            some.limits.outDistances = p_.outDistances;
            launchIvfAgainLimits(some.limits, stream_);
            runWithin(*within, problem, some.limits, left);
        } else {
            runIvfKnn(all, problem, left, stream_);
        }
        launchIvfScatter(params, stream_);
    }

    void runWithin(
            const IvfKnnPlan& plan,
            const IvfKnnProblem& problem,
            const IvfAgainLimits& limits,
            Workspace workspace) const {
        WorkspaceSlices slices(workspace);
        const WithinScratch scratch(problem, plan, slices);
        searchWithin(plan, problem, limits, scratch, stream_);
        // The rows that are left lie before all other scratch, which the next
        // search takes.
        WorkspaceSlices kept(workspace);
        IvfAgainScratch(problem, plan, kept);
        Workspace left;
        left.bytes = (workspace.bytes - kept.used()) /
                WorkspaceSlices::kAlignment * WorkspaceSlices::kAlignment;
        left.data = kept.take<uint8_t>(left.bytes);
        AgainSearch(problem, stream_).run(scratch.again, left, false);
    }

    const IvfKnnProblem& p_;
    cudaStream_t stream_;
};

} // namespace

bool searchIvfAgain(
        const IvfKnnProblem& problem,
        const IvfAgainScratch& again,
        Workspace workspace,
        cudaStream_t stream) {
    return AgainSearch(problem, stream).run(again, workspace, true);
}

} // namespace faiss_bits

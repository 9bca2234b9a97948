/// A sort of every row, for k near cols: by one block where it has room for the
/// row, else by CUB.

#include <algorithm>

#include "kernels/select/SelectChecks.h"
#include "kernels/select/SelectImplementation.h"
#include "kernels/select/large_k/MultiPassLaunch.h"
#include "kernels/select/large_k/MultiPassPlan.h"
#include "kernels/select/large_k/RowSortLaunch.h"
#include "kernels/select/large_k/SegmentSort.h"

namespace faiss_bits {

namespace {

/// Columns of one block that lists entries.
constexpr idx_t kListedColumns = 16384;

bool needsNoSort(const SelectProblem& p) {
    return p.rows == 0 || p.cols == 0 || (!p.sorted && p.k >= p.cols);
}

/// Rows at a time: those of one sort, where rows share sorts.
idx_t rowsTogether(const SelectProblem& p) {
    const SegmentSortPlan plan = planSegmentSort(p, p.rows, p.cols, true);
    return plan.inBlocks ? rowsPerBatch(p.rows, 8 * p.cols)
                         : std::min(plan.rowsPerSort, p.rows);
}

} // namespace

size_t sortAllWorkspaceBytes(const SelectProblem& problem) {
    if (needsNoSort(problem) || rowSortPolicy(problem).threads > 0) {
        return 0;
    }
    const idx_t rows = rowsTogether(problem);
    WorkspaceSlices slices;
    slices.take<uint64_t>(size_t(rows) * problem.cols);
    slices.take<uint8_t>(
            segmentSortWorkspaceBytes(problem, rows, problem.cols, true));
    return slices.used();
}

void runSortAll(
        const SelectProblem& problem,
        Workspace workspace,
        cudaStream_t stream) {
    if (needsNoSort(problem)) {
        return writeAllColumns(problem, stream);
    }
    const RowSortPolicy policy = rowSortPolicy(problem);
    if (policy.threads > 0) {
        return runRowSort(problem, policy, stream);
    }
    const idx_t step = rowsTogether(problem);
    const size_t sortBytes =
            segmentSortWorkspaceBytes(problem, step, problem.cols, true);
    WorkspaceSlices slices(workspace);
    uint64_t* entries = slices.take<uint64_t>(size_t(step) * problem.cols);
    const Workspace sortScratch{slices.take<uint8_t>(sortBytes), sortBytes};

    const MultiPassLaunches launches = multiPassLaunches(problem);
    MultiPassParams p;
    p.select = makeSelectParams(problem);
    p.splits = uint32_t((problem.cols + kListedColumns - 1) / kListedColumns);
    p.outEntries = entries;
    for (idx_t row = 0; row < problem.rows; row += step) {
        const idx_t rows = std::min(step, problem.rows - row);
        p.rows = uint32_t(rows);
        p.select.firstRow = uint32_t(row);
        p.layout = planSegmentSort(problem, rows, problem.cols, true).layout;
        launches.listAll(p, stream);

        SegmentRuns runs;
        runs.rows = rows;
        runs.stride = problem.cols;
        runs.entries = entries;
        runs.firstRow = row;
        runs.byColumn = true;
        runs.composed = p.layout.used;
        runSegmentSort(problem, runs, sortScratch, stream);
    }
}

namespace {

struct SortFamily {
    struct Plan {
        bool isWhole = false; // no sort: all columns as they are
        RowSortPolicy policy;

        std::string toString() const {
            if (isWhole) {
                return "every column as it is";
            }
            return policy.threads == 0 ? "every column sorted"
                                       : "a block a row, " +
                            std::to_string(policy.threads) + " threads of " +
                            std::to_string(policy.items) + " columns";
        }
    };

    static Plan plan(const SelectProblem& problem) {
        return {needsNoSort(problem), rowSortPolicy(problem)};
    }
    static size_t workspaceBytes(const SelectProblem& problem, const Plan&) {
        return sortAllWorkspaceBytes(problem);
    }
    static void run(
            const SelectProblem& problem,
            const Plan&,
            Workspace workspace,
            cudaStream_t stream) {
        runSortAll(problem, workspace, stream);
    }
};

} // namespace

const SelectImplementation kSortSelect = {
        "sort",
        noRefusal,
        nullptr,
        nullptr,
        SelectFamilyPlanOf<SortFamily>::make};

} // namespace faiss_bits

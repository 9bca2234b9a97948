/// Bits with its list in global memory.

#include <algorithm>
#include <vector>

#include "kernels/select/SelectChecks.h"
#include "kernels/select/SelectImplementation.h"
#include "kernels/select/large_k/MultiPassLaunch.h"
#include "kernels/select/large_k/MultiPassPlan.h"
#include "kernels/select/large_k/SegmentSort.h"

namespace faiss_bits {

namespace {

constexpr uint64_t kSampleSeed = 0xB175610BA1ULL;
constexpr idx_t kBlocksPerMultiprocessor = 3;
/// Entries that fit a list beside twice k: a tile, and the samples. A list that
/// can hold all that its block reads needs no room.
constexpr idx_t kListRoom = 8192;
/// Entries of all lists of a pass together, where rows are split.
constexpr idx_t kMostListed = idx_t(1) << 27;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

/// One launch over [rows, length] keys or entries.
struct Pass {
    idx_t length = 0;
    idx_t segment = 0;
    idx_t splits = 1;
    idx_t bestStride = 0; // entries of a row that it leaves; 0: the result
};

struct BitsGlobalPlan {
    bool sortsAll = false; // k >= cols: the rest is not used
    idx_t batch = 0;
    idx_t listCapacity = 0;
    std::vector<Pass> passes;

    std::string toString() const {
        return sortsAll ? "every column sorted"
                        : std::to_string(passes.size()) + " passes, first " +
                        std::to_string(passes[0].splits) + " blocks a row, " +
                        std::to_string(batch) + " rows at a time";
    }
};

/// Splits few rows over blocks, never so finely that a block would keep much
/// of what it reads, or that the lists would take much more than one batch.
std::vector<Pass> planPasses(
        const SelectProblem& p,
        idx_t rows,
        idx_t listCapacity) {
    const idx_t slots = kBlocksPerMultiprocessor * p.device.multiprocessors;
    const idx_t affordable =
            std::max<idx_t>(1, kMostListed / (listCapacity * rows));
    const idx_t wanted =
            rows >= slots ? 1 : std::min(divUp(2 * slots, rows), affordable);
    const idx_t least = std::max<idx_t>(2 * kSplitGrain, 8 * idx_t(p.k));
    std::vector<Pass> passes;
    idx_t length = p.cols;
    do {
        Pass pass;
        pass.length = length;
        const idx_t splits = std::clamp<idx_t>(length / least, 1, wanted);
        pass.segment = divUp(divUp(length, splits), kSplitGrain) * kSplitGrain;
        pass.splits = divUp(length, pass.segment);
        length = pass.splits * p.k;
        pass.bestStride = pass.splits > 1 ? divUp(length, 2) * 2 : 0;
        passes.push_back(pass);
    } while (passes.back().splits > 1);
    return passes;
}

size_t bytesPerRow(const SelectProblem& p, const BitsGlobalPlan& plan) {
    size_t entries = p.sorted ? p.k : 0;
    size_t lists = 0;
    for (const Pass& pass : plan.passes) {
        entries += pass.bestStride;
        lists = std::max<size_t>(lists, pass.splits * plan.listCapacity);
    }
    return 8 * (entries + lists);
}

BitsGlobalPlan makePlan(const SelectProblem& p) {
    BitsGlobalPlan plan;
    plan.sortsAll = p.k >= p.cols;
    if (plan.sortsAll) {
        return plan;
    }
    // No pass reads more than cols entries of a row.
    plan.listCapacity =
            divUp(std::min(2 * idx_t(p.k) + kListRoom, p.cols), 2) * 2;
    plan.passes = planPasses(p, p.rows, plan.listCapacity);
    plan.batch = rowsPerBatch(p.rows, bytesPerRow(p, plan));
    plan.passes = planPasses(p, plan.batch, plan.listCapacity);
    return plan;
}

struct Scratch {
    uint64_t* entries = nullptr; // [batch, k], sorted output only
    std::vector<uint64_t*> best; // of every pass but the last
    Workspace rest;              // lists of a pass, then of the sort
};

Scratch takeScratch(
        const SelectProblem& problem,
        const BitsGlobalPlan& plan,
        WorkspaceSlices& slices) {
    Scratch scratch;
    const size_t rows = plan.batch;
    size_t lists = 0;
    for (const Pass& pass : plan.passes) {
        scratch.best.push_back(slices.take<uint64_t>(rows * pass.bestStride));
        lists = std::max<size_t>(lists, rows * pass.splits * plan.listCapacity);
    }
    size_t rest = 8 * lists;
    if (problem.sorted) {
        scratch.entries = slices.take<uint64_t>(rows * problem.k);
        rest = std::max(
                rest,
                segmentSortWorkspaceBytes(
                        problem, plan.batch, problem.k, true));
    }
    scratch.rest = {slices.take<uint8_t>(rest), rest};
    return scratch;
}

void runPasses(
        const SelectProblem& problem,
        const BitsGlobalPlan& plan,
        const Scratch& scratch,
        MultiPassParams p,
        cudaStream_t stream) {
    const MultiPassLaunches launches = multiPassLaunches(problem);
    for (size_t i = 0; i < plan.passes.size(); ++i) {
        const Pass& pass = plan.passes[i];
        p.pass = uint32_t(i);
        p.splits = uint32_t(pass.splits);
        p.segment = uint32_t(pass.segment);
        if (i > 0) {
            p.from = scratch.best[i - 1];
            p.fromCount = uint32_t(pass.length);
            p.fromStride = uint32_t(plan.passes[i - 1].bestStride);
        }
        p.best = pass.splits > 1 ? scratch.best[i] : nullptr;
        p.bestStride = uint32_t(pass.bestStride);
        launches.bitsGlobal(p, stream);
    }
}

struct BitsGlobalFamily {
    using Plan = BitsGlobalPlan;
    static constexpr auto plan = makePlan;

    static size_t workspaceBytes(
            const SelectProblem& problem,
            const BitsGlobalPlan& plan) {
        if (plan.sortsAll) {
            return sortAllWorkspaceBytes(problem);
        }
        WorkspaceSlices slices;
        takeScratch(problem, plan, slices);
        return slices.used();
    }

    static void run(
            const SelectProblem& problem,
            const BitsGlobalPlan& plan,
            Workspace workspace,
            cudaStream_t stream) {
        if (plan.sortsAll) {
            return runSortAll(problem, workspace, stream);
        }
        WorkspaceSlices slices(workspace);
        const Scratch scratch = takeScratch(problem, plan, slices);

        MultiPassParams p;
        p.select = makeSelectParams(problem);
        p.wanted = uint32_t(problem.k);
        p.seed = kSampleSeed;
        p.lists = static_cast<uint64_t*>(scratch.rest.data);
        p.listCapacity = uint32_t(plan.listCapacity);
        p.outEntries = scratch.entries;
        for (idx_t row = 0; row < problem.rows; row += plan.batch) {
            const idx_t rows = std::min(plan.batch, problem.rows - row);
            p.rows = uint32_t(rows);
            p.select.firstRow = uint32_t(row);
            if (problem.sorted) {
                p.layout =
                        planSegmentSort(problem, rows, problem.k, true).layout;
            }
            runPasses(problem, plan, scratch, p, stream);
            if (problem.sorted) {
                SegmentRuns runs;
                runs.rows = rows;
                runs.stride = problem.k;
                runs.entries = scratch.entries;
                runs.firstRow = row;
                runs.byColumn = true;
                runs.composed = p.layout.used;
                runSegmentSort(problem, runs, scratch.rest, stream);
            }
        }
    }
};

} // namespace

const SelectImplementation kBitsGlobalSelect = {
        "bits_global",
        noRefusal,
        nullptr,
        nullptr,
        SelectFamilyPlanOf<BitsGlobalFamily>::make};

} // namespace faiss_bits

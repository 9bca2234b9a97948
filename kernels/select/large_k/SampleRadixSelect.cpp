/// Sample Select in one and in two stages, and Radix Select.

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/select/SelectChecks.h"
#include "kernels/select/SelectImplementation.h"
#include "kernels/select/large_k/FindBucket.h"
#include "kernels/select/large_k/MultiPassLaunch.h"
#include "kernels/select/large_k/MultiPassPlan.h"
#include "kernels/select/large_k/SegmentSort.h"

namespace faiss_bits {

namespace {

/// Of the samples; any number does.
constexpr uint64_t kSampleSeed = 0x5EED5E1EC7ULL;

/// Scratch of one batch. The sort comes after the passes and takes their
/// place.
struct Scratch {
    uint64_t* entries = nullptr; // [batch, k], sorted output only
    Workspace rest;              // of the passes, then of the sort
    size_t clearedBytes = 0;     // tile states and ticket
};

bool byColumn(MultiPassKind kind) {
    return kind == MultiPassKind::SampleTwoStage;
}

/// The passes' slices; sets the pointers of `p`.
void takePassSlices(
        const MultiPassPlan& plan,
        WorkspaceSlices& slices,
        MultiPassParams& p,
        size_t& clearedBytes) {
    const size_t rows = plan.batch;
    const bool twoStages = plan.tiles > 0;
    // Cleared together.
    const size_t begin = slices.used();
    p.tileStates = slices.take<uint64_t>(rows * plan.tiles);
    p.ticket = slices.take<uint32_t>(twoStages ? 1 : 0);
    clearedBytes = slices.used() - begin;
    p.limits = slices.take<uint64_t>(twoStages ? rows : 0);

    p.states[0] = slices.take<RowState>(rows);
    p.states[1] = slices.take<RowState>(rows);
    const size_t parts = plan.passes > 0 ? rows * plan.splits : 0;
    p.prefixes = slices.take<uint32_t>(parts * plan.buckets);
    p.lessOffsets = slices.take<uint32_t>(parts);
    p.sameOffsets = slices.take<uint32_t>(parts);
    p.splitters = slices.take<uint64_t>(
            plan.buckets == kSampleBuckets ? rows * kSampleBuckets : 0);
    for (int i = 0; i < 2; ++i) {
        p.capacities[i] = plan.capacities[i];
        p.buffers[i] = slices.take<uint64_t>(rows * plan.capacities[i]);
    }
}

Scratch takeScratch(
        const SelectProblem& problem,
        MultiPassKind kind,
        const MultiPassPlan& plan,
        WorkspaceSlices& slices) {
    Scratch scratch;
    MultiPassParams unused;
    WorkspaceSlices passes;
    takePassSlices(plan, passes, unused, scratch.clearedBytes);
    size_t rest = passes.used();
    if (problem.sorted) {
        scratch.entries = slices.take<uint64_t>(size_t(plan.batch) * problem.k);
        rest = std::max(
                rest,
                segmentSortWorkspaceBytes(
                        problem, plan.batch, problem.k, byColumn(kind)));
    }
    scratch.rest = {slices.take<uint8_t>(rest), rest};
    return scratch;
}

/// All passes over the rows of `p`, until each has its k entries.
void runPasses(
        const MultiPassLaunches& launches,
        MultiPassKind kind,
        const MultiPassPlan& plan,
        MultiPassParams p,
        size_t clearedBytes,
        cudaStream_t stream) {
    const bool bySplitters = kind != MultiPassKind::Radix;
    if (clearedBytes > 0) {
        BITS_CUDA_CHECK(cudaMemsetAsync(p.tileStates, 0, clearedBytes, stream));
    }
    launchBeginRows(p, stream);
    for (int pass = 0; pass < plan.passes; ++pass) {
        p.pass = uint32_t(pass);
        if (bySplitters) {
            launches.drawSplitters(p, stream);
            launches.countSplitters(p, stream);
        } else {
            launches.countDigits(p, stream);
        }
        launchFindBucket(p, bySplitters, stream);
        launches.partition(p, stream);
    }
    p.pass = uint32_t(plan.passes);
    launches.finish(p, stream);
    if (!p.oneStage) {
        launches.match(p, stream);
    }
}

template <MultiPassKind Kind>
struct MultiPassFamily {
    using Plan = MultiPassPlan;

    static MultiPassPlan plan(const SelectProblem& problem) {
        return planMultiPass(problem, Kind);
    }

    static size_t workspaceBytes(
            const SelectProblem& problem,
            const MultiPassPlan& plan) {
        if (plan.sortsAll) {
            return sortAllWorkspaceBytes(problem);
        }
        WorkspaceSlices slices;
        takeScratch(problem, Kind, plan, slices);
        return slices.used();
    }

    static void run(
            const SelectProblem& problem,
            const MultiPassPlan& plan,
            Workspace workspace,
            cudaStream_t stream) {
        if (plan.sortsAll) {
            return runSortAll(problem, workspace, stream);
        }
        WorkspaceSlices slices(workspace);
        const Scratch scratch = takeScratch(problem, Kind, plan, slices);
        const MultiPassLaunches launches = multiPassLaunches(problem);

        MultiPassParams p;
        p.select = makeSelectParams(problem);
        p.wanted = uint32_t(problem.k);
        p.splits = plan.splits;
        p.oneStage = Kind != MultiPassKind::SampleTwoStage;
        p.seed = kSampleSeed;
        p.tiles = plan.tiles;
        p.outEntries = scratch.entries;
        size_t clearedBytes = 0;
        WorkspaceSlices rest(scratch.rest);
        takePassSlices(plan, rest, p, clearedBytes);

        for (idx_t row = 0; row < problem.rows; row += plan.batch) {
            const idx_t rows = std::min(plan.batch, problem.rows - row);
            p.rows = uint32_t(rows);
            p.select.firstRow = uint32_t(row);
            if (problem.sorted) {
                p.layout = planSegmentSort(
                                   problem, rows, problem.k, byColumn(Kind))
                                   .layout;
            }
            runPasses(launches, Kind, plan, p, clearedBytes, stream);
            if (problem.sorted) {
                SegmentRuns runs;
                runs.rows = rows;
                runs.stride = problem.k;
                runs.entries = scratch.entries;
                runs.firstRow = row;
                runs.byColumn = byColumn(Kind);
                runs.composed = p.layout.used;
                runSegmentSort(problem, runs, scratch.rest, stream);
            }
        }
    }
};

template <MultiPassKind Kind>
constexpr SelectImplementation implementation(const char* name) {
    return {name,
            noRefusal,
            nullptr,
            nullptr,
            SelectFamilyPlanOf<MultiPassFamily<Kind>>::make};
}

} // namespace

const SelectImplementation kSampleSelect =
        implementation<MultiPassKind::SampleOneStage>("sample_select");
const SelectImplementation kSampleSelectTwoStage =
        implementation<MultiPassKind::SampleTwoStage>(
                "sample_select_two_stage");
const SelectImplementation kRadixSelect =
        implementation<MultiPassKind::Radix>("radix_select");

} // namespace faiss_bits

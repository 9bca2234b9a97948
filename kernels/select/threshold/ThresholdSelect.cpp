/// SampleThreshold: the plan, the workspace and the launches.

#include <algorithm>
#include <type_traits>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/Error.h"
#include "kernels/select/SelectChecks.h"
#include "kernels/select/SelectImplementation.h"
#include "kernels/select/bits/BitsLaunch.h"
#include "kernels/select/threshold/CombLaunch.h"
#include "kernels/select/threshold/HeldLaunch.h"
#include "kernels/select/threshold/ThresholdLaunch.h"
#include "kernels/select/threshold/ThresholdPlan.h"
#include "kernels/survivors/SurvivorSort.h"

namespace faiss_bits {

namespace {

/// A launch has at most this many blocks (the grid's limit in x is 2^31 - 1).
constexpr idx_t kMaxBlocks = idx_t(1) << 30;

using Launch = void (*)(const ThresholdParams&, unsigned, cudaStream_t);

/// Calls choose.operator()<Keys>() with the key type of the problem.
template <class Choose>
auto forKeys(const SelectProblem& p, Choose choose) {
    if (p.hasColBias()) {
        return choose.template operator()<BiasedKeys>();
    }
    switch (p.keyType) {
        case DataType::Float16:
            return choose.template operator()<HalfKeys>();
        case DataType::BFloat16:
            return choose.template operator()<BFloat16Keys>();
        default:
            return choose.template operator()<FloatKeys>();
    }
}

/// The plan's policy is none of Policies.inc.
Error noKernel(const ThresholdPlan& plan) {
    return Error("no kernel for a plan with " + plan.policy.toString());
}

Launch wholeRowsLaunch(const SelectProblem& p, const ThresholdPlan& plan) {
    return forKeys(p, [&]<class Keys>() -> Launch {
#define BITS_WHOLE_ROWS(threads, room, mostK)                   \
    if (plan.policy == ThresholdPolicy{threads, room, mostK}) { \
        return launchWholeRows<Keys, threads, room>;            \
    }
#include "kernels/select/threshold/Policies.inc"
        throw noKernel(plan);
    });
}

Launch clusterRowsLaunch(const SelectProblem& p, const ThresholdPlan& plan) {
    return forKeys(p, [&]<class Keys>() -> Launch {
        if constexpr (!std::is_same_v<Keys, BiasedKeys>) {
#define BITS_CLUSTER_ROWS(threads, room, mostK)                 \
    if (plan.policy == ThresholdPolicy{threads, room, mostK}) { \
        return launchClusterRows<Keys, threads, room>;          \
    }
#include "kernels/select/threshold/Policies.inc"
        }
        throw noKernel(plan);
    });
}

Launch combRowsLaunch(const SelectProblem& p, const ThresholdPlan& plan) {
    return forKeys(p, [&]<class Keys>() -> Launch {
        if constexpr (!std::is_same_v<Keys, BiasedKeys>) {
#define BITS_COMB_ROWS(threads, room, mostK)                    \
    if (plan.policy == ThresholdPolicy{threads, room, mostK}) { \
        return launchCombRows<Keys, threads, room>;             \
    }
#include "kernels/select/threshold/Policies.inc"
        }
        throw noKernel(plan);
    });
}

Launch heldRowsLaunch(const SelectProblem& p, const ThresholdPlan& plan) {
    return forKeys(p, [&]<class Keys>() -> Launch {
        if constexpr (!std::is_same_v<Keys, BiasedKeys>) {
#define BITS_HELD_ROWS(threads, room, mostK)                    \
    if (plan.policy == ThresholdPolicy{threads, room, mostK}) { \
        return launchHeldRows<Keys, threads, room>;             \
    }
#include "kernels/select/threshold/Policies.inc"
        }
        throw noKernel(plan);
    });
}

Launch finishLaunch(const SelectProblem& p, const ThresholdPlan& plan) {
    return forKeys(p, [&]<class Keys>() -> Launch {
#define BITS_FINISH_ROWS(threads, room, mostK)                  \
    if (plan.policy == ThresholdPolicy{threads, room, mostK}) { \
        return launchFinishRows<Keys, threads, room>;           \
    }
#include "kernels/select/threshold/Policies.inc"
        throw noKernel(plan);
    });
}

/// What the plan wants of the workspace.
struct Slices {
    uint64_t* limits = nullptr;
    uint32_t* counts = nullptr;
    uint32_t* countsAgain = nullptr;
    uint32_t* settled = nullptr;
    uint64_t* survivors = nullptr;
    uint64_t* sampled = nullptr;
    uint64_t* sampledAgain = nullptr;
    Workspace sort;
};

Slices takeSlices(const ThresholdPlan& plan, WorkspaceSlices& slices) {
    Slices taken;
    if (plan.fused || plan.isComb || plan.isHeld || plan.isCluster) {
        return taken;
    }
    const size_t rows = plan.batchRows;
    taken.limits = slices.take<uint64_t>(rows);
    taken.counts = slices.take<uint32_t>(rows);
    if (plan.againPlaces > 0) {
        taken.countsAgain = slices.take<uint32_t>(rows);
    }
    taken.survivors = slices.take<uint64_t>(rows * plan.capacity);
    if (plan.sampleParts > 1) {
        taken.sampled = slices.take<uint64_t>(rows * kSampledGroups);
    }
    if (plan.secondDraw != SecondDraw::ByEachBlock) {
        taken.sampledAgain = slices.take<uint64_t>(rows * kSampledGroups);
    }
    if (plan.policy.room == 0) {
        taken.settled = slices.take<uint32_t>(rows);
        taken.sort.bytes = survivorSortWorkspaceBytes(rows, plan.capacity);
        taken.sort.data = slices.take<uint8_t>(taken.sort.bytes);
    }
    return taken;
}

/// Rows that share nothing, each by `parts` blocks.
void runAlone(
        const SelectProblem& p,
        const Launch launch,
        idx_t parts,
        ThresholdParams& params,
        cudaStream_t stream) {
    const idx_t most = kMaxBlocks / parts;
    for (idx_t row = 0; row < p.rows; row += most) {
        params.firstRow = uint32_t(row);
        launch(params, unsigned(std::min(most, p.rows - row) * parts), stream);
    }
}

/// The survivors of `rows` rows from params.firstRow on.
void gatherSurvivors(
        const SelectProblem& p,
        const ThresholdPlan& plan,
        const Slices& taken,
        const ThresholdParams& params,
        idx_t rows,
        cudaStream_t stream) {
    const Launch sample = forKeys(
            p, []<class Keys>() -> Launch { return launchSampleLimit<Keys>; });
    const Launch scan = forKeys(
            p, []<class Keys>() -> Launch { return launchSplitRows<Keys>; });
    const bool drawsBoth = plan.secondDraw == SecondDraw::WithFirst;
    const unsigned samples = unsigned(rows * plan.sampleParts);
    ThresholdParams first = params;
    first.sampledAgain = drawsBoth ? taken.sampledAgain : nullptr;
    sample(first, drawsBoth ? 2 * samples : samples, stream);
    scan(params, unsigned(rows * plan.splits), stream);
    if (plan.againPlaces > 0) {
        ThresholdParams again = params;
        again.isAgain = true;
        again.samplePlaces = plan.againPlaces;
        again.sampled = taken.sampledAgain;
        again.sampleParts = again.sampled ? plan.sampleParts : 1;
        std::ranges::copy(plan.againRanks, again.sampleRanks);
        if (plan.secondDraw == SecondDraw::Alone) {
            sample(again, samples, stream);
        }
        scan(again, unsigned(rows * plan.splits), stream);
    }
}

/// Lists that are wrong after all turns are made again: clusters take them in
/// turn, as many as there are multiprocessors for.
void settleLists(
        const SelectProblem& p,
        const ThresholdPlan& plan,
        const ThresholdParams& params,
        idx_t rows,
        uint32_t* settled,
        cudaStream_t stream) {
    RowsAgainParams again;
    static_cast<ThresholdParams&>(again) = params;
    again.clusterBlocks = plan.lastBlocks;
    again.rows = uint32_t(rows);
    again.settled = settled;
    const idx_t clusters = std::clamp<idx_t>(
            p.device.multiprocessors / plan.lastBlocks, 1, rows);
    const auto launch =
            forKeys(p, []<class Keys>() { return launchRowsAgain<Keys>; });
    launch(again, unsigned(clusters * plan.lastBlocks), stream);
}

void runSplit(
        const SelectProblem& p,
        const ThresholdPlan& plan,
        const Slices& taken,
        ThresholdParams& params,
        cudaStream_t stream) {
    for (idx_t row = 0; row < p.rows; row += plan.batchRows) {
        const idx_t rows = std::min(plan.batchRows, p.rows - row);
        params.firstRow = uint32_t(row);
        gatherSurvivors(p, plan, taken, params, rows, stream);
        if (plan.policy.room > 0) {
            finishLaunch(p, plan)(params, unsigned(rows), stream);
            continue;
        }
        settleLists(p, plan, params, rows, taken.settled, stream);
        SurvivorList list;
        list.rows = rows;
        list.capacity = plan.capacity;
        list.entries = taken.survivors;
        list.counts = taken.settled;
        list.columns = p.cols;
        list.firstRow = row;
        runSurvivorSort(list, outputOf(p), &params, taken.sort, stream);
    }
}

struct ThresholdFamily {
    using Plan = ThresholdPlan;
    static constexpr auto plan = planThreshold;

    static size_t workspaceBytes(
            const SelectProblem&,
            const ThresholdPlan& plan) {
        WorkspaceSlices slices;
        takeSlices(plan, slices);
        return slices.used();
    }

    static void run(
            const SelectProblem& p,
            const ThresholdPlan& plan,
            Workspace workspace,
            cudaStream_t stream) {
        WorkspaceSlices slices(workspace);
        const Slices taken = takeSlices(plan, slices);

        ThresholdParams params;
        static_cast<SelectParams&>(params) = makeSelectParams(p);
        params.samplePlaces = plan.samplePlaces;
        std::ranges::copy(plan.sampleRanks, params.sampleRanks);
        params.sampleParts = plan.sampleParts;
        params.sampled = taken.sampled;
        params.limits = taken.limits;
        params.counts = taken.counts;
        params.countsAgain = taken.countsAgain;
        params.survivors = taken.survivors;
        params.capacity = plan.capacity;
        params.staged = plan.expected;
        params.segment = plan.segment;
        params.splits = plan.splits;
        params.stage = plan.stage;
        params.firstPart = plan.firstPart;
        params.partGrowth = plan.partGrowth;
        params.stages = plan.stages;
        if (plan.isCluster) {
            clusterRowsLaunch(p, plan)(
                    params, unsigned(p.rows * plan.sampleParts), stream);
        } else if (plan.isHeld) {
            runAlone(
                    p,
                    heldRowsLaunch(p, plan),
                    plan.sampleParts,
                    params,
                    stream);
        } else if (plan.isComb) {
            runAlone(p, combRowsLaunch(p, plan), 1, params, stream);
        } else if (plan.fused) {
            runAlone(p, wholeRowsLaunch(p, plan), 1, params, stream);
        } else {
            runSplit(p, plan, taken, params, stream);
        }
    }
};

} // namespace

const SelectImplementation kSampleThresholdSelect = {
        "sample_threshold",
        noRefusal,
        nullptr,
        nullptr,
        SelectFamilyPlanOf<ThresholdFamily>::make};

} // namespace faiss_bits

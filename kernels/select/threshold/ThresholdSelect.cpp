/// SampleThreshold: the plan, the workspace and the launches.

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/Error.h"
#include "kernels/select/SelectChecks.h"
#include "kernels/select/SelectImplementation.h"
#include "kernels/select/bits/BitsLaunch.h"
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
Launch forKeys(const SelectProblem& p, Choose choose) {
    if (p.colBias) {
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

/// The plan and the list in kernels/CMakeLists.txt do not agree.
Error noKernel(const ThresholdPlan& plan) {
    return Error(formatMessage(
            "no kernel for a plan with threads = %d, room = %d",
            plan.threads,
            plan.room));
}

Launch fusedLaunch(const SelectProblem& p, const ThresholdPlan& plan) {
    return forKeys(p, [&]<class Keys>() -> Launch {
        switch (plan.threads * 10000 + plan.room) {
            case 1280064:
                return launchWholeRows<Keys, 128, 64>;
            case 1280256:
                return launchWholeRows<Keys, 128, 256>;
            case 2560512:
                return launchWholeRows<Keys, 256, 512>;
            case 2561024:
                return launchWholeRows<Keys, 256, 1024>;
            case 2562048:
                return launchWholeRows<Keys, 256, 2048>;
            case 5120064:
                return launchWholeRows<Keys, 512, 64>;
            case 5120512:
                return launchWholeRows<Keys, 512, 512>;
            case 5122048:
                return launchWholeRows<Keys, 512, 2048>;
            default:
                throw noKernel(plan);
        }
    });
}

Launch finishLaunch(const SelectProblem& p, const ThresholdPlan& plan) {
    return forKeys(p, [&]<class Keys>() -> Launch {
        switch (plan.threads * 10000 + plan.room) {
            case 5120064:
                return launchFinishRows<Keys, 512, 64>;
            case 5120512:
                return launchFinishRows<Keys, 512, 512>;
            case 5121024:
                return launchFinishRows<Keys, 512, 1024>;
            case 5122048:
                return launchFinishRows<Keys, 512, 2048>;
            case 10240064:
                return launchFinishRows<Keys, 1024, 64>;
            case 10241024:
                return launchFinishRows<Keys, 1024, 1024>;
            case 10242048:
                return launchFinishRows<Keys, 1024, 2048>;
            default:
                throw noKernel(plan);
        }
    });
}

/// What the plan wants of the workspace.
struct Slices {
    uint64_t* limits = nullptr;
    uint32_t* counts = nullptr;
    uint64_t* survivors = nullptr;
    uint64_t* sampled = nullptr;
    Workspace sort;
};

Slices takeSlices(const ThresholdPlan& plan, WorkspaceSlices& slices) {
    Slices taken;
    if (plan.fused) {
        return taken;
    }
    const size_t rows = plan.batchRows;
    taken.limits = slices.take<uint64_t>(rows);
    taken.counts = slices.take<uint32_t>(rows);
    taken.survivors = slices.take<uint64_t>(rows * plan.capacity);
    if (plan.sampleParts > 1) {
        taken.sampled = slices.take<uint64_t>(rows * kSampledGroups);
    }
    if (plan.room == 0) {
        taken.sort.bytes = survivorSortWorkspaceBytes(rows, plan.capacity);
        taken.sort.data = slices.take<uint8_t>(taken.sort.bytes);
    }
    return taken;
}

void runFused(
        const SelectProblem& p,
        const ThresholdPlan& plan,
        ThresholdParams& params,
        cudaStream_t stream) {
    const Launch launch = fusedLaunch(p, plan);
    for (idx_t row = 0; row < p.rows; row += kMaxBlocks) {
        params.firstRow = uint32_t(row);
        launch(params, unsigned(std::min(kMaxBlocks, p.rows - row)), stream);
    }
}

/// The survivors of `rows` rows from params.firstRow on.
void gatherSurvivors(
        const SelectProblem& p,
        const ThresholdPlan& plan,
        const ThresholdParams& params,
        idx_t rows,
        cudaStream_t stream) {
    const Launch sample = forKeys(
            p, []<class Keys>() -> Launch { return launchSampleLimit<Keys>; });
    const Launch filter = forKeys(
            p, []<class Keys>() -> Launch { return launchSplitRows<Keys>; });
    sample(params, unsigned(rows * plan.sampleParts), stream);
    filter(params, unsigned(rows * plan.splits), stream);
}

void runSplit(
        const SelectProblem& p,
        const ThresholdPlan& plan,
        const Slices& taken,
        ThresholdParams& params,
        cudaStream_t stream) {
    const Launch again = forKeys(
            p, []<class Keys>() -> Launch { return launchRowsAgain<Keys>; });
    for (idx_t row = 0; row < p.rows; row += plan.batchRows) {
        const idx_t rows = std::min(plan.batchRows, p.rows - row);
        params.firstRow = uint32_t(row);
        gatherSurvivors(p, plan, params, rows, stream);
        if (plan.room > 0) {
            finishLaunch(p, plan)(params, unsigned(rows), stream);
            continue;
        }
        again(params, unsigned(rows), stream);
        SurvivorList list;
        list.rows = rows;
        list.capacity = plan.capacity;
        list.entries = taken.survivors;
        list.counts = taken.counts;
        list.columns = p.cols;
        list.firstRow = row;
        runSurvivorSort(list, outputOf(p), &params, taken.sort, stream);
    }
}

size_t workspaceBytes(const SelectProblem& p) {
    WorkspaceSlices slices;
    takeSlices(planThreshold(p), slices);
    return slices.used();
}

void run(const SelectProblem& p, Workspace workspace, cudaStream_t stream) {
    const ThresholdPlan plan = planThreshold(p);
    WorkspaceSlices slices(workspace);
    const Slices taken = takeSlices(plan, slices);

    ThresholdParams params;
    static_cast<SelectParams&>(params) = makeSelectParams(p);
    params.samplePlaces = plan.samplePlaces;
    params.sampleRank = plan.sampleRank;
    params.mostSampleRank = plan.mostSampleRank;
    params.sampleParts = plan.sampleParts;
    params.sampled = taken.sampled;
    params.limits = taken.limits;
    params.counts = taken.counts;
    params.survivors = taken.survivors;
    params.capacity = plan.capacity;
    params.staged = plan.expected;
    params.segment = plan.segment;
    params.splits = plan.splits;
    params.stage = plan.stage;
    params.firstPart = plan.firstPart;
    params.partGrowth = plan.partGrowth;
    params.stages = plan.stages;
    if (plan.fused) {
        runFused(p, plan, params, stream);
    } else {
        runSplit(p, plan, taken, params, stream);
    }
}

} // namespace

const SelectImplementation kSampleThresholdSelect = {
        "sample_threshold",
        noRefusal,
        workspaceBytes,
        run};

} // namespace faiss_bits

#include "research/queues/QueueSelect.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/select/SelectChecks.h"
#include "research/queues/QueueLaunch.h"
#include "research/queues/QueuePlan.h"
#include "research/queues/QueueProblem.h"

namespace faiss_bits {

namespace {

/// Warps of the queue kernels that a multiprocessor holds (their registers).
constexpr idx_t kWarpsPerMultiprocessor = 12;
/// What the system takes of the shared memory for every block.
constexpr idx_t kReservedBytes = 1024;

struct QueueScratch {
    uint64_t* outQueues = nullptr;
    uint64_t* workQueues = nullptr;
    std::vector<uint32_t*> levels;
    std::vector<uint64_t*> candidates;
};

/// One layout for the size query and the run.
QueueScratch takeScratch(
        WorkspaceSlices& slices,
        const QueuePlan& plan,
        int k) {
    const size_t slots =
            size_t(plan.warps(plan.rowsAtOnce)) * plan.queueSize * kQueueLanes;
    QueueScratch scratch;
    scratch.outQueues = slices.take<uint64_t>(slots);
    scratch.workQueues = slices.take<uint64_t>(plan.groupLog > 0 ? slots : 0);
    for (uint32_t size : plan.levelSizes) {
        scratch.levels.push_back(slices.take<uint32_t>(
                (size_t(plan.rowsAtOnce) << plan.lanesLog) * size));
    }
    scratch.candidates =
            takeSortSlices(slices, plan.sortPasses, plan.rowsAtOnce, k);
    return scratch;
}

int deviceAttribute(cudaDeviceAttr attribute) {
    int device = 0;
    int value = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    BITS_CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, device));
    return value;
}

/// Whether the queues of so many warps are best in shared memory.
bool hasSharedQueues(
        QueueMemory memory,
        idx_t queueBytes,
        idx_t bufferBytes,
        idx_t warps,
        int multiprocessors) {
    if (memory == QueueMemory::Global) {
        return false;
    }
    const idx_t bytes = queueBytes + bufferBytes;
    const idx_t largest =
            deviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    if (memory == QueueMemory::Shared) {
        BITS_THROW_IF_NOT_FMT(
                bytes <= largest,
                "memory = Shared needs %lld bytes of shared memory a warp, the "
                "device has %lld",
                (long long)bytes,
                (long long)largest);
        return true;
    }
    const idx_t room =
            deviceAttribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) /
            (bytes + kReservedBytes);
    const idx_t needed = std::min(
            (warps + multiprocessors - 1) / multiprocessors,
            kWarpsPerMultiprocessor);
    return bytes <= largest && room >= needed;
}

void launchSearch(
        const QueueSelectOptions& options,
        const QueueParams& params,
        unsigned warps,
        int sharedBytes,
        cudaStream_t stream) {
    auto* launch = launchQueueSearch<QueueKind::Insertion, false>;
    if (options.queue == QueueKind::Heap) {
        launch = launchQueueSearch<QueueKind::Heap, false>;
    } else if (options.queue == QueueKind::Merge) {
        launch = options.aligned ? launchQueueSearch<QueueKind::Merge, true>
                                 : launchQueueSearch<QueueKind::Merge, false>;
    }
    launch(params, warps, sharedBytes, stream);
}

} // namespace

size_t queueSelectWorkspaceBytes(
        const SelectProblem& problem,
        const QueueSelectOptions& options) {
    const QueuePlan plan = planQueueSelect(problem, options);
    WorkspaceSlices slices;
    takeScratch(slices, plan, problem.k);
    return slices.used();
}

void runQueueSelect(
        const SelectProblem& problem,
        const QueueSelectOptions& options,
        Workspace workspace,
        cudaStream_t stream) {
    const QueuePlan plan = planQueueSelect(problem, options);
    if (problem.rows == 0) {
        return;
    }
    checkQueuePointers(problem);
    WorkspaceSlices slices(workspace);
    const QueueScratch scratch = takeScratch(slices, plan, problem.k);

    const idx_t slotBytes = kQueueLanes * sizeof(uint64_t);
    const idx_t bufferBytes = options.buffered ? kQueueBuffer * slotBytes : 0;
    const idx_t queueBytes = plan.queueSize * slotBytes;

    QueueParams params;
    params.select = makeSelectParams(problem);
    params.keyType = problem.keyType;
    params.queueSize = plan.queueSize;
    params.firstLevel = options.firstLevel;
    params.buffered = options.buffered;
    params.flushTogether = options.flushTogether;
    params.localSort = options.localSort;
    params.sharedQueues = hasSharedQueues(
            options.memory,
            queueBytes,
            bufferBytes,
            plan.warps(plan.rowsAtOnce),
            problem.device.multiprocessors);
    params.lanesLog = plan.lanesLog;
    params.segment = plan.segment;
    params.outQueues = scratch.outQueues;
    params.workQueues = scratch.workQueues;
    params.groupLog = plan.groupLog;
    params.numLevels = int(plan.levelSizes.size());
    std::copy(scratch.levels.begin(), scratch.levels.end(), params.levels);
    std::copy(
            plan.levelSizes.begin(), plan.levelSizes.end(), params.levelSizes);
    const int sharedBytes =
            int(bufferBytes + (params.sharedQueues ? queueBytes : 0));

    PartialBitonicParams sort;
    sort.select = params.select;
    sort.keyType = problem.keyType;
    sort.source = SortSource::Queues;
    sort.entries = scratch.outQueues;
    sort.queueSize = plan.queueSize;
    sort.lanesLog = plan.lanesLog;
    // One queue: nothing to filter. Many: most of what they hold is too far.
    sort.buffered = plan.lanesLog > 0;
    sort.readsPerThread = sort.buffered ? 4 : 1;

    for (idx_t row = 0; row < problem.rows; row += plan.rowsAtOnce) {
        const idx_t rows = std::min(plan.rowsAtOnce, problem.rows - row);
        params.select.firstRow = uint32_t(row);
        params.rows = uint32_t(rows);
        if (params.numLevels > 0) {
            buildQueueLevels(params, stream);
        }
        launchSearch(
                options,
                params,
                unsigned(plan.warps(rows)),
                sharedBytes,
                stream);
        runSortPasses(
                sort,
                BitonicStep::Registers,
                plan.sortPasses,
                scratch.candidates,
                row,
                rows,
                stream);
    }
}

QueueSelectOptions queueSelectOptionsOf(ResearchAlgorithm algorithm) {
    QueueSelectOptions options;
    switch (algorithm) {
        case ResearchAlgorithm::MergeQueue:
            return options;
        case ResearchAlgorithm::BufferedSearch:
            options.buffered = true;
            options.localSort = true;
            return options;
        case ResearchAlgorithm::HierarchicalPartition:
            options.partition = 4;
            return options;
        case ResearchAlgorithm::CombinedQueue:
            options.buffered = true;
            options.localSort = true;
            options.partition = 4;
            return options;
        default:
            throw Error(formatMessage(
                    "algorithm = %d is no queue method", int(algorithm)));
    }
}

} // namespace faiss_bits

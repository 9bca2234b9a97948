#include "research/queues/PartialBitonicSelect.h"

#include "kernels/common/Error.h"
#include "kernels/select/SelectChecks.h"
#include "research/queues/QueueProblem.h"
#include "research/queues/SortPasses.h"

namespace faiss_bits {

namespace {

constexpr int kMaxBlocksPerRow = 1 << 16;

void checkOptions(const PartialBitonicOptions& o) {
    BITS_THROW_IF_NOT_FMT(
            o.step == BitonicStep::Shared || o.step == BitonicStep::Shuffles ||
                    o.step == BitonicStep::Registers,
            "step = %d is no step",
            int(o.step));
    BITS_THROW_IF_NOT_FMT(
            !o.buffered || o.step == BitonicStep::Registers,
            "buffered = true needs step = Registers");
    const int reads = o.readsPerThread;
    BITS_THROW_IF_NOT_FMT(
            reads == 1 || reads == 2 || reads == 4 || reads == 8,
            "readsPerThread = %d is not 1, 2, 4 or 8",
            reads);
    BITS_THROW_IF_NOT_FMT(
            o.buffered || (reads == 1 && !o.prefetch),
            "readsPerThread = %d and prefetch = %d need buffered = true",
            reads,
            int(o.prefetch));
    BITS_THROW_IF_NOT_FMT(
            o.blocksPerRow >= 0 && o.blocksPerRow <= kMaxBlocksPerRow,
            "blocksPerRow = %d is outside 0..%d",
            o.blocksPerRow,
            kMaxBlocksPerRow);
}

std::vector<SortPass> planPasses(
        const SelectProblem& p,
        const PartialBitonicOptions& options) {
    checkQueueShape(p);
    checkOptions(options);
    return planSortPasses(
            p.rows,
            p.cols,
            p.k,
            options.blocksPerRow,
            p.device.multiprocessors);
}

} // namespace

size_t partialBitonicWorkspaceBytes(
        const SelectProblem& problem,
        const PartialBitonicOptions& options) {
    WorkspaceSlices slices;
    takeSortSlices(
            slices, planPasses(problem, options), problem.rows, problem.k);
    return slices.used();
}

void runPartialBitonic(
        const SelectProblem& problem,
        const PartialBitonicOptions& options,
        Workspace workspace,
        cudaStream_t stream) {
    const std::vector<SortPass> passes = planPasses(problem, options);
    if (problem.rows == 0) {
        return;
    }
    checkQueuePointers(problem);
    WorkspaceSlices slices(workspace);
    const std::vector<uint64_t*> candidates =
            takeSortSlices(slices, passes, problem.rows, problem.k);

    PartialBitonicParams params;
    params.select = makeSelectParams(problem);
    params.keyType = problem.keyType;
    params.buffered = options.buffered;
    params.readsPerThread = options.readsPerThread;
    params.prefetch = options.prefetch;
    runSortPasses(
            params, options.step, passes, candidates, 0, problem.rows, stream);
}

} // namespace faiss_bits

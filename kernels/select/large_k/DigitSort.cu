/// The launches of DigitSort.cuh.

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/select/SelectChecks.h"
#include "kernels/select/large_k/DigitSort.cuh"

namespace faiss_bits {

namespace {

using Kernel = void (*)(DigitSortParams);

struct Slices {
    uint32_t* highs;
    LimitDigit* limits;
    uint32_t* lows;
    uint32_t* limitLows;
    uint64_t* entries;
    uint32_t* entryHighs;
};

idx_t wantedOf(const SelectProblem& p) {
    return std::min<idx_t>(p.k, p.cols);
}

Slices takeSlices(
        const SelectProblem& p,
        const DigitSortPlan& plan,
        WorkspaceSlices& slices) {
    const size_t rows = plan.batch;
    const size_t counts = rows * plan.splits * kDigits;
    Slices taken;
    taken.highs = slices.take<uint32_t>(counts);
    taken.limits = slices.take<LimitDigit>(rows);
    taken.lows = slices.take<uint32_t>(counts);
    taken.limitLows = slices.take<uint32_t>(counts);
    taken.entries = slices.take<uint64_t>(rows * wantedOf(p));
    taken.entryHighs = slices.take<uint32_t>(rows * plan.entrySplits * kDigits);
    return taken;
}

/// The kernels of `rows` rows from params.select.firstRow on. Each but the
/// first waits for the one before it by itself.
template <class T>
void launchAll(const DigitSortParams& p, idx_t rows, cudaStream_t stream) {
    const unsigned blocks = unsigned(rows * p.splits);
    const unsigned entryBlocks = unsigned(rows * p.entrySplits);
    countHighsKernel<T><<<blocks, kDigitSortThreads, 0, stream>>>(p);
    BITS_CUDA_CHECK(cudaGetLastError());
    const auto next = [&](Kernel kernel, unsigned count) {
        launchAfterPrevious(kernel, count, kDigitSortThreads, 0, stream, p);
    };
    next(countLowsKernel<T>, blocks);
    next(placeByLowKernel<T>, blocks);
    next(countEntriesKernel, entryBlocks);
    next(placeByHighKernel<T>, entryBlocks);
}

} // namespace

size_t digitSortWorkspaceBytes(
        const SelectProblem& problem,
        const DigitSortPlan& plan) {
    WorkspaceSlices slices;
    takeSlices(problem, plan, slices);
    return slices.used();
}

void runDigitSort(
        const SelectProblem& problem,
        const DigitSortPlan& plan,
        Workspace workspace,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const Slices taken = takeSlices(problem, plan, slices);
    DigitSortParams p;
    p.select = makeSelectParams(problem);
    p.wanted = uint32_t(wantedOf(problem));
    p.splits = plan.splits;
    p.entrySplits = plan.entrySplits;
    p.highs = taken.highs;
    p.limits = taken.limits;
    p.lows = taken.lows;
    p.limitLows = taken.limitLows;
    p.entries = taken.entries;
    p.entryHighs = taken.entryHighs;
    for (idx_t row = 0; row < problem.rows; row += plan.batch) {
        const idx_t rows = std::min(plan.batch, problem.rows - row);
        p.select.firstRow = uint32_t(row);
        if (problem.keyType == DataType::Float16) {
            launchAll<__half>(p, rows, stream);
        } else {
            launchAll<__nv_bfloat16>(p, rows, stream);
        }
    }
}

} // namespace faiss_bits

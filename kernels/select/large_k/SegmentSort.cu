#include "kernels/select/large_k/SegmentSort.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/select/SelectChecks.h"
#include "kernels/select/large_k/RadixSort.h"
#include "kernels/select/large_k/SegmentSort.cuh"

namespace faiss_bits {

namespace {

/// The longest run that one block sorts.
constexpr idx_t kBlockRun = 8192;
/// Entries of one radix sort: few enough to bound the scratch, and enough to
/// fill the device.
constexpr idx_t kMostSorted = idx_t(1) << 26;
constexpr idx_t kEnoughSorted = idx_t(1) << 22;
/// Rows of one launch; also the limit of a grid in y.
constexpr idx_t kRowsPerLaunch = 32768;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

/// Calls use(T()) with the type of the keys in memory.
template <class Use>
void withKeyType(DataType type, Use use) {
    switch (type) {
        case DataType::Float32:
            return use(float());
        case DataType::Float16:
            return use(__half());
        case DataType::BFloat16:
            return use(__nv_bfloat16());
    }
}

/// parts x rows blocks: entries to composites, in place, filled up to stride.
__global__ void __launch_bounds__(kRunThreads) composeKernel(
        const __grid_constant__ CompositeLayout layout,
        uint64_t* entries, // [rows, stride]
        uint32_t stride,
        const uint32_t* counts) {
    const uint32_t row = blockIdx.y;
    const uint32_t count = counts ? counts[row] : stride;
    uint64_t* run = entries + uint64_t(row) * stride;
    const uint64_t begin = uint64_t(blockIdx.x) * kRunPart;
    for (uint32_t i = threadIdx.x; i < kRunPart; i += kRunThreads) {
        if (begin + i < stride) {
            run[begin + i] = begin + i < count
                    ? sortedAs(layout, row, run[begin + i])
                    : lastComposite(layout, row);
        }
    }
}

template <class T, int Threads, int Items>
void launchSortRuns(
        const SelectParams& p,
        const SegmentRuns& runs,
        cudaStream_t stream) {
    sortRunKernel<T, Threads, Items>
            <<<unsigned(runs.rows), Threads, 0, stream>>>(
                    p, runs.entries, uint32_t(runs.stride), runs.counts);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class T>
void sortInBlocks(
        const SelectParams& p,
        const SegmentRuns& runs,
        cudaStream_t stream) {
    const auto launch = runs.stride <= 256 ? launchSortRuns<T, 256, 1>
            : runs.stride <= 1024          ? launchSortRuns<T, 256, 4>
            : runs.stride <= 2048          ? launchSortRuns<T, 256, 8>
            : runs.stride <= 4096          ? launchSortRuns<T, 512, 8>
                                           : launchSortRuns<T, 1024, 8>;
    launch(p, runs, stream);
}

dim3 gridOf(idx_t places, idx_t rows) {
    return dim3(unsigned(divUp(places, kRunPart)), unsigned(rows));
}

/// Runs of one radix sort.
void sortTogether(
        const SelectProblem& problem,
        const SegmentSortPlan& plan,
        const SegmentRuns& runs,
        uint64_t* other,
        void* temp,
        size_t tempBytes,
        cudaStream_t stream) {
    SelectParams p = makeSelectParams(problem);
    p.firstRow = uint32_t(runs.firstRow);
    const uint32_t stride = uint32_t(runs.stride);
    const CompositeLayout& layout = plan.layout;
    if (!runs.composed) {
        composeKernel<<<gridOf(stride, runs.rows), kRunThreads, 0, stream>>>(
                layout, runs.entries, stride, runs.counts);
        BITS_CUDA_CHECK(cudaGetLastError());
    }
    const uint64_t* sorted = radixSort(
            runs.entries,
            other,
            uint32_t(runs.rows * runs.stride),
            plan.beginBit,
            layout.columnBits + layout.keyBits + bitsFor(runs.rows),
            temp,
            tempBytes,
            stream);
    withKeyType(problem.keyType, [&](auto key) {
        writeRunsKernel<decltype(key)>
                <<<gridOf(problem.k, runs.rows), kRunThreads, 0, stream>>>(
                        p, layout, sorted, stride, runs.counts);
        BITS_CUDA_CHECK(cudaGetLastError());
    });
}

/// The runs from `row` on, `rows` of them.
SegmentRuns partOf(const SegmentRuns& runs, idx_t row, idx_t rows) {
    SegmentRuns part = runs;
    part.rows = rows;
    part.firstRow += row;
    part.entries += row * runs.stride;
    part.counts = runs.counts ? runs.counts + row : nullptr;
    return part;
}

/// Entries that a radix sort has at most.
size_t sortedAtOnce(const SegmentSortPlan& plan, idx_t rows, idx_t stride) {
    return plan.inBlocks ? 0
                         : size_t(std::min(plan.rowsPerSort, rows)) * stride;
}

size_t tempBytesFor(size_t sortedEntries) {
    return sortedEntries > 0 ? radixSortTempBytes(sortedEntries) : 0;
}

} // namespace

int bitsFor(idx_t count) {
    int bits = 0;
    while ((idx_t(1) << bits) < count) {
        ++bits;
    }
    return bits;
}

SegmentSortPlan planSegmentSort(
        const SelectProblem& problem,
        idx_t rows,
        idx_t stride,
        bool byColumn) {
    SegmentSortPlan plan;
    plan.inBlocks = stride <= kBlockRun;
    if (plan.inBlocks) {
        return plan;
    }
    plan.layout.used = true;
    plan.layout.keyType = problem.keyType;
    plan.layout.keyBits = int(8 * sizeOf(problem.keyType));
    plan.layout.columnBits = bitsFor(problem.cols);
    plan.beginBit = byColumn ? plan.layout.columnBits : 0;

    const int entryBits = plan.layout.keyBits + plan.layout.columnBits;
    const auto passes = [&](int rowBits) {
        return (entryBits - plan.beginBit + rowBits + 7) / 8;
    };
    // At most: what one number and the scratch can hold.
    int most = std::min(bitsFor(rows), 64 - entryBits);
    while (most > 0 && (stride << most) > kMostSorted) {
        --most;
    }
    // As few as fill the device, and more while that costs no pass.
    int rowBits = 0;
    while (rowBits < most &&
           ((stride << rowBits) < kEnoughSorted ||
            passes(rowBits + 1) == passes(rowBits))) {
        ++rowBits;
    }
    plan.rowsPerSort = idx_t(1) << rowBits;
    plan.layout.rowMask = uint32_t(plan.rowsPerSort - 1);
    return plan;
}

size_t segmentSortWorkspaceBytes(
        const SelectProblem& problem,
        idx_t rows,
        idx_t stride,
        bool byColumn) {
    const SegmentSortPlan plan =
            planSegmentSort(problem, rows, stride, byColumn);
    const size_t sorted = sortedAtOnce(plan, rows, stride);
    WorkspaceSlices slices;
    slices.take<uint64_t>(sorted);
    slices.take<uint8_t>(tempBytesFor(sorted));
    return slices.used();
}

void runSegmentSort(
        const SelectProblem& problem,
        const SegmentRuns& runs,
        Workspace workspace,
        cudaStream_t stream) {
    const SegmentSortPlan plan =
            planSegmentSort(problem, runs.rows, runs.stride, runs.byColumn);
    const size_t sorted = sortedAtOnce(plan, runs.rows, runs.stride);
    WorkspaceSlices slices(workspace);
    uint64_t* other = slices.take<uint64_t>(sorted);
    const size_t tempBytes = tempBytesFor(sorted);
    uint8_t* temp = slices.take<uint8_t>(tempBytes);

    const idx_t step = plan.inBlocks
            ? kRowsPerLaunch
            : std::min(kRowsPerLaunch, plan.rowsPerSort);
    for (idx_t row = 0; row < runs.rows; row += step) {
        const SegmentRuns part =
                partOf(runs, row, std::min(step, runs.rows - row));
        if (plan.inBlocks) {
            SelectParams p = makeSelectParams(problem);
            p.firstRow = uint32_t(part.firstRow);
            withKeyType(problem.keyType, [&](auto key) {
                sortInBlocks<decltype(key)>(p, part, stream);
            });
        } else {
            sortTogether(problem, plan, part, other, temp, tempBytes, stream);
        }
    }
}

void writeAllColumns(const SelectProblem& problem, cudaStream_t stream) {
    SelectParams p = makeSelectParams(problem);
    for (idx_t row = 0; row < problem.rows; row += kRowsPerLaunch) {
        const idx_t rows = std::min(kRowsPerLaunch, problem.rows - row);
        p.firstRow = uint32_t(row);
        withKeyType(problem.keyType, [&](auto key) {
            writeAllKernel<decltype(key)>
                    <<<gridOf(problem.k, rows), kRunThreads, 0, stream>>>(p);
            BITS_CUDA_CHECK(cudaGetLastError());
        });
    }
}

} // namespace faiss_bits

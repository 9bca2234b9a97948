#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Workspace.h"
#include "kernels/select/Select.h"
#include "kernels/select/large_k/CompositeLayout.h"

namespace faiss_bits {

/// Runs of entries (kernels/device/Entry.cuh), one a row of the result.
struct SegmentRuns {
    idx_t rows = 0;
    idx_t stride = 0; ///< entries from run to run, and the most a run has
    uint64_t* entries = nullptr; ///< [rows, stride]; overwritten
    /// [rows], entries of each run, at most `stride`; nullptr: all `stride`.
    const uint32_t* counts = nullptr;
    idx_t firstRow = 0; ///< of the result

    /// The entries of every run come in the order of their columns. A sort of
    /// long runs is stable, and need not look at the columns then.
    bool byColumn = false;
    /// They are composites as SegmentSortPlan::layout says; no `counts` then.
    bool composed = false;
};

/// How runs are sorted.
struct SegmentSortPlan {
    bool inBlocks = true; ///< one block sorts a run; no scratch
    /// Otherwise a radix sort of so many runs at a time, a power of two.
    idx_t rowsPerSort = 0;
    int beginBit = 0;
    CompositeLayout layout;
};

SegmentSortPlan planSegmentSort(
        const SelectProblem& problem,
        idx_t rows,
        idx_t stride,
        bool byColumn);

/// Scratch bytes of runSegmentSort. Reads shape and types of the problem.
/// Host only, no CUDA call.
size_t segmentSortWorkspaceBytes(
        const SelectProblem& problem,
        idx_t rows,
        idx_t stride,
        bool byColumn);

/// Sorts every run and writes its first k entries as the result of its row:
/// places behind the run's entries get the sentinel key and id -1.
///
/// Shapes   runs as above; the result [rows, k] at problem.outKeys and outIds,
///          from row firstRow on; problem.keys as the entries' columns say
/// Result   ascending entries
/// Limits   rows * stride < 2^62; stride as kMaxSelectCols
/// Stream   enqueues and never waits; can be captured in a graph
/// Memory   none for stride <= 8192; otherwise 8 bytes an entry for at most
///          max(stride, 2^26) entries, and what CUB needs
/// Errors   throws Error if the workspace is too small or a launch fails
/// Cost     stride <= 8192: bitonic, one block a run. Longer: ceil(bits / 8)
///          passes over rows * stride entries, full or not; bits: of the
///          keys' type, of a row's number, and, unless byColumn, of cols
/// Source   Hanak 2023, 4.3: the result is sorted by CUB's radix sort. There
///          one segmented sort; here rows share a sort, their number on top
void runSegmentSort(
        const SelectProblem& problem,
        const SegmentRuns& runs,
        Workspace workspace,
        cudaStream_t stream);

/// Writes columns 0 to cols - 1 of every row as the result, and sentinels
/// behind them: every column belongs to it, and no order is asked for.
void writeAllColumns(const SelectProblem& problem, cudaStream_t stream);

/// Bits that hold the numbers 0 to count - 1.
int bitsFor(idx_t count);

} // namespace faiss_bits

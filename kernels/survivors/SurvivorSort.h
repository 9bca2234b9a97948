#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Workspace.h"
#include "kernels/select/Select.h"

namespace faiss_bits {

/// Entries that a bucket of the sort is expected to have.
constexpr uint32_t kSurvivorBucket = 2048;

/// Entries (kernels/device/Entry.cuh) of some rows, in any order.
struct SurvivorRuns {
    idx_t rows = 0;
    idx_t capacity = 0; ///< entries from row to row, and the most a row has
    const uint64_t* entries = nullptr; ///< [rows, capacity], distinct in a row
    const uint32_t* counts = nullptr;  ///< [rows], at most `capacity`
    idx_t firstRow = 0;                ///< of the result

    /// Entries of a bucket, 128 or more. Beyond what a block sorts at a time
    /// (3584) buckets are sorted piece by piece: for tests.
    uint32_t bucket = kSurvivorBucket;
};

/// Scratch bytes of runSurvivorSort. Host only, no CUDA call.
size_t survivorSortWorkspaceBytes(
        idx_t rows,
        idx_t capacity,
        uint32_t bucket = kSurvivorBucket);

/// Sorts the entries of every row and writes its first k as the result of the
/// row: places behind the entries get the sentinel key and id -1.
///
/// Shapes   runs as above; the result [rows, k] at problem.outKeys and outIds,
///          from row firstRow on; problem.keys as the entries' columns say.
///          problem.ids = nullptr
/// Result   ascending entries, the same bits in every run. problem.sorted =
///          false: the same k in any order, and most are not sorted then
/// Limits   capacity <= 2^31
/// Stream   enqueues and never waits; can be captured in a graph
/// Memory   about 15 bytes an entry for max(capacity, 2^26) entries at most;
///          little for capacity <= 3584
/// Errors   throws Error if the workspace is too small or a launch fails
/// Cost     O(n): n entries are read twice and written once (to their
///          buckets), and k keys and ids written: at 24 n + (4 + 8) k bytes,
///          n = 1.07 k, 2^28 results of float keys and 64-bit ids take 2.2 ms
///          at 4.5 TB/s. The sizes of the buckets depend on the random sample
///          and not on the keys. A bucket whose entries lie together in few
///          places (several keys, each many times) is sorted by merging, at
///          some times the cost
/// Source   Hanak 2023, 4.3 (Sample Select): splitters from a sorted sample of
///          the entries; here every bucket is sorted on
void runSurvivorSort(
        const SelectProblem& problem,
        const SurvivorRuns& runs,
        Workspace workspace,
        cudaStream_t stream);

} // namespace faiss_bits

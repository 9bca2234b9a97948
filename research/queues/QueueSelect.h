#pragma once

#include <cuda_runtime_api.h>

#include "kernels/select/Select.h"
#include "research/queues/ResearchSelect.h"

namespace faiss_bits {

/// Largest k of the queue methods and of partial bitonic sort.
constexpr int kMaxQueueK = 2048;

/// The queue in which a thread keeps its k best (Tang 2015, III-B and III-C).
enum class QueueKind {
    Insertion, ///< sorted list: O(k) an insert
    Heap,      ///< binary heap: O(log k), irregular accesses
    Merge      ///< Merge Queue: sorted levels of doubling size, merged lazily
};

/// Where the queues are while a thread works.
enum class QueueMemory {
    Auto,   ///< shared where that leaves enough threads on a multiprocessor
    Shared, ///< k up to some 800; an Error where the device has less
    Global  ///< global memory and its caches
};

/// Which of Tang's methods a selection uses. Every combination that makes
/// sense gives the same result; the others are an Error.
struct QueueSelectOptions {
    QueueKind queue = QueueKind::Merge;

    /// Merge only: a warp merges as soon as one of its threads has to, all of
    /// its threads together (III-C, "Aligned Merge").
    bool aligned = true;

    /// Candidates wait in a buffer of 16 a thread (III-D, Buffered Search).
    bool buffered = false;
    /// buffered only: the threads of a warp empty their buffers together as
    /// soon as one is full; false: each its own.
    bool flushTogether = true;
    /// buffered only: a buffer is sorted before it is emptied, best first.
    bool localSort = false;

    /// Group size G of the Hierarchical Partition (III-E): 2, 4, 8 or 16;
    /// 0 = no partition.
    int partition = 0;

    /// Threads, each with a queue of its own, that share a row; a power of
    /// two. 1: as in the paper. 0: enough to fill the device, while a thread
    /// has some times k columns of its own.
    int threadsPerRow = 0;

    /// Merge only: m, the size of the first and second level; a power of two.
    int firstLevel = 8;

    QueueMemory memory = QueueMemory::Auto;
};

/// Scratch bytes that runQueueSelect needs: 256 to 3 GiB, more only where one
/// group of rows (32 / threadsPerRow, at least one) needs more. Host only, no
/// CUDA call. Throws what runQueueSelect throws for a bad shape or option.
size_t queueSelectWorkspaceBytes(
        const SelectProblem& problem,
        const QueueSelectOptions& options);

/// Selects the k best keys of every row with a queue a thread, and merges the
/// queues of a row with a bitonic sort (PartialBitonicSelect.h).
///
/// Contract as runSelect, always sorted; problem.algorithm is not read
/// Limits   k <= kMaxQueueK; no given ids, no biases
/// Stream   enqueues on `stream` and never waits
/// Memory   queueSelectWorkspaceBytes(problem, options)
/// Errors   throws Error on a bad argument (named) or a failed launch
/// Cost     reads the keys once (with partition also what it writes: 1 / (G-1)
///          of them), and O(k log(n / k)) inserts into every queue, where n is
///          the columns of a thread
/// Source   Tang et al. 2015, III
void runQueueSelect(
        const SelectProblem& problem,
        const QueueSelectOptions& options,
        Workspace workspace,
        cudaStream_t stream);

/// Options of MergeQueue, BufferedSearch, HierarchicalPartition (G = 4) and
/// CombinedQueue: the Merge Queue with aligned merges, alone, with a sorted
/// buffer, with the partition, and with both. Throws Error for
/// PartialBitonic, which is no queue.
QueueSelectOptions queueSelectOptionsOf(ResearchAlgorithm algorithm);

} // namespace faiss_bits

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/select/Select.h"

namespace faiss_bits {

/// Where a block sorts (Hanak 2023, 4.1.1, figure 5.2).
enum class BitonicStep {
    Shared,   ///< every step through shared memory
    Shuffles, ///< strides inside a warp by shuffles, data in shared memory
    Registers ///< data in registers, a few consecutive items a thread
};

struct PartialBitonicOptions {
    BitonicStep step = BitonicStep::Registers;

    /// Registers only: keys better than the k-th so far gather in a buffer of
    /// the list's size; sorts and merges happen when it is full (figure 5.3).
    /// false: every key is sorted.
    bool buffered = false;
    /// buffered only: loads of a thread before the first use, 1, 2, 4 or 8
    /// (figure 5.4).
    int readsPerThread = 1;
    /// buffered only: the loads of the next round are announced to the L2.
    bool prefetch = false;

    /// Blocks that share a row; their results are merged in further passes.
    /// 0: enough to fill the device.
    int blocksPerRow = 0;
};

/// Scratch bytes that runPartialBitonic needs; none where a row has one block.
/// Host only, no CUDA call. Throws what runPartialBitonic throws for a bad
/// shape or option.
size_t partialBitonicWorkspaceBytes(
        const SelectProblem& problem,
        const PartialBitonicOptions& options);

/// Selects the k best keys of every row by partial sorting: a block keeps a
/// sorted list, takes as many further keys at a time, sorts and merges them.
///
/// Contract as runSelect, always sorted; problem.algorithm is not read. The
///          list is the power of two from max(k, 128)
/// Limits   k <= kMaxQueueK (QueueSelect.h); no given ids, no biases
/// Stream   enqueues on `stream` and never waits
/// Memory   partialBitonicWorkspaceBytes(problem, options)
/// Errors   throws Error on a bad argument (named) or a failed launch
/// Cost     reads the keys once; O(n log^2 k) a row without a buffer
/// Source   Hanak 2023, 3.5.1 and 4.1.1 to 4.1.5; 128 threads for k <= 512,
///          256 above (5.3.1)
void runPartialBitonic(
        const SelectProblem& problem,
        const PartialBitonicOptions& options,
        Workspace workspace,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/select/Select.h"
#include "kernels/select/SelectParams.h"

namespace faiss_bits {

constexpr int kRowSortBits = 8; ///< of a digit
/// Digits are counted two in a word.
constexpr int kRowSortPairs = 1 << (kRowSortBits - 1);
/// Words from the counts of a warp to those of the next: odd, so that several
/// warps' counts of one digit lie in different banks.
constexpr int kRowSortStride = kRowSortPairs + 1;
/// Words for sums of warps, and two to tell of the last digit that remains.
constexpr int kRowSortSums = 36;
constexpr int kRowSortLast = 32;
constexpr int kRowSortKept = 33;
/// Where k is at most one such part of the columns, a first pass by the highest
/// digit drops most of the others.
constexpr int kRowSortPart = 3;

/// Blocks of a multiprocessor at a time.
constexpr int rowSortBlocks(int threads, int items) {
    return items <= 16 ? 1024 / threads : 1;
}

/// A kernel for rows of up to threads * items columns.
struct RowSortPolicy {
    int threads = 0; ///< 0: none
    int items = 0;

    bool operator==(const RowSortPolicy& other) const {
        return threads == other.threads && items == other.items;
    }

    idx_t mostCols() const {
        return idx_t(threads) * items;
    }
};

/// Of RowSortPolicies.inc, for the problem's rows; none if they are too long.
RowSortPolicy rowSortPolicy(const SelectProblem& problem);

/// Of a block.
size_t rowSortSharedBytes(
        const SelectProblem& problem,
        const RowSortPolicy& policy);

/// Names of the compiled instances: MultiPassFloat and so on.
template <class Keys, int Threads, int Items>
void launchRowSort(
        const SelectParams& params,
        unsigned rows,
        size_t sharedBytes,
        cudaStream_t stream);

/// Sorts every row by one block and writes its first k entries; places behind
/// the row's columns get the sentinel key and id -1.
///
/// Limits   1 <= cols <= policy.mostCols()
/// Stream   enqueues and never waits; can be captured in a graph
/// Memory   none
/// Errors   throws Error if a launch fails
/// Cost     the keys once; two passes through shared memory for keys of 16
///          bits, four for those of 32, fewer where keys share bits; where
///          3 k <= cols one more, after which the others are left out
void runRowSort(
        const SelectProblem& problem,
        const RowSortPolicy& policy,
        cudaStream_t stream);

} // namespace faiss_bits

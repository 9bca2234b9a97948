#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "kernels/common/Workspace.h"
#include "kernels/select/Select.h"
#include "kernels/select/SelectParams.h"

namespace faiss_bits {

constexpr uint32_t kDigits = 256; ///< of 8 bits; a key has two
constexpr int kDigitSortThreads = 1024;
/// Keys, or entries, that a block puts in order at a time.
constexpr int kDigitSortItems = 4;
/// Most blocks of a row: each of them adds up the counts of all.
constexpr uint32_t kMostDigitSplits = 256;

/// How rows of 16-bit keys are selected by counting their digits.
struct DigitSortPlan {
    uint32_t splits = 0;      ///< blocks that read a row; 0: not so
    uint32_t entrySplits = 0; ///< blocks that put its best in order
    idx_t batch = 0;          ///< rows at a time

    std::string toString() const;
};

/// The high digit of a row's k-th key, and how many keys have a lower one.
struct LimitDigit {
    uint32_t digit;
    uint32_t below;
};

/// What the kernels get by value, for one batch of rows.
struct DigitSortParams {
    SelectParams select; // firstRow: of the batch
    uint32_t wanted = 0; // min(k, cols), at least 1
    uint32_t splits = 1;
    uint32_t entrySplits = 1;

    uint32_t* highs = nullptr;      // [rows, splits, 256], by high digit
    LimitDigit* limits = nullptr;   // [rows]
    uint32_t* lows = nullptr;       // [rows, splits, 256], by low digit, of
                                    // keys whose high one is below the limit's
    uint32_t* limitLows = nullptr;  // the same of those that have the limit's
    uint64_t* entries = nullptr;    // [rows, wanted], the best by low digit
    uint32_t* entryHighs = nullptr; // [rows, entrySplits, 256]
};

/// splits = 0 unless keys have 16 bits and there are any. Host only, no CUDA
/// call.
DigitSortPlan planDigitSort(const SelectProblem& problem);

/// Host only, no CUDA call.
size_t digitSortWorkspaceBytes(
        const SelectProblem& problem,
        const DigitSortPlan& plan);

/// Selects the k best of rows of 16-bit keys, best first: the k-th key is found
/// exactly, digit by digit; what is not behind it goes by its low digit, and
/// then by its high digit to the result. No sample, no comparisons, so that
/// neither the order of keys nor equal ones cost more than others.
///
/// Limits   keys of 16 bits; cols >= 1
/// Stream   enqueues five kernels a batch of rows and never waits; can be
///          captured in a graph
/// Memory   8 bytes a result, and 4 KiB for each block of a row; a batch of
///          more than one row takes about 1 GiB at most
/// Errors   throws Error if the workspace is too small or a launch fails
/// Cost     the keys three times (the last two from the L2 where it holds
///          them), the best written and read twice more
/// Source   Merrill and Grimshaw 2011 (a radix sort by counts of blocks);
///          Alabi et al. 2012 (a radix selection)
void runDigitSort(
        const SelectProblem& problem,
        const DigitSortPlan& plan,
        Workspace workspace,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"
#include "kernels/common/Workspace.h"
#include "kernels/select/SelectAlgorithm.h"

namespace faiss_bits {

/// Largest k of the algorithms that keep the best k in shared memory; the
/// others take any.
constexpr int kMaxSelectK = 2048;
/// Most columns and rows of one call.
constexpr idx_t kMaxSelectCols = (idx_t(1) << 32) - (idx_t(1) << 16);
constexpr idx_t kMaxSelectRows = (idx_t(1) << 32) - 1;

/// One k-selection: the k best keys of every row.
struct SelectProblem {
    idx_t rows = 0;
    idx_t cols = 0;
    int k = 0;

    DataType keyType = DataType::Float32; ///< any
    bool largest = false;                 ///< default: the smallest keys
    bool sorted = true; ///< best first; false: the same k in any order

    /// A NaN key is no candidate: where the numbers are used up, the place is
    /// empty, id -1 and the empty key, as FAISS never returns NaN. The result
    /// is best first then, whatever `sorted` says, so that the empty places
    /// come last. false: NaN comes behind every number, with its id.
    bool dropNan = false;

    /// Auto: the fastest known for the shape. An algorithm that cannot take
    /// the problem is an Error that says why.
    SelectAlgorithm algorithm = SelectAlgorithm::Auto;

    const void* keys = nullptr; ///< [rows, cols] of keyType, on the device
    idx_t rowStride = 0;        ///< elements from row to row; 0 = cols

    /// Ids of the keys, [rows, cols] of idType, or nullptr: the id of a key is
    /// its column number plus idOffset. They are read for the results alone,
    /// and decide nothing: equal keys fall to the lower column.
    const void* ids = nullptr;
    idx_t idStride = 0; ///< elements from row to row of ids; 0 = that of keys
    idx_t idOffset = 0;
    IdType idType = IdType::Int64; ///< of ids and of outIds

    /// Float32 keys, smallest only. The key that is compared and
    /// returned is (keys[r][c] + colBias[c]) + rowBias[r], and what is below
    /// zero counts as zero: squared L2 distances from -2<q, x>, the vectors'
    /// squared norms and the queries' squared norms. Without rowBias, zero
    /// stands for it.
    const float* colBias = nullptr; ///< [cols]
    const float* rowBias = nullptr; ///< [rows]
    bool clampAtZero = true; ///< false: with colBias, below zero is below zero

    void* outKeys = nullptr; ///< [rows, k] of keyType
    void* outIds = nullptr;  ///< [rows, k] of idType
    idx_t outStride = 0;     ///< elements from row to row of both; 0 = k

    /// Multiprocessors of the device. It shapes how few long rows are split
    /// over blocks, never the result.
    int multiprocessors = 132;
};

/// Scratch bytes that runSelect needs for this problem. Only the shape, types,
/// algorithm, multiprocessors and which pointers are set are read. Host only,
/// no CUDA call. Throws what runSelect throws for a bad shape.
size_t selectWorkspaceBytes(const SelectProblem& problem);

/// The algorithm that runSelect takes: problem.algorithm or, for Auto, what the
/// tuning table says (SelectTable.inc). Never Auto. Reads what
/// selectWorkspaceBytes reads; host only. Throws what that throws.
SelectAlgorithm chosenAlgorithm(const SelectProblem& problem);

/// Selects the k smallest (or largest) keys of every row.
///
/// Shapes   keys and ids [rows, cols] with rowStride, outKeys and outIds
///          [rows, k]; row-major, device memory of the current device
/// Result   best first; equal keys: lower column first (-0 equals +0), which
///          is the lower id where ids are implicit or ascend in a row; NaN
///          sorts behind every number, or with dropNan is no candidate; fewer
///          than k candidates: the rest of the row is (+max, -1) for smallest
///          and
///          (-max, -1) for largest, where max is the largest finite value of
///          keyType. Same input, same bits; with
///          sorted = false the same k in any order
/// Limits   k >= 1, 0 <= rows <= kMaxSelectRows, 0 <= cols <= kMaxSelectCols,
///          rowStride >= cols; any alignment that suits the type, fastest when
///          rows start at multiples of 16 bytes. The outputs do not
///          overlap keys, ids or biases
/// Stream   enqueues on `stream` and never waits; can be captured in a graph
/// Memory   selectWorkspaceBytes(problem) bytes of scratch; none for many rows
///          and k <= kMaxSelectK
/// Errors   throws Error on a bad argument (named), an algorithm that cannot
///          take the problem (named, with the reason) or a failed launch
/// Cost     reads the keys once, and a sample of them; the work on what passes
///          the limit from the sample, k and some more, is O(k log k) at most.
///          A row that the sample misleads is read again (README.md).
///          docs/algorithms.md has the other algorithms
/// Source   Hanak 2023 (chapters 3 and 4), Tang 2015: see SelectAlgorithm
void runSelect(
        const SelectProblem& problem,
        Workspace workspace,
        cudaStream_t stream);

} // namespace faiss_bits

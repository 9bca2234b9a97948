#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "kernels/common/DeviceTraits.h"
#include "kernels/common/Types.h"
#include "kernels/common/Workspace.h"
#include "kernels/select/SelectAlgorithm.h"

namespace faiss_bits {

/// Largest k of the algorithms that keep the best k in shared memory; the
/// others take any.
constexpr int kMaxSelectK = 2048;
/// Most columns of one call.
constexpr idx_t kMaxSelectCols = (idx_t(1) << 32) - (idx_t(1) << 16);
/// Most rows of one call.
constexpr idx_t kMaxSelectRows = (idx_t(1) << 32) - 1;

/// One k-selection: the k best keys of every row.
struct SelectProblem {
    idx_t rows = 0; ///< 0 .. kMaxSelectRows
    idx_t cols = 0; ///< 0 .. kMaxSelectCols
    int k = 0;      ///< 1 or more; may exceed cols

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
    bool sharedIds = false; ///< ids is [cols], the same for every row
    idx_t idOffset = 0;     ///< added to the columns where ids is nullptr
    IdType idType = IdType::Int64; ///< of ids and of outIds

    /// Float32 keys, smallest only. The key that is compared and
    /// returned is (keys[r][c] + colBias[c]) + rowBias[r], and what is below
    /// zero counts as zero: squared L2 distances from -2<q, x>, the vectors'
    /// squared norms and the queries' squared norms. Without rowBias, zero
    /// stands for it.
    const float* colBias = nullptr; ///< [cols]
    const float* rowBias = nullptr; ///< [rows]
    bool clampAtZero = true; ///< false: with colBias, below zero is below zero
    /// With colBias and clampAtZero = false: the key is the negative of what is
    /// wanted, largest first; results and empty places are as of `largest`,
    /// with the sign turned back, and zeros are +0.
    bool negated = false;

    bool idsGiven = false;     ///< for a plan: ids will be set at the run
    bool colBiasGiven = false; ///< likewise colBias
    bool rowBiasGiven = false; ///< likewise rowBias

    /// Are there ids, now or at the run?
    bool hasIds() const {
        return ids || idsGiven;
    }
    /// Likewise colBias.
    bool hasColBias() const {
        return colBias || colBiasGiven;
    }
    /// Likewise rowBias.
    bool hasRowBias() const {
        return rowBias || rowBiasGiven;
    }

    void* outKeys = nullptr; ///< [rows, k] of keyType
    void* outIds = nullptr;  ///< [rows, k] of idType
    idx_t outStride = 0;     ///< elements from row to row of both; 0 = k

    /// The device that the selection runs on (deviceTraits). It shapes how the
    /// work is cut and which algorithm Auto takes, never the result.
    DeviceTraits device;
};

class SelectFamilyPlan;

/// How selections of one shape go: the algorithm, its own plan, the scratch. It
/// serves any number of runs, on several streams and threads, and is cheap to
/// copy.
class SelectPlan {
   public:
    /// Never Auto.
    SelectAlgorithm algorithm() const {
        return algorithm_;
    }
    /// Least scratch bytes of a run.
    size_t workspaceBytes() const {
        return workspaceBytes_;
    }
    /// Such as "sample_threshold: a block a row, threads = 128, ...".
    std::string toString() const;

   private:
    friend SelectPlan planSelection(const SelectProblem&);
    friend void runSelect(
            const SelectPlan&,
            const SelectProblem&,
            Workspace,
            cudaStream_t);

    SelectAlgorithm algorithm_ = SelectAlgorithm::Auto;
    size_t workspaceBytes_ = 0;
    SelectProblem shape_;
    std::shared_ptr<const SelectFamilyPlan> family_; // none for no rows
};

/// Plans problem.algorithm or, for Auto, what the tuning table says
/// (SelectTable.inc). Reads all but pointers, and of those which are set or
/// will be. Host only, no CUDA call. A thread remembers its last few plans: the
/// same shape again takes 0.1 us, in place of up to 4. Throws what runSelect
/// throws for a bad shape.
SelectPlan planSelection(const SelectProblem& shape);

/// Runs a problem of the shape that was planned. Throws Error that names what
/// differs, and what the other runSelect throws.
void runSelect(
        const SelectPlan& plan,
        const SelectProblem& problem,
        Workspace workspace,
        cudaStream_t stream);

/// planSelection(problem).workspaceBytes().
size_t selectWorkspaceBytes(const SelectProblem& problem);

/// planSelection(problem).algorithm().
SelectAlgorithm chosenAlgorithm(const SelectProblem& problem);

/// Selects the k smallest (or largest) keys of every row: plans and runs.
///
/// Shapes   keys and ids [rows, cols] with rowStride, outKeys and outIds
///          [rows, k]; row-major, device memory of the current device
/// Result   best first; equal keys: lower column first (-0 equals +0), which
///          is the lower id where ids are implicit or ascend in a row; NaN
///          sorts behind every number, or with dropNan is no candidate; fewer
///          than k candidates: the rest of the row is (+max, -1) for smallest
///          and (-max, -1) for largest, where max is the largest finite value
///          of keyType. Same input, same bits; with sorted = false the same k
///          in any order
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

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/common/Workspace.h"
#include "kernels/device/KeySource.h"
#include "kernels/survivors/ResultParams.h"

/// From lists of candidates to results, whoever made the lists: a selection
/// from a matrix of keys, or a search that has none.
namespace faiss_bits {

/// Largest k of which one block finishes a row.
constexpr int kMaxFinishK = 2048;
/// Entries that a row's list has room for at most, and the bound of columns.
constexpr idx_t kMaxSurvivors = (idx_t(1) << 32) - (idx_t(1) << 16);
/// Entries that a bucket of the sort is expected to have.
constexpr uint32_t kSurvivorBucket = 2048;

/// Entries (kernels/device/Entry.cuh) of some rows, in any order.
struct SurvivorList {
    idx_t rows = 0;
    idx_t capacity = 0; ///< entries from row to row, and the most a row has
    const uint64_t* entries = nullptr; ///< [rows, capacity], distinct in a row
    /// [rows], entries of each row. Above `capacity`: those beyond it are lost,
    /// and the list is what it has.
    const uint32_t* counts = nullptr;
    /// [rows], an entry that k or more of a row's are not above, or nullptr.
    /// It saves time where k <= kMaxFinishK, and is not read beyond.
    const uint64_t* limits = nullptr;

    /// Entries that most rows have no more than; 0: not known. It decides speed
    /// alone.
    idx_t usual = 0;

    idx_t columns = kMaxSurvivors; ///< those of the entries are below it
    idx_t firstRow = 0;            ///< of the output, and of special keys

    /// Entries of a bucket, 128 or more. Beyond what a block sorts at a time
    /// (3584) buckets are sorted piece by piece: for tests.
    uint32_t bucket = kSurvivorBucket;
};

/// Where the results of the rows go. All but the pointers as in SelectProblem.
struct SurvivorOutput {
    int k = 0;
    DataType keyType = DataType::Float32;
    bool largest = false; ///< entries were made of keys with the sign flipped
    bool sorted = true;
    bool dropNan = false;

    const void* ids = nullptr; ///< [rows, columns] of idType, or nullptr
    idx_t idStride = 0;        ///< elements from row to row; 0 = columns
    bool sharedIds = false;    ///< ids is [columns], the same for every row
    idx_t idOffset = 0;        ///< without ids, the id of column 0
    IdType idType = IdType::Int64;

    void* outKeys = nullptr; ///< [firstRow + rows, k] of keyType
    void* outIds = nullptr;  ///< [firstRow + rows, k] of idType
    idx_t outStride = 0;     ///< elements from row to row of both; 0 = k

    /// Of lists of float32 keys that may lack entries, k <= kMaxFinishK:
    /// [rows], the key up to which a list has all that there are; infinity:
    /// all; NaN: the result is not to be doubted. nullptr: nothing is asked.
    const float* complete = nullptr;
    /// [rows, 2], written with `complete`: 1, 0 where a list had more entries
    /// than its capacity, or the k-th result is missing or beyond that key;
    /// else 0, 0.
    uint8_t* flags = nullptr;

    DeviceTraits device; ///< decides speed, never the result
};

/// Scratch bytes of runSurvivors: none for k <= kMaxFinishK. Reads the shape of
/// the list. Host only, no CUDA call.
size_t survivorWorkspaceBytes(const SurvivorList& list, int k);

/// Writes the k best entries of every row as its result: places behind the
/// entries get the sentinel key and id -1.
///
/// Shapes   list as above; the output [rows, k] from row firstRow on
/// Keys     are in their entries, save that an entry knows one zero and one
///          NaN. `specials`, if not nullptr, says where the keys lie in memory,
///          and these two are fetched there, by row and column; else they are
///          +0 and the canonical NaN
/// Result   best first: ascending entries, the same bits in every run. sorted =
///          false: the same k in any order, and for k > kMaxFinishK most are
///          not sorted then
/// Limits   0 <= rows < 2^31, capacity and columns <= kMaxSurvivors, k >= 1
/// Stream   enqueues and never waits; can be captured in a graph
/// Memory   none for k <= kMaxFinishK; else that of runSurvivorSort
/// Errors   throws Error on a bad argument (named), if the workspace is too
///          small, or if a launch fails
/// Cost     one block a row for k <= kMaxFinishK: for lists of up to some ten
///          thousand entries; else that of runSurvivorSort
void runSurvivors(
        const SurvivorList& list,
        const SurvivorOutput& output,
        const KeySource* specials,
        Workspace workspace,
        cudaStream_t stream);

/// Scratch bytes of runSurvivorSort. Host only, no CUDA call. Throws Error for
/// a capacity beyond kMaxSurvivors.
size_t survivorSortWorkspaceBytes(
        idx_t rows,
        idx_t capacity,
        uint32_t bucket = kSurvivorBucket);

/// The same by a sort of many blocks a row, for any k.
///
/// Memory   about 15 bytes an entry for max(capacity, 2^26) entries at most;
///          little for capacity <= 3584
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
        const SurvivorList& list,
        const SurvivorOutput& output,
        const KeySource* specials,
        Workspace workspace,
        cudaStream_t stream);

/// What kernels get of an output.
ResultParams makeResultParams(const SurvivorOutput& output, idx_t columns);

} // namespace faiss_bits

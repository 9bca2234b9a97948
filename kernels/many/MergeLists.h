#pragma once

#include <vector>

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"

/// Results of several searches of the same queries, each of other vectors, made
/// one. Everything lies on the device.
namespace faiss_bits {

/// Lists of a merge at most: they are passed to the kernel by value.
constexpr int kMaxMergeLists = 64;

/// What one search found.
struct MergeList {
    /// [rows, width], best first; behind the last result anything
    const float* distances = nullptr;
    const idx_t* ids = nullptr; ///< [rows, width], -1 behind the last result
    idx_t width = 0;            ///< 0: nothing; the pointers may be null then
    idx_t idOffset = 0;         ///< added to the ids that are not -1
    /// The search had more results than these, maybe: it was asked for `width`.
    bool isCut = false;
};

/// What runMergeLists does. All but the pointers are plain values.
struct MergeProblem {
    idx_t rows = 0;               ///< of every list and of the results
    idx_t k = 0;                  ///< results of a row
    std::vector<MergeList> lists; ///< those without results may be left out
    bool largest = false;         ///< the largest distances are first

    /// Every id of a list, with its offset, is below those of the lists behind
    /// it: equal distances fall to the list in front, and ids are only copied.
    /// Else ids are compared.
    bool idsAscend = false;

    float* outDistances = nullptr; ///< [rows, k]
    idx_t* outIds = nullptr;       ///< [rows, k]
    /// [rows], distances beyond which lists may lack results
    /// (FlatKnnProblem::limits); NaN or an infinity: they lack none. nullptr:
    /// none of any row.
    const float* limits = nullptr;
    /// [rows], not null if a list is cut or there are limits: becomes 1 where
    /// all of a list that is cut is among the k best, so that what was cut off
    /// may be too, and where the k-th is beyond the limit or not there; else it
    /// stays.
    uint8_t* incomplete = nullptr;
};

/// The k best results of every row, of all lists.
///
/// Shapes   lists and outputs as above; outputs must not overlap lists
/// Lists    in the order (distance, id), no NaN: what searches of ours return
/// Result   in the order (distance, id, list); -0 counts as +0; distances keep
///          their bits. Behind the last result FLT_MAX (-FLT_MAX if `largest`)
///          and id -1
/// Limits   0 <= rows < 2^31, 1 <= k < 2^31, up to kMaxMergeLists lists of
///          0 <= width < 2^31, below 2^32 together
/// Stream   enqueues and never waits; can be captured in a graph
/// Memory   none
/// Errors   throws Error on a bad argument (named) or a failed launch
/// Cost     with S lists of width k in random order: about k results are read
///          (12 bytes) and k written; each is compared with S log2(k / S)
///          others. Where one list holds all of the best: up to S k are read
/// Source   ours. An element's place is the number of elements before it, by
///          binary search in every list (the rank merge of Hanak 2023, 4.1.1,
///          with more than two lists); only elements up to a bound take part:
///          the greatest of the ceil(k / S)-th of the lists
void runMergeLists(const MergeProblem& problem, cudaStream_t stream);

} // namespace faiss_bits

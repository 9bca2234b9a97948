#pragma once

#include <faiss/Index.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/flat/SelectorTree.h"
#include "kernels/knn/FlatKnn.h"

namespace faiss_bits::gpu::detail {

/// Ids of lists have 32 bits: there is none of more vectors.
constexpr idx_t kMostListable = INT32_MAX;

/// Most ids of n that a list is kept of: with more, a search by the list saves
/// less than a search by bits costs.
constexpr idx_t mostListed(idx_t n) {
    return n / 4 * 3 + n % 4;
}

/// What a filter will be, before it is evaluated.
struct FilterShape {
    bool hasBits = false;
    bool hasIds = false;
    idx_t numIds = 0;     ///< of the list
    size_t bitBytes = 0;  ///< temporary memory that the call takes for bits
    size_t listBytes = 0; ///< and then for the list

    /// Sets in the problem what the filter would, for a plan: addresses that
    /// must not be read.
    void expectFor(FlatKnnProblem& problem) const;
};

/// For a search of `queries` queries among n vectors on `device`. Host only;
/// reads the selector as the search does (readSelector has errors and cost).
FilterShape filterShapeOf(
        const faiss::SearchParameters* params,
        idx_t n,
        idx_t queries,
        int device);

/// The filter of one call, on the device: SearchParameters::sel evaluated, or
/// what a DeviceSelector holds. Without `sel` it is empty. And the limits of a
/// SearchWithin.
///
/// Stream  enqueues (SelectorBits.h says when it waits)
/// Memory  temporary memory, n / 8 bytes and 4 bytes for each id of a list; it
///         is let go of in the reverse order of what else the call takes
class SearchFilter {
   public:
    /// For a search of `queries` queries among n vectors.
    SearchFilter(
            const GpuContext& context,
            const faiss::SearchParameters* params,
            idx_t n,
            idx_t queries);

    SearchFilter(const SearchFilter&) = delete;
    SearchFilter& operator=(const SearchFilter&) = delete;

    void apply(FlatKnnProblem& problem) const {
        problem.allowedBits = bits_;
        problem.allowedIds = ids_;
        problem.numAllowed = numIds_;
    }

    /// The limits of the queries from number `first` of the call on.
    void applyLimits(FlatKnnProblem& problem, idx_t first) const {
        problem.limits = limits_ ? limits_ + first : nullptr;
        problem.numWithin = numWithin_;
    }

   private:
    void evaluate_(
            const GpuContext& context,
            const SelectorTree& tree,
            const FilterShape& shape,
            idx_t n);

    const uint32_t* bits_ = nullptr;
    const int32_t* ids_ = nullptr;
    idx_t numIds_ = 0;
    const float* limits_ = nullptr;
    idx_t numWithin_ = 0;
    TemporaryMemory ownBits_;
    TemporaryMemory ownIds_;
};

} // namespace faiss_bits::gpu::detail

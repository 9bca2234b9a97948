#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/FlatKnnPlan.h"

namespace faiss_bits {

/// What a filtered search by products brings along for each tile of vectors:
/// the vectors of its list, copied together, and the bias of its columns, NaN
/// where a vector is not allowed; and NaN over the distances of methods that
/// know nothing of filters. Without a filter it does nothing.
class FilterTiles {
   public:
    FilterTiles(
            const FlatKnnProblem& problem,
            const FlatKnnPlan& plan,
            const FlatKnnScratch& scratch)
            : p_(problem), plan_(plan), scratch_(scratch) {}

    /// Enqueues what the tile needs, unless it was the last one too.
    ///
    /// vectorNorms  [n], or nullptr: of the list they are computed
    void enter(
            idx_t first,
            idx_t count,
            const float* vectorNorms,
            cudaStream_t stream);

    /// Enqueues what is left to do when the tile's distances are there.
    void leave(idx_t first, idx_t count, idx_t queries, cudaStream_t stream)
            const;

    /// Of the list from place `first` on, in the type of the results.
    const void* ids(idx_t first) const {
        return scratch_.wideIds
                ? static_cast<const void*>(scratch_.wideIds + first)
                : p_.allowedIds + first;
    }

    /// [count] of the tile, or nullptr.
    const float* columnBias() const {
        return scratch_.columnBias;
    }

    /// [gatheredWidth(count), d] of the tile, or nullptr.
    const void* gathered() const {
        return scratch_.gathered;
    }

   private:
    const FlatKnnProblem& p_;
    const FlatKnnPlan& plan_;
    const FlatKnnScratch& scratch_;
    idx_t entered_ = -1; // first vector of the tile that is there
    bool widened_ = false;
};

} // namespace faiss_bits

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/FlatKnnPlan.h"

namespace faiss_bits {

/// What a filtered search by products brings along for each tile of vectors:
/// the vectors of its list, copied together, and the bias of its columns, NaN
/// where a vector is not allowed. Without a filter, and for methods that filter
/// by themselves, it does nothing.
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
};

} // namespace faiss_bits

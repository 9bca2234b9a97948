#pragma once

#include <algorithm>

#include "kernels/knn/FlatKnn.h"

namespace faiss_bits {

/// Sets tileQueries and bytes of a plan: of all queries, `most` or some more
/// than a half, a quarter and so on of them, in even tiles, the first that has
/// at most maxBytes of scratch. false: not even tiles of 512 queries have.
template <class Scratch, class Plan>
bool setTileQueries(
        const FlatKnnProblem& p,
        Plan& plan,
        idx_t most,
        size_t maxBytes) {
    constexpr idx_t kLeast = 512;
    const auto divUp = [](idx_t a, idx_t b) { return (a + b - 1) / b; };
    for (idx_t tile = std::min(p.numQueries, most);; tile = divUp(tile, 2)) {
        plan.tileQueries = divUp(p.numQueries, divUp(p.numQueries, tile));
        WorkspaceSlices slices;
        Scratch(p, plan, slices);
        plan.bytes = slices.used();
        if (plan.bytes <= maxBytes) {
            return true;
        }
        if (tile <= kLeast) {
            return false;
        }
    }
}

} // namespace faiss_bits

/// Pairs that the fast arithmetic of a metric is not for.
#pragma once

#include "kernels/knn/fused/pairwise/AppendPassed.cuh"
#include "kernels/knn/fused/pairwise/PassTest.cuh"
#include "kernels/knn/pairwise/CanonicalPair.cuh"

namespace faiss_bits {

/// Whether the canonical key of a pair passes. NaN is no approximation here,
/// but what the search leaves out: it does not pass.
template <class Term>
__device__ __forceinline__ bool canonicalPasses(
        const FusedPairwiseParams& params,
        idx_t vector,
        idx_t query) {
    const float value = canonicalPair<Term::kMetric>(
            params.pairs.vectors,
            vector,
            params.pairs.queries,
            query,
            params.pairs.d);
    const float key = PassTest<Term>::kSimilarity ? -value : value;
    return key == key && passesLimit(params, query, key);
}

} // namespace faiss_bits

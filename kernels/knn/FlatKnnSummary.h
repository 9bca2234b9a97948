#pragma once

#include <string>

#include "kernels/common/DeviceSpeed.h"
#include "kernels/knn/FlatKnnPlan.h"

namespace faiss_bits {

/// What a plan says to people and programs: numbers and names, no pointers.
struct FlatKnnSummary {
    /// "line", "sorted_line", "direct", "few_dims", "few_dims_top",
    /// "all_pairs", "nearest", "fused_tensor", "fused_pairwise"; of searches
    /// with a matrix of distances "few_queries", "gemm", "cosine" or
    /// "pairwise"; "none" without queries. docs/plans.md says what they are.
    std::string method = "none";
    idx_t tileQueries = 0; ///< queries that are searched for together
    idx_t tileVectors = 0; ///< vectors of a tile of distances
    /// Vectors that a query's exact distances are computed of, at most where
    /// they lie in lists; 0 in plain searches.
    idx_t candidates = 0;
    /// How the rows of a matrix are selected from (SelectPlan::toString); empty
    /// where there is none.
    std::string selection;
    size_t scratchBytes = 0; ///< device memory: FlatKnnPlan::bytes
    double microseconds = 0; ///< flatKnnMicroseconds
    std::string details;     ///< FlatKnnPlan::toString
};

/// Of the plan of a problem. Host only, no CUDA call.
FlatKnnSummary summaryOf(
        const FlatKnnPlan& plan,
        const FlatKnnProblem& problem,
        const DeviceSpeed& speed = {});

} // namespace faiss_bits

#pragma once

#include <string>

#include "faiss_bits/common/FaissCompat.h"

namespace faiss_bits::gpu {

/// How a flat search on the GPU goes: which method runs, in which pieces, with
/// what scratch, and for how long. docs/plans.md says what to make of it.
struct GpuSearchPlan {
    /// "line", "sorted_line", "direct", "few_dims", "few_dims_top",
    /// "all_pairs", "nearest", "fused_tensor", "fused_pairwise", "few_queries",
    /// "gemm", "cosine" or "pairwise"; "none" without queries.
    std::string method = "none";
    idx_t pages = 0;          ///< queries go through the GPU page by page
    idx_t queriesPerPage = 0; ///< of all pages but the last
    idx_t tileQueries = 0;    ///< of a page, that are searched for together
    idx_t tileVectors = 0;    ///< that a tile of queries meets at a time
    /// Vectors that a query's exact distances are computed of, at most where
    /// they lie in lists; 0 in plain searches and where fast mode answers.
    idx_t candidates = 0;
    /// How rows of distances are selected from; empty where that is not a step
    /// of its own.
    std::string selection;
    /// What the search does about the 16-bit copy of the vectors that an index
    /// keeps: "none", "not_yet", "make" or "kept".
    std::string searchImage = "none";
    /// Device memory that the search of a page takes, beside that of pages,
    /// filters and what is kept.
    size_t scratchBytes = 0;
    /// Of all pages, with arrays on the device: copies from and to the host,
    /// and the evaluation of a filter, are not in it. Measured on an H200 and
    /// scaled by clocks for other GPUs (docs/plans.md: how near it is).
    double expectedMs = 0;
    /// The plan of a page in the kernels' own words.
    std::string details;

    /// One line.
    std::string toString() const;
};

} // namespace faiss_bits::gpu

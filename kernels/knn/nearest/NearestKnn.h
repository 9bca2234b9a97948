#pragma once

#include <optional>
#include <string>

#include "kernels/knn/FlatKnn.h"

/// Certified searches for the one nearest of few vectors: assignment to
/// centroids, coarse quantizers. One scan on tensor cores keeps the two nearest
/// of every strip of vectors in registers; the canonical distances of those
/// that may be the nearest decide, and the value of the best of the others
/// proves it. No sample, no lists. docs/exact.md
namespace faiss_bits {

/// How such a search goes about a problem.
struct NearestPlan {
    idx_t tileQueries = 0; // scanned for together
    size_t bytes = 0;

    std::string toString() const;
};

/// Whether this is a way for the problem, given the scratch.
bool takesNearest(const FlatKnnProblem& problem);

/// The plan, if it is, and maxBytes are enough.
std::optional<NearestPlan> planNearest(
        const FlatKnnProblem& problem,
        size_t maxBytes);

/// Runs it. Arguments were checked; errors and stream as runFlatKnn.
void runNearest(
        const NearestPlan& plan,
        const FlatKnnProblem& problem,
        Workspace workspace,
        cudaStream_t stream);

} // namespace faiss_bits

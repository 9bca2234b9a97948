#pragma once

#include <optional>
#include <string>

#include "kernels/knn/FlatKnn.h"

/// Certified searches by cosine in one dimension. All numbers of one sign lie
/// in one direction, so a canonical cosine is 1, 0 or -1: the nearest of a
/// query are the vectors of its sign in the order of their numbers, then zeros,
/// then the others. Every other way compares thousands of vectors that are
/// equally near.
namespace faiss_bits {

struct LinePlan {
    idx_t listed = 0; // vectors of a kind that are listed: min(k, n)
    idx_t chunkVectors = 0;
    idx_t chunks = 0;
    size_t bytes = 0;

    /// One line.
    std::string toString() const;
};

/// The plan, if the problem is one for it and its scratch takes at most
/// maxBytes.
std::optional<LinePlan> planLine(
        const FlatKnnProblem& problem,
        size_t maxBytes);

/// Microseconds that it is expected to take.
double lineMicroseconds(const FlatKnnProblem& problem);

void runLine(
        const LinePlan& plan,
        const FlatKnnProblem& problem,
        Workspace workspace,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <optional>
#include <string>

#include "kernels/knn/FlatKnn.h"

/// Certified searches in one dimension by L2 and inner product. The numbers are
/// sorted once for all queries. From there a query's nearest are next to each
/// other: on both sides of it by L2, at one end by inner product. Nothing is
/// approximated, proved or repeated. docs/design/flat_few_dimensions.md
namespace faiss_bits {

struct SortedLinePlan {
    int threads = 0;   // of a query
    uint32_t room = 0; // entries of a query in shared memory
    size_t bytes = 0;

    /// One line.
    std::string toString() const;
};

/// Whether it is expected to take less time than any other certified search.
/// Reads shape, types and layouts.
bool sortedLinePays(const FlatKnnProblem& problem);

/// Microseconds that it is expected to take.
double sortedLineMicroseconds(const FlatKnnProblem& problem);

/// The plan, if the problem is one for it, whether it pays or not, and its
/// scratch takes at most maxBytes.
std::optional<SortedLinePlan> planSortedLine(
        const FlatKnnProblem& problem,
        size_t maxBytes);

void runSortedLine(
        const SortedLinePlan& plan,
        const FlatKnnProblem& problem,
        Workspace workspace,
        cudaStream_t stream);

} // namespace faiss_bits

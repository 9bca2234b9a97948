#pragma once

#include <optional>
#include <string>

#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/direct/DirectLaunch.h"

/// Searches of so few pairs that the canonical distances of all cost no more
/// than to find candidates for them: one query and vectors that are read once,
/// few allowed vectors, small collections. Nothing is to be proved then, and
/// nothing searched again.
///
/// Two kernels. The first writes the keys of all pairs, 4 bytes each, and the
/// least of every group of vectors. The k-th least of those is a limit: as many
/// groups as that have all that is not above it, whatever the data. The second
/// reads their keys again, and sorts what is left. Where k is large and queries
/// are few, several blocks of a kernel between them read those keys; where a
/// query's keys and k are few, a thread's keys are the groups, in registers.
namespace faiss_bits {

struct DirectPlan {
    uint32_t groups = 0;
    uint32_t logUnits = 0; // of kDirectUnit vectors each, in a group
    uint32_t logRun = 0;   // DirectKeys::logRun
    idx_t stride = 0;      // keys of a query
    uint32_t capacity = 0; // entries of a query's list
    bool few = false;      // one block has all keys of a query in registers
    bool spread = false;   // several blocks finish a query
    DirectShape shape = DirectShape::OneQuery;
    size_t bytes = 0;

    /// One line.
    std::string toString() const;
};

/// Whether it is expected to take less time than any other certified search.
/// Reads shape, types and layouts, and nothing of an image: withImage says
/// whether one is or can be kept.
bool directPays(const FlatKnnProblem& problem, bool withImage);

/// Microseconds that it is expected to take, without the host's time.
double directMicroseconds(const FlatKnnProblem& problem);

/// The same of cosines of few queries by a fused search, component by
/// component.
double sampledCosineMicroseconds(const FlatKnnProblem& problem);

/// Whether its finish sorts out all keys of a query, more than shared memory
/// has room for, as no fewer than all groups have some of the k nearest.
bool directMeetsAllKeys(const FlatKnnProblem& problem);

/// The plan, if the problem is one for it, whether it pays or not, and its
/// scratch takes at most maxBytes.
std::optional<DirectPlan> planDirect(
        const FlatKnnProblem& problem,
        size_t maxBytes);

void runDirect(
        const DirectPlan& plan,
        const FlatKnnProblem& problem,
        Workspace workspace,
        cudaStream_t stream);

} // namespace faiss_bits

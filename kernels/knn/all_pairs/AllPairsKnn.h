#pragma once

#include <optional>
#include <string>

#include "kernels/knn/FlatKnn.h"
#include "kernels/select/Select.h"

/// Searches of many queries in few vectors, where candidates cost more than
/// they save: the canonical distances of all pairs as a matrix, some queries at
/// a time, and a selection of each of its rows. Nothing is to be proved, and
/// equal distances cost no more than others.
namespace faiss_bits {

/// What computes the products of pairs.
enum class PairProducts {
    Auto,
    Float64, ///< matrix instructions of float64
    Digits   ///< those of integers of 8 bits (digits/)
};

struct AllPairsPlan {
    bool byDigits = false;
    idx_t tileQueries = 0;
    idx_t stride = 0; // of a row of the matrix
    /// Of a tile's rows, and of the last one's.
    SelectPlan selection;
    SelectPlan lastSelection;
    size_t bytes = 0;

    /// One line.
    std::string toString() const;
};

/// Whether the problem is one for it.
bool takesAllPairs(const FlatKnnProblem& problem);

/// Whether it is expected to take less time than searches of more than some
/// queries by candidates. Reads shape and types alone.
bool allPairsPays(const FlatKnnProblem& problem);

/// Microseconds that it is expected to take, without the host's time.
double allPairsMicroseconds(const FlatKnnProblem& problem);

/// The same of searches by candidates from a matrix of products.
double candidatesMicroseconds(const FlatKnnProblem& problem);

/// The plan, if the problem is one for it, and for these products, whether it
/// pays or not, and its scratch takes at most maxBytes.
std::optional<AllPairsPlan> planAllPairs(
        const FlatKnnProblem& problem,
        size_t maxBytes,
        PairProducts products = PairProducts::Auto);

void runAllPairs(
        const AllPairsPlan& plan,
        const FlatKnnProblem& problem,
        Workspace workspace,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <optional>
#include <string>

#include "kernels/knn/FlatKnn.h"
#include "kernels/many/MergeLists.h"

/// Searches of more vectors than kernels count, which do so by 32 bits: some
/// vectors after others, each such part a search of its own, and the results
/// merged (kernels/many/MergeLists.h). Canonical distances do not depend on
/// what else is searched, so the result is that of one search; plain distances
/// are those of their part's.
namespace faiss_bits {

/// Vectors of a part at most: whole words of a filter.
constexpr idx_t kMostPartVectors = (idx_t(1) << 31) - 32;
/// And of all parts, whose results are merged at a time: 2^37 - 2^11.
constexpr idx_t kMostVectors = kMostPartVectors * kMaxMergeLists;

struct PartsPlan {
    idx_t partVectors = 0; ///< of every part but the last; whole words
    int parts = 0;         ///< two or more
    idx_t tileQueries = 0; ///< whose results are kept at a time
    size_t listBytes = 0;  ///< results of all parts, of a tile
    size_t bytes = 0;      ///< scratch, the parts' among it
    /// Candidates of a query in all parts whose searches do not count them.
    idx_t places = 0;

    /// One line.
    std::string toString() const;
};

/// Whether a problem is more than a search of one part. Reads numVectors and
/// partVectors.
bool needsParts(const FlatKnnProblem& problem);

/// Host only. Throws Error for a bad shape: as planFlatKnn; and for vectors
/// that are not row-major, ids of 32 bits, too many parts, or 2^32 results of
/// them all for a query.
PartsPlan planParts(const FlatKnnProblem& problem, size_t maxBytes);

/// The search of some queries in part `part`. Its results are [count, k] by
/// themselves, and its ids count from the part's first vector.
FlatKnnProblem partOf(
        const FlatKnnProblem& problem,
        const PartsPlan& plan,
        int part,
        idx_t firstQuery,
        idx_t count);

/// Runs it. Arguments were checked; errors and stream as runFlatKnn.
void runParts(
        const PartsPlan& plan,
        const FlatKnnProblem& problem,
        Workspace workspace,
        cublasHandle_t handle,
        cudaStream_t stream);

} // namespace faiss_bits

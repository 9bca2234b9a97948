#pragma once

#include <optional>
#include <string>

#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/nearest/FewDimsTopKernels.h"

/// Certified searches for up to sixteen nearest vectors of few dimensions, or
/// 128 of two and three, and for the one nearest by cosine, among some thousand
/// to a hundred thousand. A scan in float32 keeps the least value of every
/// short strip of vectors; the k-th least of these says how far the k nearest
/// can be at most, and a warp a query meets again the strips that may have
/// them. So nothing is proved or repeated. docs/design/flat_few_dimensions.md
namespace faiss_bits {

struct FewDimsTopPlan {
    idx_t tileQueries = 0; // scanned for together
    uint32_t units = 0;    // of kFewDimsTopStrips strips
    uint32_t logStrip = 0; // vectors of a strip
    size_t bytes = 0;

    /// One line.
    std::string toString() const;
};

/// Whether it is expected to take less time than any other certified search but
/// for few pairs (directPays). Reads shape, types and layouts.
bool fewDimsTopPays(const FlatKnnProblem& problem);

/// Microseconds that it is expected to take.
double fewDimsTopMicroseconds(const FlatKnnProblem& problem);

/// The plan, if the problem is one for it, whether it pays or not, and its
/// scratch takes at most maxBytes.
std::optional<FewDimsTopPlan> planFewDimsTop(
        const FlatKnnProblem& problem,
        size_t maxBytes);

/// Runs it. Arguments were checked; errors and stream as runFlatKnn.
void runFewDimsTop(
        const FewDimsTopPlan& plan,
        const FlatKnnProblem& problem,
        Workspace workspace,
        cudaStream_t stream);

} // namespace faiss_bits

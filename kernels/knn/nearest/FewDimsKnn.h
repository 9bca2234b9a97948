#pragma once

#include <optional>
#include <string>

#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/nearest/FewDimsKernels.h"

/// Certified searches for the one nearest of many vectors of few dimensions.
/// One scan in float32 keeps the least value of every strip of vectors, as a
/// pair is hardly more than its comparison; strips that may have the nearest
/// are met again by canonical distances. So nothing is proved or repeated, and
/// vectors that are as near as each other by the thousand cost a second scan at
/// most. docs/design/flat_few_dimensions.md
namespace faiss_bits {

struct FewDimsPlan {
    idx_t tileQueries = 0; // scanned for together
    idx_t strips = 0;
    uint32_t logUnits = 0; // of kFewDimsUnit vectors each, in a strip
    int queriesOfThread = 0;
    size_t bytes = 0;

    /// One line.
    std::string toString() const;
};

/// Whether it is expected to take less time than any other certified search but
/// for few pairs (directPays). Reads shape, types and layouts.
bool fewDimsPays(const FlatKnnProblem& problem);

/// Microseconds that it is expected to take.
double fewDimsMicroseconds(const FlatKnnProblem& problem);

/// The plan, if the problem is one for it, whether it pays or not, and its
/// scratch takes at most maxBytes.
std::optional<FewDimsPlan> planFewDims(
        const FlatKnnProblem& problem,
        size_t maxBytes);

/// Runs it. Arguments were checked; errors and stream as runFlatKnn.
void runFewDims(
        const FewDimsPlan& plan,
        const FlatKnnProblem& problem,
        Workspace workspace,
        cudaStream_t stream);

/// Whether this is the second search of other certified searches: for the rows
/// that these do not prove.
bool searchesFewDimsAgain(const FlatKnnProblem& problem);

/// The scratch of launchFewDimsAgain() for up to so many queries, but for
/// `counts`: the strips are so long that their values take 64 MiB at most.
FewDimsParams takeFewDimsAgain(
        const FlatKnnProblem& problem,
        idx_t tileQueries,
        WorkspaceSlices& slices);

} // namespace faiss_bits

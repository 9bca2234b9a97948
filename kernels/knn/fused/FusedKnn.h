#pragma once

#include <algorithm>
#include <optional>

#include <cublas_v2.h>

#include "kernels/knn/DistanceMethod.h"
#include "kernels/knn/fused/FusedMethod.h"

/// Certified searches without a matrix of distances: a limit for every query
/// from a sample of the vectors, or from the least keys of parts of them, one
/// scan that appends what is below it, the canonical distances of that, and a
/// proof. docs/exact.md
namespace faiss_bits {

/// How such a search goes about a problem.
struct FusedPlan {
    const FusedMethod* method = nullptr;
    /// The limits are the problem's: there are neither strips nor a sample.
    bool givenLimits = false;
    /// A list of the problem is not read, as there is no room for its copy.
    bool leavesList = false;
    /// Of which the limits are made; none: of a sample.
    StripPlan strips;
    /// With strips: one kernel makes the images of the queries and the limits,
    /// and sets the bits of what passes (PassAtOnce.h).
    bool atOnce = false;
    /// Where the distances to the sample come from; nullptr: few queries.
    const DistanceMethod* sampling = nullptr;

    uint32_t samples = 0; // the first of a sample of samplesOf()
    uint32_t rank = 0;    // of them, or of strips: the limit
    uint32_t room = 0;
    idx_t secondSamples = 0; // 0: there is no second sample
    uint32_t secondRank = 0;
    /// Of the second sample, of which the limits are made; none: of what passes
    /// in it the limit of the first one, of which there is none otherwise.
    StripPlan secondStrips;
    uint32_t capacity = 0; // of a list
    idx_t tileQueries = 0; // scanned for together
    /// Of which distances to the sample are in memory; 0: there is no sample.
    idx_t sampleQueries = 0;
    size_t bytes = 0;

    std::string toString() const;
};

/// With less scratch, which is more than tiles of a matrix need for any shape
/// but millions of queries, a search goes by tiles.
constexpr size_t kLeastUntiledBytes = size_t(32) << 20;

/// Least rank m such that of the k nearest vectors a sample that takes each
/// with probability `share` has m or more in fewer than one query in a million:
/// up to the m-th of the sample there are k, then. From 1 to k.
uint32_t sampleRank(double k, double share);

/// Whether a sample of so many vectors leads to the k nearest.
bool enoughVectors(const FlatKnnProblem& problem, idx_t vectors);

/// Vectors of the sample.
uint32_t samplesOf(const FlatKnnProblem& problem);

/// Queries of the caller's whole batch.
inline idx_t batchOf(const FlatKnnProblem& problem) {
    return std::max(problem.batchQueries, problem.numQueries);
}

/// Whether searches of such vectors may use a SearchImage.
bool canUseSearchImage(const FlatKnnProblem& problem);

/// Whether fused searches with one are faster than without: not in one to three
/// dimensions, of up to 16 queries to eight; and for few queries it halves what
/// is read, but has 32 bytes a vector beside the components.
bool searchImageHelps(const FlatKnnProblem& problem);

/// Whether a scan on tensor cores copies the allowed vectors together and reads
/// nothing else: there is a list, of a part of the vectors that makes it worth
/// the copy for so many queries, and enough of them for a sample.
bool scansList(const FlatKnnProblem& problem);

/// The problem as the plan's search sees it.
FlatKnnProblem seenBy(const FusedPlan& plan, const FlatKnnProblem& problem);

/// Vectors that a scan on tensor cores reads.
inline idx_t scannedVectors(const FlatKnnProblem& problem) {
    return scansList(problem) ? problem.numAllowed : problem.numVectors;
}

/// The plan, if a fused method takes the problem and maxBytes are enough.
std::optional<FusedPlan> planFused(
        const FlatKnnProblem& problem,
        size_t maxBytes);

/// The plan with limits from strips, on tensor cores: a scan more in place of
/// the sample, and limits that little more than k vectors pass. If the problem
/// is one for that, whether it pays or not, and maxBytes are enough.
std::optional<FusedPlan> planFusedByStrips(
        const FlatKnnProblem& problem,
        size_t maxBytes);

/// Such a plan whose images, limits and bits are of one kernel, if there is one
/// for the problem, whether it pays or not; that one is chosen where it does.
std::optional<FusedPlan> planAtOnce(
        const FlatKnnProblem& problem,
        size_t maxBytes);

/// Whether that is expected to take less time than any other way.
bool stripsPay(const FusedPlan& byStrips, const FlatKnnProblem& problem);

/// Runs it. Arguments were checked; errors and stream as runFlatKnn.
void runFused(
        const FusedPlan& plan,
        const FlatKnnProblem& problem,
        Workspace workspace,
        cublasHandle_t handle,
        cudaStream_t stream);

} // namespace faiss_bits

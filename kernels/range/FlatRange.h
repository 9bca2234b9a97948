#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "kernels/common/Workspace.h"
#include "kernels/knn/FlatKnn.h"

/// All vectors of a matrix that are near enough, exactly.
namespace faiss_bits {

/// How runFlatRange goes about a problem: made once from its shape, it says
/// what scratch to bring and then goes to the run.
/// kernels/range/FlatRangePlan.h has what is in it.
struct FlatRangePlan;

/// Some of the results of a search: those of the queries first to
/// first + counts.size() - 1. They come in the order of the queries, and of a
/// query in ascending ids. A part may end within a query, whose others follow
/// in the next parts: its counts add up.
struct FlatRangePart {
    idx_t first = 0;           ///< of these queries
    std::vector<idx_t> counts; ///< of each query
    idx_t total = 0;           ///< of them together
};

/// Device memory for the results of a part.
struct FlatRangeRoom {
    float* distances = nullptr; ///< [total]; nullptr: results are not wanted
    idx_t* ids = nullptr;       ///< [total]
};

/// Takes the results of a search, part by part.
class FlatRangeSink {
   public:
    virtual ~FlatRangeSink() = default;

    /// Where the results of a part go. Called for every part that has some.
    virtual FlatRangeRoom room(const FlatRangePart& part) = 0;

    /// They are enqueued to there: what reads them goes on the search's stream,
    /// or waits for it. Called for every part, also for empty ones, so that
    /// each query is in one part or more.
    virtual void take(const FlatRangePart& part, const FlatRangeRoom& room) = 0;

    /// An exception goes through the search, from itself or from the sink: the
    /// last room is not used.
    virtual void abandon() noexcept {}
};

/// The plan of a range search. Of the problem k, mode, outputs and allowedIds
/// are not read. The plan whose scratch takes at most maxBytes, or that with
/// the least that works. Host only, no CUDA call. Throws what runFlatKnn throws
/// for a bad shape.
FlatRangePlan planFlatRange(const FlatKnnProblem& problem, size_t maxBytes);

/// Finds the vectors whose distance is below the radius (similarities: above
/// it) for every query, and hands them to `sink`.
///
/// Result   canonical distances (kernels/canonical/Distance.h), compared
///          strictly; NaN is in no range; -0 equals +0. Ascending ids. The same
///          bits whatever the scratch, the batch and the device, which decide
///          the parts alone
/// Radius   any number; L2 has no result for one that is not above zero
/// Stream   waits for the device, twice or more for every tile of queries
/// Memory   plan.bytes. A bit for every pair of a tile's queries and the
///          vectors, 8 bytes for each of some candidates, and what runFlatKnn
///          says of a search without a matrix (the image of the vectors, where
///          none is given)
/// Errors   throws Error on a bad argument (named), for a radius that is NaN, a
///          failed launch, and what `sink` throws
/// Cost     the scan of a k-NN search of the same batch (kernels/knn/fused),
///          with limits from the radius; for each vector within the proven
///          bound of it a read of 4 d bytes; or, of tiles where that is many
///          percent of all pairs, canonical distances of all of them
/// Source   Barrientos et al. 2012, IV-A (brute force; without its output)
void runFlatRange(
        const FlatRangePlan& plan,
        const FlatKnnProblem& problem,
        float radius,
        Workspace workspace,
        cudaStream_t stream,
        FlatRangeSink& sink);

} // namespace faiss_bits

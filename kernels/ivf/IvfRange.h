#pragma once

#include <optional>

#include "kernels/ivf/IvfKnn.h"
#include "kernels/range/RangeSink.h"

/// All vectors of a query's lists that are near enough.
namespace faiss_bits {

/// With bounds first: how many queries at a time, and the room for what bounds
/// leave of each.
struct IvfFoundPlan {
    IvfKnnPlan search;  ///< rowsAtATime, room, nearProbes: all
    double seconds = 0; ///< that are expected, roughly
    size_t bytes = 0;   ///< of scratch
};

/// How a range search goes: made once from its shape.
struct IvfRangePlan {
    IvfKnnPlan search; ///< of all distances
    /// Many queries: with bounds first, and all distances only of queries of
    /// which much is in range.
    std::optional<IvfFoundPlan> found;
    size_t bytes = 0; ///< of scratch
};

/// What a search does first: what is expected to take the least time, or as a
/// test wants it.
enum class IvfRangeWay : uint8_t {
    Best,
    Distances, ///< all of them
    Bounds     ///< where there may be any
};

/// The plan whose scratch takes at most maxBytes, or that with the least. Of
/// the problem k, mayWait and results are not read. Host only, no CUDA call.
/// Throws what runIvfKnn throws for a bad shape.
IvfRangePlan planIvfRange(
        const IvfKnnProblem& problem,
        size_t maxBytes,
        IvfRangeWay way = IvfRangeWay::Best);

/// Hands what is nearer than the radius (inner product: what is greater) to
/// `sink`, whole queries at a time, of each in the order of its lists and of
/// their vectors.
///
/// Result   canonical distances, none that is NaN; the same bits whatever the
///          scratch, the batch and the device
/// Stream   waits for the device, for every part
/// Memory   plan.bytes: 4 bytes and more for each vector of the lists of some
///          queries; a part has no more results than these vectors. With bounds
///          28 bytes for each sixteenth of these vectors, 8 for 32, and 12 for
///          each as far as there is room
/// Errors   as runIvfKnn, for a radius that is NaN, and what `sink` throws
/// Cost     all distances of all lists, as runIvfKnn without estimates. Where
///          many queries meet in a list and at most a twelfth of the pairs
///          may be in range: 2 d operations of float16 matrix instructions a
///          pair, and the distances of what bounds leave
void runIvfRange(
        const IvfRangePlan& plan,
        const IvfKnnProblem& problem,
        float radius,
        Workspace workspace,
        cudaStream_t stream,
        RangeSink& sink);

} // namespace faiss_bits

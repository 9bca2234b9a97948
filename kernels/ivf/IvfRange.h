#pragma once

#include <functional>
#include <vector>

#include "kernels/ivf/IvfKnn.h"

/// All vectors of a query's lists that are near enough.
namespace faiss_bits {

/// Found by the queries first to first + counts.size() - 1.
struct IvfRangePart {
    idx_t first = 0;           ///< of these queries
    std::vector<idx_t> counts; ///< of each query
    idx_t total = 0;           ///< of them together
    /// Query by query, in the order of its lists and of their vectors: [total],
    /// on the device, until the callback returns.
    const float* distances = nullptr;
    const idx_t* ids = nullptr; ///< likewise
};

/// How a range search goes: made once from its shape.
struct IvfRangePlan {
    IvfKnnPlan search; ///< of the distances
    size_t bytes = 0;  ///< of scratch
};

/// The plan whose scratch takes at most maxBytes, or that with the least. Of
/// the problem k, mayWait and results are not read. Host only, no CUDA call.
/// Throws what runIvfKnn throws for a bad shape.
IvfRangePlan planIvfRange(const IvfKnnProblem& problem, size_t maxBytes);

/// Hands what is nearer than the radius (inner product: what is greater) to
/// `take`, for some queries at a time, in their order.
///
/// Result   canonical distances, none that is NaN; the same bits whatever the
///          scratch, the batch and the device
/// Stream   waits for the device, for every part
/// Memory   plan.bytes: 16 bytes for each vector of the lists of some queries
/// Errors   as runIvfKnn, and what `take` throws
/// Cost     all distances of all lists, as runIvfKnn without estimates
void runIvfRange(
        const IvfRangePlan& plan,
        const IvfKnnProblem& problem,
        float radius,
        Workspace workspace,
        cudaStream_t stream,
        const std::function<void(const IvfRangePart&)>& take);

} // namespace faiss_bits

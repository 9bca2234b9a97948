#include "faiss_bits/dropin/Search.h"

#include <cuda_runtime.h>

#include "faiss_bits/dropin/CublasLt.h"
#include "faiss_bits/dropin/Device.h"
#include "faiss_bits/dropin/Finish.h"
#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/FlatKnnPlan.h"

namespace faiss_bits::dropin {

namespace {

/// FAISS's own limit; above it, it says so itself.
constexpr int kFaissMaxK = 2048;
/// Up to here the vectors are read once, as they are.
constexpr idx_t kFewQueries = 16;
/// From here on a search saves more than it takes to make the copy of the
/// vectors. An estimate: the copy is 10 bytes a component of memory traffic,
/// and FAISS's product two operations a component and query at about 4e13 a
/// second.
constexpr idx_t kLeastQueriesWithCopy = 128;
/// Beyond so many dimensions the scan of few queries wants rows.
constexpr int kMostColumnDims = 16;

/// Components of all pairs from which on no device computes all distances.
constexpr double kTooManyPairs = 0x1p28;

/// So many queries that the vectors would be read several times, and so few
/// that a copy of them is not worth its making; empty if they are not.
std::string leftByQueries(const SearchRequest& r) {
    return r.queries.count > kFewQueries &&
                    r.queries.count < kLeastQueriesWithCopy
            ? "searches of " + std::to_string(kFewQueries + 1) + " to " +
                    std::to_string(kLeastQueriesWithCopy - 1) + " queries"
            : "";
}

/// What of the shape is better left to FAISS, whatever the plan.
std::string leftByShape(const SearchRequest& r) {
    if (!r.vectors.isDense || !r.queries.isDense || !r.outputsAreDense) {
        return "searches of tensors with gaps between their rows";
    }
    if (!r.vectors.rowMajor && r.vectors.d > kMostColumnDims) {
        return "searches of column-major vectors of more than " +
                std::to_string(kMostColumnDims) + " dimensions";
    }
    const double pairs = double(r.queries.count) * double(r.vectors.count);
    return pairs * double(r.vectors.d) >= kTooManyPairs ? leftByQueries(r) : "";
}

FlatKnnProblem makeProblem(const SearchRequest& r, const Device& device) {
    FlatKnnProblem p;
    p.metric = r.metric;
    p.numVectors = r.vectors.count;
    p.numQueries = r.queries.count;
    p.d = int(r.vectors.d);
    p.k = r.k;
    p.vectors = r.vectors.data;
    p.vectorsRowMajor = r.vectors.rowMajor;
    p.queries = r.queries.data;
    p.queriesRowMajor = r.queries.rowMajor;
    p.outDistances = r.outDistances;
    p.outIds = r.outIds;
    p.idType = r.idType;
    p.device = device.traits;
    return p;
}

Request resultsOf(const SearchRequest& r) {
    Request results;
    results.rows = r.queries.count;
    results.cols = r.vectors.count;
    results.k = r.k;
    results.largest = isSimilarity(r.metric);
    results.idType = r.idType;
    results.outKeys = r.outDistances;
    results.outIds = r.outIds;
    return results;
}

} // namespace

std::string refusalOf(const SearchRequest& r) {
    if (!r.mismatch.empty()) {
        return r.mismatch;
    }
    if (r.k < 1 || r.k > kFaissMaxK) {
        return "k = " + std::to_string(r.k) + " is outside 1.." +
                std::to_string(kFaissMaxK);
    }
    return "";
}

std::string search(
        const SearchRequest& r,
        const Original& original,
        cudaStream_t stream) {
    const std::string few = "searches of few vectors";
    if (r.queries.count == 0 || r.vectors.count == 0 || r.vectors.d == 0 ||
        r.vectors.count > INT32_MAX) {
        return r.vectors.count > INT32_MAX ? "searches of 2^31 vectors and more"
                                           : few;
    }
    const std::string left = leftByShape(r);
    if (!left.empty()) {
        return left;
    }
    const Device& device = currentDevice();
    const FlatKnnProblem problem = makeProblem(r, device);
    const FlatKnnPlan plan = planFlatKnn(problem, SIZE_MAX);
    if (plan.method) {
        return few;
    }
    const std::string leftOfPlan =
            plan.direct || plan.allPairs ? "" : leftByQueries(r);
    if (!leftOfPlan.empty()) {
        return leftOfPlan;
    }
    cublasHandle_t handle =
            plan.fused && plan.fused->sampling ? cublasLtOf(original) : nullptr;
    const Scratch scratch(device.pool, plan.bytes, stream);
    runFlatKnn(plan, problem, {scratch.data(), plan.bytes}, handle, stream);
    dropWorst(resultsOf(r), stream);
    return "";
}

} // namespace faiss_bits::dropin

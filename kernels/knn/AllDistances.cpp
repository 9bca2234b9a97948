/// Whole matrices of distances.

#include "kernels/common/Error.h"
#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/Norms.h"
#include "kernels/knn/RowFacts.h"
#include "kernels/knn/gemm/Product.h"

namespace faiss_bits {

namespace {

/// Norms that all distances need and the caller did not give.
struct AllDistancesScratch {
    float* vectorNorms = nullptr;
    float* queryNorms = nullptr;
    float* vectorFacts = nullptr; // as FlatKnnScratch
    float* queryFacts = nullptr;
    void* product = nullptr;

    AllDistancesScratch(const FlatKnnProblem& p, WorkspaceSlices& slices) {
        if (p.metric == Metric::L2) {
            queryNorms = slices.take<float>(p.numQueries);
            if (!p.vectorNorms) {
                vectorNorms = slices.take<float>(p.numVectors);
            }
        }
        if (const size_t bytes = Product::workspaceBytes(p.dataType)) {
            product = slices.take<uint8_t>(bytes);
        }
        if (rowFactsOf(p.metric) != RowFacts::None) {
            vectorFacts = slices.take<float>(p.numVectors);
            queryFacts = slices.take<float>(p.numQueries);
        }
    }
};

void addNorms(
        const FlatKnnProblem& p,
        const AllDistancesScratch& scratch,
        cudaStream_t stream) {
    runSquaredNorms(
            p.queries,
            p.dataType,
            p.queriesRowMajor,
            p.numQueries,
            p.d,
            scratch.queryNorms,
            stream);
    if (!p.vectorNorms) {
        runSquaredNorms(
                p.vectors,
                p.dataType,
                p.vectorsRowMajor,
                p.numVectors,
                p.d,
                scratch.vectorNorms,
                stream);
    }
    runAddNorms(
            p.outDistances,
            p.numQueries,
            p.numVectors,
            p.vectorNorms ? p.vectorNorms : scratch.vectorNorms,
            scratch.queryNorms,
            stream);
}

} // namespace

size_t allDistancesWorkspaceBytes(const FlatKnnProblem& problem) {
    WorkspaceSlices slices;
    AllDistancesScratch(problem, slices);
    return slices.used();
}

void runAllDistances(
        const FlatKnnProblem& problem,
        Workspace workspace,
        cublasHandle_t handle,
        cudaStream_t stream) {
    FlatKnnProblem p = problem;
    p.k = 1;                 // not read, but checked
    p.allowedBits = nullptr; // nor these
    p.allowedIds = nullptr;
    checkFlatKnnShape(p);
    if (p.numQueries == 0 || p.numVectors == 0) {
        return;
    }
    BITS_THROW_IF_NOT_FMT(p.queries, "queries = nullptr");
    BITS_THROW_IF_NOT_FMT(p.vectors, "vectors = nullptr");
    BITS_THROW_IF_NOT_FMT(p.outDistances, "outDistances = nullptr");
    WorkspaceSlices slices(workspace);
    const AllDistancesScratch scratch(p, slices);
    BITS_THROW_IF_NOT_FMT(handle, "handle = nullptr");
    runFactsOfRows(p, scratch.vectorFacts, scratch.queryFacts, stream);
    const bool isProduct =
            p.metric == Metric::L2 || p.metric == Metric::InnerProduct;
    const DistanceMethod& method =
            isProduct ? kGemmMethod : distanceMethodFor(p);
    method.prepare(
                  p,
                  {{scratch.vectorFacts, scratch.queryFacts}, scratch.product},
                  p.outDistances,
                  p.numVectors,
                  handle)
            ->run({0, p.numQueries, 0, p.numVectors}, stream);
    if (p.metric == Metric::L2) {
        addNorms(p, scratch, stream);
    }
}

} // namespace faiss_bits

#include "kernels/knn/DistanceMethod.h"

#include "kernels/knn/RowFacts.h"

namespace faiss_bits {

namespace {

const DistanceMethod* const kMethods[] = {
#ifndef FAISS_BITS_PRODUCTS_ONLY
        &kPairwiseMethod,
        &kCosineMethod,
        &kFewQueriesMethod,
#endif
        &kGemmMethod};

} // namespace

const DistanceMethod& distanceMethodFor(const FlatKnnProblem& problem) {
    for (const DistanceMethod* one : kMethods) {
        if (one->takes(problem)) {
            return *one;
        }
    }
    return kGemmMethod;
}

void runFactsOfRows(
        const FlatKnnProblem& p,
        float* vectorFacts,
        float* queryFacts,
        cudaStream_t stream) {
    const RowFacts kind = rowFactsOf(p.metric);
    if (kind == RowFacts::None) {
        return;
    }
    if (vectorFacts) {
        runRowFacts(
                kind,
                p.vectors,
                p.dataType,
                p.vectorsRowMajor,
                p.numVectors,
                p.d,
                vectorFacts,
                stream);
    }
    runRowFacts(
            kind,
            p.exactQueries ? p.exactQueries : p.queries,
            p.exactQueries ? DataType::Float32 : p.dataType,
            p.exactQueries || p.queriesRowMajor,
            p.numQueries,
            p.d,
            queryFacts,
            stream);
}

} // namespace faiss_bits

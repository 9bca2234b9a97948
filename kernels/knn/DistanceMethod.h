#pragma once

#include <memory>

#include <cublas_v2.h>

#include "kernels/knn/FlatKnn.h"

namespace faiss_bits {

/// Some queries against some vectors.
struct DistanceTile {
    idx_t firstQuery = 0;
    idx_t numQueries = 0;
    idx_t firstVector = 0; // a multiple of 8
    idx_t numVectors = 0;  // likewise, or up to the last vector
};

/// What the method's metric wants to know of the rows (rowFactsOf), on the
/// device; nullptr where that is nothing.
struct RowFactsOf {
    const float* vectors = nullptr; // [numVectors]
    const float* queries = nullptr; // [numQueries]
};

/// One search's distances by one method.
class TileDistances {
   public:
    virtual ~TileDistances() = default;

    /// Enqueues: the tile's values go to the matrix that the method was given.
    virtual void run(const DistanceTile& tile, cudaStream_t stream) const = 0;
};

/// A way to compute the distances of a flat search, tile by tile. Methods
/// differ in arithmetic, so the choice depends on the caller's whole batch and
/// never on how it is cut.
struct DistanceMethod {
    const char* name;

    /// True if it is the one for this problem. Reads shape, types and layouts.
    bool (*takes)(const FlatKnnProblem& problem);

    /// L2: the values are -2 <q, x>, and the selection adds the norms.
    bool addsNorms;

    /// Gets ready to write to values [any, stride], on the device. Throws
    /// Error before anything is enqueued.
    std::unique_ptr<TileDistances> (*prepare)(
            const FlatKnnProblem& problem,
            const RowFactsOf& facts,
            float* values,
            idx_t stride,
            cublasHandle_t handle);
};

extern const DistanceMethod kPairwiseMethod;
extern const DistanceMethod kCosineMethod;
// Products, for the metrics that the two above do not take.
extern const DistanceMethod kFewQueriesMethod;
extern const DistanceMethod kGemmMethod;

/// Fills the facts that the problem's metric wants of its rows, if any:
/// vectorFacts [numVectors], queryFacts [numQueries].
void runFactsOfRows(
        const FlatKnnProblem& problem,
        float* vectorFacts,
        float* queryFacts,
        cudaStream_t stream);

/// The first method that takes the problem; kGemmMethod takes every one.
const DistanceMethod& distanceMethodFor(const FlatKnnProblem& problem);

} // namespace faiss_bits

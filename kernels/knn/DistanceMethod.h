#pragma once

#include <memory>

#include <cublas_v2.h>

#include "kernels/knn/ErrorBound.h"
#include "kernels/knn/FlatKnn.h"

namespace faiss_bits {

/// Some queries against some vectors.
struct DistanceTile {
    idx_t firstQuery = 0;
    idx_t numQueries = 0;
    idx_t firstVector = 0; // a multiple of 8
    idx_t numVectors = 0;  // likewise, or up to the last vector

    /// Of a search by a list of vectors (FlatKnnPlan::byList): firstVector and
    /// numVectors count places of the list, ids are those of the tile, and a
    /// method that adds norms gets the vectors themselves as well.
    const int32_t* ids = nullptr;   // [numVectors]
    const void* gathered = nullptr; // [at least numVectors, d], row-major
};

/// What the method's metric wants to know of the rows (rowFactsOf), on the
/// device; nullptr where that is nothing.
struct RowFactsOf {
    const float* vectors = nullptr; // [numVectors]
    const float* queries = nullptr; // [numQueries]
};

/// Scratch of a method.
struct MethodScratch {
    RowFactsOf facts;
    void* product = nullptr; // Product::workspaceBytes
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

    /// L2: the values are -2 <q, x>, and the selection adds the norms. With a
    /// filter the values of InnerProduct are -<q, x>, and for both metrics the
    /// selection adds what makes vectors that are not allowed NaN.
    bool addsNorms;

    /// How far its distances may be from the canonical ones.
    ErrorBound (*bound)(const FlatKnnProblem& problem);

    /// Gets ready to write to values [any, stride], on the device. Throws
    /// Error before anything is enqueued.
    std::unique_ptr<TileDistances> (*prepare)(
            const FlatKnnProblem& problem,
            const MethodScratch& scratch,
            float* values,
            idx_t stride,
            cublasHandle_t handle);

    /// It leaves out what a filter does: reads the problem's allowedBits, or
    /// DistanceTile::ids where there are some, and writes NaN for the rest.
    /// Methods that do not, and do not add norms, compute all distances, and
    /// NaN is written over those of vectors that are not allowed.
    bool readsFilter = false;
};

extern const DistanceMethod kPairwiseMethod;
extern const DistanceMethod kCosineMethod;
// Products, for the metrics that the two above do not take.
extern const DistanceMethod kFewQueriesMethod;
extern const DistanceMethod kGemmMethod;

/// Fills the facts that the problem's metric wants of its rows, if any:
/// vectorFacts [numVectors], or nullptr if they are known, and queryFacts
/// [numQueries].
void runFactsOfRows(
        const FlatKnnProblem& problem,
        float* vectorFacts,
        float* queryFacts,
        cudaStream_t stream);

/// The first method that takes the problem; kGemmMethod takes every one.
const DistanceMethod& distanceMethodFor(const FlatKnnProblem& problem);

} // namespace faiss_bits

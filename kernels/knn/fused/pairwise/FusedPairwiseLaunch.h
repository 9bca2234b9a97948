#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/fused/pairwise/FusedPairwiseParams.h"

namespace faiss_bits {

/// Names of the compiled instances (kernels/CMakeLists.txt lists them); their
/// arithmetic is in PairwiseTerms.cuh and PassTest.cuh.
struct L1Term;
struct LinfTerm;
template <int Halves>
struct PowerTerm;
struct AnyPowerTerm;
struct CanberraTerm;
struct BrayCurtisTerm;
struct JensenShannonTerm;
struct JaccardTerm;
struct ProductTerm;
struct CosineTerm;

/// Most components of the kernels that have all of them in registers.
constexpr int kMostSmallDims = 16;

/// Who has what of a small-d scan.
enum class SmallDimsShape {
    VectorsInLanes, ///< up to 16 queries
    SomeQueries,    ///< 64 queries a block
    ManyQueries     ///< up to 256
};

// Each enqueues one launch; params.pairs.queryTiles is its own to set.

/// d <= kMostSmallDims.
template <class Term>
void launchSmallDims(
        const FusedPairwiseParams& params,
        SmallDimsShape shape,
        cudaStream_t stream);

/// Tiles of 128 queries, or of 16.
template <class Term>
void launchTileScan(
        const FusedPairwiseParams& params,
        bool manyQueries,
        cudaStream_t stream);

/// Row-major vectors, up to 16 queries whose components fit into shared memory
/// (fewQueriesScanBytes).
template <class Term>
void launchFewQueriesScan(
        const FusedPairwiseParams& params,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/pairwise/PairwiseParams.h"

namespace faiss_bits {

/// Names of the compiled instances (kernels/CMakeLists.txt lists them); their
/// arithmetic is in PairwiseTerms.cuh.
struct L1Term;
struct LinfTerm;
template <int Halves>
struct PowerTerm;
struct AnyPowerTerm;
struct CanberraTerm;
struct BrayCurtisTerm;
struct JensenShannonTerm;
struct JaccardTerm;

/// Enqueues one launch; params.queryTiles is its own to set.
template <class Term>
void launchPairwise(
        const PairwiseParams& params,
        PairwiseShape shape,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include "kernels/knn/DistanceMethod.h"
#include "kernels/knn/pairwise/PairwiseParams.h"

namespace faiss_bits {

/// All `count` rows of a matrix.
PairwiseRows pairwiseRows(
        const void* data,
        DataType type,
        bool rowMajor,
        idx_t count,
        int d,
        const float* facts);

/// The vectors, the queries and the place of one tile, for kernels that take
/// them component by component.
PairwiseParams pairwiseParams(
        const FlatKnnProblem& problem,
        const RowFactsOf& facts,
        const DistanceTile& tile,
        float* values,
        idx_t stride);

} // namespace faiss_bits

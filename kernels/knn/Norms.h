#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"

namespace faiss_bits {

/// Squared L2 norm of every vector, in fp32: norms[i] = |vectors[i]|^2.
/// vectors is [n, d] of dataType, or [d, n] if not rowMajor. A vector's norm
/// does not depend on the others. Enqueues.
void runSquaredNorms(
        const void* vectors,
        DataType dataType,
        bool rowMajor,
        idx_t n,
        int d,
        float* norms,
        cudaStream_t stream);

/// distances[q][v] = max(0, (distances[q][v] + vectorNorms[v]) + queryNorms[q])
/// for a [numQueries, numVectors] matrix; NaN stays NaN. Enqueues.
void runAddNorms(
        float* distances,
        idx_t numQueries,
        idx_t numVectors,
        const float* vectorNorms,
        const float* queryNorms,
        cudaStream_t stream);

/// places[r][i] becomes ids[r][places[r][i]], for i < count in every row: a
/// selection without given ids, over candidates that have some, is turned into
/// theirs in place. ids and places are of idType, with rows idStride and
/// placeStride apart. A place is one of its row of ids, or -1 and stays so.
/// Enqueues.
void runPlacesToIds(
        const void* ids,
        idx_t idStride,
        void* places,
        idx_t placeStride,
        IdType idType,
        idx_t rows,
        idx_t count,
        cudaStream_t stream);

} // namespace faiss_bits

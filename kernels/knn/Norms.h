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

} // namespace faiss_bits

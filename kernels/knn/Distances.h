#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"

namespace faiss_bits {

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

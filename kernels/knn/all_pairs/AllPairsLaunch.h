#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/certified/CertifiedParams.h"

namespace faiss_bits {

/// Of a launch: queries, vectors, and where their distances go.
struct AllPairsParams {
    CertifiedParams search;
    float* distances = nullptr; // [rows, stride]
    int64_t stride = 0;
};

/// Enqueues one kernel. kernels/CMakeLists.txt lists the instances.
template <Metric kMetric>
void launchAllPairs(
        const AllPairsParams& params,
        int multiprocessors,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/certified/CertifiedParams.h"
#include "kernels/knn/fused/tensor/NearestStrips.h"
#include "kernels/knn/fused/tensor/SpreadRows.h"

namespace faiss_bits {

struct NearestParams {
    CertifiedParams search; // k = 1, with what images lost
    NearestStrips nearest;
    SpreadRows rows;   // of the image
    uint32_t tile = 0; // nearestTileOf()
};

/// From strips to results: canonical distances of the vectors that may be the
/// nearest, the least of them, and the proof, or the flag of a row that has to
/// be searched again. L2, InnerProduct or Cosine.
void launchNearestOfStrips(
        Metric metric,
        const NearestParams& params,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/PassedWords.h"

namespace faiss_bits {

/// Enqueues the limits of a scan from the least keys of strips: L2, inner
/// product and cosine, of images. Sets the bits to zero, if there are some, for
/// the scan that follows. A query
/// within whose limit `overfull` strips or more have a vector has no list and
/// no proof; 0: each has a list.
void launchStripLimits(
        Metric metric,
        const StripLimitParams& params,
        const PassedWords& words,
        uint32_t overfull,
        cudaStream_t stream);

} // namespace faiss_bits

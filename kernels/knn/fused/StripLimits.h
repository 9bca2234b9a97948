#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/fused/FusedParams.h"

namespace faiss_bits {

/// Enqueues the limits of a scan from the least keys of strips: L2, inner
/// product and cosine, of images.
void launchStripLimits(
        Metric metric,
        const StripLimitParams& params,
        cudaStream_t stream);

} // namespace faiss_bits

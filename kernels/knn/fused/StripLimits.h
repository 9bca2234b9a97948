#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/PassedWords.h"

namespace faiss_bits {

/// Enqueues the limits of a scan from the least keys of strips: L2, inner
/// product and cosine, of images. Sets the bits to zero, if there are some, for
/// the scan that follows.
void launchStripLimits(
        Metric metric,
        const StripLimitParams& params,
        const PassedWords& words,
        cudaStream_t stream);

} // namespace faiss_bits

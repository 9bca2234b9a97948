/// The bound of a query whose scan is in 8 bits.
#pragma once

#include "kernels/knn/certified/RowBound.cuh"
#include "kernels/knn/fused/ByteSearch.h"

namespace faiss_bits {

/// imageBound() but for what images of 8 bits lost. Norms are added in float32,
/// so that no norm step is off (TensorScanBound.h), or are integers.
template <Metric kMetric>
__device__ __forceinline__ RowBound<kMetric> byteBound(
        const CertifiedParams& params,
        const ByteSearch& bytes,
        uint32_t row) {
    RowBound<kMetric> bound = imageBound<kMetric>(params, row);
    bound.residual = double(bytes.residuals[row]);
    bound.imageResidual = double(bytes.facts->residual);
    bound.imageNormError = double(bytes.facts->normError);
    // What 8 bits lose of a query counts by the vectors' length, which is often
    // half of what their distance allows.
    bound.longest = double(bytes.facts->greatestLength);
    return bound;
}

} // namespace faiss_bits

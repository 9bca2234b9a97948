/// Vectors of few dimensions in shared memory.
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/knn/certified/CertifiedParams.h"
#include "kernels/knn/nearest/FewDimsKernels.h"

namespace faiss_bits {

__device__ __forceinline__ float componentOf(
        const VectorsParams& vectors,
        int64_t vector,
        int c) {
    const int64_t at = vector * vectors.rowStride + c * vectors.columnStride;
    switch (vectors.type) {
        case DataType::Float32:
            return static_cast<const float*>(vectors.data)[at];
        case DataType::Float16:
            return toFloat(static_cast<const __half*>(vectors.data)[at]);
        default:
            return toFloat(static_cast<const __nv_bfloat16*>(vectors.data)[at]);
    }
}

/// The row of a slot; kAgain: of a second search.
template <bool kAgain>
__device__ __forceinline__ uint32_t
rowOfSlot(const FewDimsParams& params, uint32_t slot) {
    return kAgain ? params.flagged[slot] : slot;
}

/// Components of a vector; zeros beyond d.
template <int kDims>
__device__ __forceinline__ void loadVector(
        const CertifiedParams& search,
        int64_t vector,
        float (&x)[kDims]) {
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        x[c] = c < search.d ? componentOf(search.vectors, vector, c) : 0.0f;
    }
}

/// Those of a query, of similarities with their signs turned.
template <Metric kMetric, int kDims>
__device__ __forceinline__ void loadQuery(
        const CertifiedParams& search,
        uint32_t row,
        float (&q)[kDims]) {
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        const float value =
                c < search.d ? search.queries[int64_t(row) * search.d + c] : 0;
        q[c] = kMetric == Metric::InnerProduct ? -value : value;
    }
}

} // namespace faiss_bits

/// Vectors of few dimensions in shared memory.
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/knn/certified/CanonicalPair.cuh"
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

/// Sixteen bytes at a time, and the last eight.
template <int kCount>
__device__ __forceinline__ void readFloats(
        const float* from,
        float (&to)[kCount]) {
#pragma unroll
    for (int c = 0; c < kCount; c += 4) {
        if (c + 4 <= kCount) {
            const float4 four = *reinterpret_cast<const float4*>(from + c);
            to[c] = four.x;
            to[c + 1] = four.y;
            to[c + 2] = four.z;
            to[c + 3] = four.w;
        } else {
            const float2 two = *reinterpret_cast<const float2*>(from + c);
            to[c] = two.x;
            to[c + 1] = two.y;
        }
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
    const VectorsParams& vectors = search.vectors;
    withVectors(vectors, [&](const auto* data) {
        const auto* from = data + vector * vectors.rowStride;
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            x[c] = c < search.d ? toFloat(from[c * vectors.columnStride])
                                : 0.0f;
        }
    });
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
        q[c] = kMetric == Metric::L2 ? value : -value;
    }
}

} // namespace faiss_bits

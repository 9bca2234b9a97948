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

/// A vector in shared memory, in floats: sixteen bytes are read at a time.
template <int kDims>
constexpr int kFewDimsStride = kDims > 4 ? (kDims + 3) / 4 * 4 : kDims;

/// A block's: `first` becomes the center by L2, and no norm is known.
/// Shared  has center [kDims] and greatest, the bits of the greatest norm.
template <bool kIsL2, int kDims, class Shared>
__device__ __forceinline__ void setCenter(
        const CertifiedParams& search,
        int64_t first,
        Shared& shared) {
    if (threadIdx.x < kDims) {
        const int c = threadIdx.x;
        const float x = kIsL2 && c < search.d
                ? componentOf(search.vectors, first, c)
                : 0.0f;
        // One that is no number would hide all vectors.
        shared.center[c] = isfinite(x) ? x : 0.0f;
    }
    if (threadIdx.x == 0) {
        shared.greatest = 0;
    }
}

/// `count` vectors from `begin` on, less the center, by L2 times -2, and their
/// norms; from `end` on NaN, which no minimum notices.
/// Shared  has vectors [count, kFewDimsStride] and norms [count], too
template <bool kIsL2, int kDims, uint32_t kThreads, class Shared>
__device__ __forceinline__ void stageVectors(
        const CertifiedParams& search,
        int64_t begin,
        uint32_t count,
        int64_t end,
        Shared& shared) {
    float greatest = 0;
    for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
        float y[kDims];
        if (begin + i < end) {
            loadVector(search, begin + i, y);
        } else {
#pragma unroll
            for (int c = 0; c < kDims; ++c) {
                y[c] = NAN;
            }
        }
        float norm = 0;
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            if constexpr (kIsL2) {
                y[c] -= shared.center[c];
            }
            norm = fmaf(y[c], y[c], norm);
            shared.vectors[i * kFewDimsStride<kDims> + c] =
                    kIsL2 ? -2 * y[c] : y[c];
        }
        shared.norms[i] = norm;
        greatest = fmaxf(greatest, norm);
    }
    // Numbers from zero on are ordered as their bits.
    const uint32_t ofWarp =
            __reduce_max_sync(kFullWarp, __float_as_uint(greatest));
    if (threadIdx.x % kWarpSize == 0) {
        atomicMax(&shared.greatest, ofWarp);
    }
}

/// The queries' least values among the staged vectors from `begin` on, a
/// multiple of four of them; by L2 without the queries' own norms.
template <bool kIsL2, int kDims, int kQueries, class Shared>
__device__ __forceinline__ void meetVectors(
        const Shared& shared,
        uint32_t begin,
        uint32_t end,
        const float (&factors)[kQueries][kDims],
        float (&least)[kQueries]) {
    constexpr int kAtOnce = 4;
#pragma unroll 1
    for (uint32_t i = begin; i < end; i += kAtOnce) {
        float norms[kAtOnce] = {};
        if constexpr (kIsL2) {
            readFloats(shared.norms + i, norms);
        }
#pragma unroll
        for (int v = 0; v < kAtOnce; ++v) {
            float y[kDims];
            readFloats(shared.vectors + (i + v) * kFewDimsStride<kDims>, y);
#pragma unroll
            for (int j = 0; j < kQueries; ++j) {
                float value = kIsL2 ? fmaf(y[0], factors[j][0], norms[v])
                                    : y[0] * factors[j][0];
#pragma unroll
                for (int c = 1; c < kDims; ++c) {
                    value = fmaf(y[c], factors[j][c], value);
                }
                least[j] = fminf(least[j], value);
            }
        }
    }
}

} // namespace faiss_bits

/// Canonical distances of several vectors and one query, by eight lanes.
#pragma once

#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits {

/// pairDistance of several row-major vectors and one query. kAhead: components
/// of each that a lane has on their way.
template <Metric kMetric, int kAhead, int kCount, class T>
__device__ __forceinline__ void pairDistances(
        const T* const (&x)[kCount],
        const float* q,
        int d,
        double (&out)[kCount]) {
    using Terms = canonical::Terms<kMetric>;
    const int lane = threadIdx.x % kPairLanes;
    double sums[kCount][Terms::kSums] = {};
    for (int begin = lane; begin < d; begin += kPairLanes * kAhead) {
        float xs[kCount][kAhead];
        float qs[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const int c = begin + i * kPairLanes;
            qs[i] = c < d ? q[c] : 0.0f;
#pragma unroll
            for (int v = 0; v < kCount; ++v) {
                xs[v][i] = c < d ? toFloat(x[v][c]) : 0.0f;
            }
        }
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const double component = qs[i];
#pragma unroll
            for (int v = 0; v < kCount; ++v) {
                Terms::add(
                        sums[v],
                        double(xs[v][i]),
                        component,
                        canonical::Power{});
            }
        }
    }
#pragma unroll
    for (int v = 0; v < kCount; ++v) {
#pragma unroll
        for (int j = 0; j < Terms::kSums; ++j) {
#pragma unroll
            for (int distance = kPairLanes / 2; distance >= 1; distance /= 2) {
                const double other =
                        __shfl_xor_sync(kFullWarp, sums[v][j], distance);
                sums[v][j] = Terms::join(sums[v][j], other);
            }
        }
        out[v] = Terms::finish(sums[v]);
    }
}

} // namespace faiss_bits

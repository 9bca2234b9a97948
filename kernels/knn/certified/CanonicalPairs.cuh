/// Canonical distances of one query and several vectors at a time.
#pragma once

#include "kernels/knn/certified/JoinSlots.cuh"

namespace faiss_bits {

/// As pairDistance, of kPairs vectors: so many times the loads in flight, and
/// the query is read and widened once for all. x[p][c * columnStride] is
/// component c of vector p.
template <Metric kMetric, int kPairs, class T>
__device__ __forceinline__ void pairDistances(
        const T* const (&x)[kPairs],
        int64_t columnStride,
        const float* q,
        int d,
        const canonical::Power& power,
        double (&distances)[kPairs]) {
    using Terms = canonical::Terms<kMetric>;
    constexpr int kAhead = 8; // components of a vector
    const int lane = threadIdx.x % kPairLanes;
    double sums[kPairs][Terms::kSums] = {};
    for (int begin = lane; begin < d; begin += kPairLanes * kAhead) {
        float xs[kPairs][kAhead];
        float qs[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const int c = begin + i * kPairLanes;
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                xs[p][i] = c < d ? toFloat(x[p][c * columnStride]) : 0.0f;
            }
            qs[i] = c < d ? q[c] : 0.0f;
        }
        // Components beyond d are zeros, which no sum notices.
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                Terms::add(sums[p], double(xs[p][i]), double(qs[i]), power);
            }
        }
    }
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
        joinSlots<Terms>(sums[p]);
        distances[p] = Terms::finish(sums[p]);
    }
}

} // namespace faiss_bits

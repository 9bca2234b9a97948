/// The canonical distance of one pair, by one thread: for pairs that the fast
/// arithmetic of a metric is not for. Slow, as one lane reads a vector alone.
#pragma once

#include "kernels/canonical/Distance.h"
#include "kernels/knn/pairwise/PairwiseStage.cuh"

namespace faiss_bits {

/// Rounded to float32. Not inlined, so that it costs its callers no registers.
template <Metric kMetric>
__device__ __noinline__ float canonicalPair(
        const PairwiseRows& vectors,
        idx_t vector,
        const PairwiseRows& queries,
        idx_t query,
        int d) {
    using Terms = canonical::Terms<kMetric>;
    constexpr int kSums = Terms::kSums;
    constexpr int kSlots = canonical::kSlots;
    const canonical::Power power;
    double sums[kSums][kSlots] = {};
    for (int first = 0; first < d; first += kSlots) {
#pragma unroll
        for (int slot = 0; slot < kSlots; ++slot) {
            const int c = first + slot;
            if (c < d) {
                double sum[kSums];
#pragma unroll
                for (int i = 0; i < kSums; ++i) {
                    sum[i] = sums[i][slot];
                }
                Terms::add(
                        sum,
                        double(loadComponent(vectors, vector, c)),
                        double(loadComponent(queries, query, c)),
                        power);
#pragma unroll
                for (int i = 0; i < kSums; ++i) {
                    sums[i][slot] = sum[i];
                }
            }
        }
        // Data that the metric is not for: the result is known.
        if (sums[0][0] != sums[0][0]) {
            break;
        }
    }
    return canonical::toFloat32(canonical::joinSlots<Terms>(sums));
}

} // namespace faiss_bits

/// Canonical distances of a few queries and many vectors: eight lanes a vector,
/// a slot each, several vectors of a group and several queries at a time, so
/// that what is on its way from memory fills the time that it takes.
///
/// Bound by: the read of the vectors; for four queries and more by float64.
#pragma once

#include "kernels/knn/certified/JoinSlots.cuh"

namespace faiss_bits {

/// Queries that are met together, at most: a component of a vector becomes
/// float64 once for all of them, which takes as long as four operations.
template <Metric kMetric>
BITS_HOST_DEVICE constexpr int fewQueriesTogether() {
    switch (kMetric) {
        case Metric::Lp:
        case Metric::Canberra:
        case Metric::JensenShannon:
            return 1; // long code, bound by its arithmetic
        default:
            return canonical::Terms<kMetric>::kSums == 1 ? 2 : 1;
    }
}

/// Vectors of a group of lanes (kVectors) and queries that are met at a time.
template <Metric kMetric, int kVectors, int kQueries>
struct FewQueryDistances {
    using Terms = canonical::Terms<kMetric>;
    static constexpr int kSums = Terms::kSums;
    /// Components of a vector that a lane has on their way.
    static constexpr int kAhead = kQueries == 1 ? 8 : 4;

    /// visit(v, q, distance) for each pair, in all lanes of the group. vectors:
    /// of the group; those that are not there are to be others. queries: rows
    /// of d components. All lanes of the warp call it.
    template <class T, class Visit>
    __device__ __forceinline__ static void run(
            const T* const (&vectors)[kVectors],
            int64_t columnStride,
            const float* const (&queries)[kQueries],
            int d,
            const canonical::Power& power,
            const Visit& visit) {
        double sums[kVectors][kQueries][kSums] = {};
        for (int begin = threadIdx.x % kPairLanes; begin < d;
             begin += kPairLanes * kAhead) {
            float xs[kAhead][kVectors];
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                const int c = begin + i * kPairLanes;
#pragma unroll
                for (int v = 0; v < kVectors; ++v) {
                    // Components beyond d are zeros, which no sum notices.
                    xs[i][v] = c < d ? toFloat(vectors[v][c * columnStride])
                                     : 0.0f;
                }
            }
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                const int c = begin + i * kPairLanes;
                double qs[kQueries];
#pragma unroll
                for (int q = 0; q < kQueries; ++q) {
                    qs[q] = c < d ? double(__ldg(queries[q] + c)) : 0.0;
                }
#pragma unroll
                for (int v = 0; v < kVectors; ++v) {
                    const double x = xs[i][v];
#pragma unroll
                    for (int q = 0; q < kQueries; ++q) {
                        Terms::add(sums[v][q], x, qs[q], power);
                    }
                }
            }
        }
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
#pragma unroll
            for (int q = 0; q < kQueries; ++q) {
                joinSlots<Terms>(sums[v][q]);
                visit(v, q, Terms::finish(sums[v][q]));
            }
        }
    }
};

} // namespace faiss_bits

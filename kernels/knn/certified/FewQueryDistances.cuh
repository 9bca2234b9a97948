/// Canonical distances of a few queries and many vectors: eight lanes a vector,
/// a slot each, several vectors of a group and several queries at a time, so
/// that what is on its way from memory fills the time that it takes.
///
/// Bound by: the read of the vectors; for four queries and more by float64.
#pragma once

#include "kernels/knn/certified/JoinSlots.cuh"

namespace faiss_bits {

/// Metrics whose terms are divisions, powers or logarithms: long code, bound by
/// its arithmetic whatever is on its way.
template <Metric kMetric>
constexpr bool kHasLongTerms = kMetric == Metric::Lp ||
        kMetric == Metric::Canberra || kMetric == Metric::JensenShannon;

/// Queries that are met together, at most: a component of a vector becomes
/// float64 once for all of them, which takes as long as four operations.
template <Metric kMetric>
constexpr int kFewTogether =
        kHasLongTerms<kMetric> || canonical::Terms<kMetric>::kSums > 1 ? 1 : 2;

/// Of pairs whose slots so many lanes have, which meet by halves where they are
/// even in number: those that a lane has in the end, and the bits of lanes that
/// have the same.
constexpr int heldPairs(int pairs, int lanes) {
    return lanes == 0
            ? pairs
            : heldPairs(pairs % 2 == 0 ? pairs / 2 : pairs, lanes / 2);
}
constexpr int sharingLanes(int pairs, int lanes) {
    return lanes == 0        ? 0
            : pairs % 2 == 0 ? sharingLanes(pairs / 2, lanes / 2)
                             : lanes | sharingLanes(pairs, lanes / 2);
}

/// Vectors of a group of lanes (kVectors) and queries that are met at a time.
template <Metric kMetric, int kVectors, int kQueries>
struct FewQueryDistances {
    using Terms = canonical::Terms<kMetric>;
    static constexpr int kSums = Terms::kSums;
    /// Components of a vector that a lane has on their way.
    static constexpr int kAhead = kQueries == 1 ? 8 : 4;

    /// visit(v, q, distance) for each pair, in one lane of the group. vectors:
    /// of the group, d components side by side; those that are not there are to
    /// be others. queries: the same. All lanes of the warp call it.
    template <class T, class Visit>
    __device__ __forceinline__ static void run(
            const T* const (&vectors)[kVectors],
            const float* const (&queries)[kQueries],
            int d,
            const canonical::Power& power,
            const Visit& visit) {
        const int lane = threadIdx.x % kPairLanes;
        // Of this lane, from one step to the next: with distances from one
        // pointer known to the compiler, a load is one instruction.
        const T* x[kVectors];
        const float* y[kQueries];
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            x[v] = vectors[v] + lane;
        }
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
            y[q] = queries[q] + lane;
        }
        double sums[kPairs][kSums] = {};
        for (int begin = 0; begin < d; begin += kPairLanes * kAhead) {
            const int left = d - begin - lane;
            T xs[kAhead][kVectors];
            float qs[kAhead][kQueries];
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                const bool isThere = i * kPairLanes < left;
#pragma unroll
                for (int v = 0; v < kVectors; ++v) {
                    // Components beyond d are zeros, which no sum notices.
                    xs[i][v] = isThere ? x[v][i * kPairLanes] : T(0.0f);
                }
#pragma unroll
                for (int q = 0; q < kQueries; ++q) {
                    qs[i][q] = isThere ? __ldg(y[q] + i * kPairLanes) : 0.0f;
                }
            }
#pragma unroll
            for (int v = 0; v < kVectors; ++v) {
                x[v] += kAhead * kPairLanes;
            }
#pragma unroll
            for (int q = 0; q < kQueries; ++q) {
                y[q] += kAhead * kPairLanes;
            }
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                if (i > 0 && begin + i * kPairLanes >= d) {
                    break;
                }
                double query[kQueries];
#pragma unroll
                for (int q = 0; q < kQueries; ++q) {
                    query[q] = double(qs[i][q]);
                }
#pragma unroll
                for (int v = 0; v < kVectors; ++v) {
                    const double component = double(toFloat(xs[i][v]));
#pragma unroll
                    for (int q = 0; q < kQueries; ++q) {
                        Terms::add(
                                sums[v * kQueries + q],
                                component,
                                query[q],
                                power);
                    }
                }
            }
        }
        const int first = meet<kPairs, kPairLanes / 2>(sums);
        if ((lane & kSharing) == 0) {
#pragma unroll
            for (int i = 0; i < kHeld; ++i) {
                const int pair = first + i;
                visit(pair / kQueries, pair % kQueries, Terms::finish(sums[i]));
            }
        }
    }

   private:
    static constexpr int kPairs = kVectors * kQueries;

    static constexpr int kHeld = heldPairs(kPairs, kPairLanes / 2);
    static constexpr int kSharing = sharingLanes(kPairs, kPairLanes / 2);

    /// The slots of each pair meet in the order of joinSlots(). Where pairs are
    /// even in number a lane hands half of them to its partner and takes the
    /// other half; else both have all. Returns the first of those that this
    /// lane has in the end.
    template <int kCount, int kLanes>
    __device__ __forceinline__ static int meet(double (*sums)[kSums]) {
        if constexpr (kLanes == 0) {
            return 0;
        } else {
            constexpr bool kDivides = kCount % 2 == 0;
            constexpr int kNext = kDivides ? kCount / 2 : kCount;
            const bool isUpper = kDivides && (threadIdx.x & kLanes) != 0;
#pragma unroll
            for (int i = 0; i < kNext; ++i) {
#pragma unroll
                for (int j = 0; j < kSums; ++j) {
                    constexpr int kOther = kCount - kNext;
                    const double keep =
                            isUpper ? sums[i + kOther][j] : sums[i][j];
                    const double give = kDivides && !isUpper
                            ? sums[i + kOther][j]
                            : sums[i][j];
                    sums[i][j] = Terms::join(
                            keep, __shfl_xor_sync(kFullWarp, give, kLanes));
                }
            }
            return (isUpper ? kNext : 0) + meet<kNext, kLanes / 2>(sums);
        }
    }
};

} // namespace faiss_bits

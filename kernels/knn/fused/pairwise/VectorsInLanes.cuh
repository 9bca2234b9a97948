/// Scans for small d and few queries: every lane has its own vectors, all
/// their components in registers, and takes query after query from shared
/// memory.
///
/// Bound by: the read of the vectors; for 16 queries the metric's instructions.
#pragma once

#include "kernels/knn/fused/pairwise/AppendPassed.cuh"
#include "kernels/knn/fused/pairwise/PairSums.cuh"
#include "kernels/knn/fused/pairwise/PassTest.cuh"
#include "kernels/knn/fused/pairwise/QueriesInLanes.cuh"
#include "kernels/knn/pairwise/CanonicalPair.cuh"

namespace faiss_bits {

/// Most queries of one launch.
constexpr int kMostQueriesOfLanes = 16;

template <class Term, int Dims>
struct VectorsInLanes {
    using Test = PassTest<Term>;
    static constexpr int kStep = Term::kStep;
    static constexpr int kPadded = (Dims + kStep - 1) / kStep * kStep;
    static constexpr int kStride = (kPadded + 3) / 4 * 4;
    static constexpr int kPerV = 4;
    static constexpr int kVectors = kPerV * kSmallDimsThreads; // of a block

    struct alignas(16) SharedStorage {
        float q[kMostQueriesOfLanes][kStride];
        float logQ[Term::kLogs ? kMostQueriesOfLanes : 1][kStride];
        PassLimit limits[kMostQueriesOfLanes];
        float facts[kMostQueriesOfLanes];
    };

    SharedStorage& shared;
    const FusedPairwiseParams& params;

    __device__ __forceinline__ void run() {
        const PairwiseParams& pairs = params.pairs;
        const idx_t first = idx_t(blockIdx.x) * kVectors + threadIdx.x;
        float x[kPerV][kPadded];
        float logX[kPerV][Term::kLogs ? kPadded : 1];
        float factsV[kPerV] = {};
        bool fit = true;
#pragma unroll
        for (int j = 0; j < kPerV; ++j) {
            const idx_t vector = first + j * kSmallDimsThreads;
            loadRow(pairs.vectors, vector, pairs.d, x[j]);
            if constexpr (Term::kFacts) {
                if (vector < pairs.vectors.count) {
                    factsV[j] = pairs.vectors.facts[vector];
                    fit = fit && factsV[j] >= 0;
                }
            }
        }
        if (threadIdx.x < kMostQueriesOfLanes) {
            loadQuery(threadIdx.x);
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < kPerV; ++j) {
            stageRow<Term>(x[j], logX[j]);
        }
        const int count = int(pairs.queries.count);
#pragma unroll 1
        for (int query = 0; query < count; ++query) {
            const uint32_t mask = fit && shared.facts[query] >= 0
                    ? fitMask(x, logX, factsV, query)
                    : anyMask(x, logX, factsV, query, first);
            if (mask) {
                appendMask(params, query, mask, [first](int j) {
                    return first + j * kSmallDimsThreads;
                });
            }
        }
    }

   private:
    __device__ __forceinline__ void loadQuery(int query) {
        const PairwiseRows& queries = params.pairs.queries;
        float row[kPadded];
        float logs[Term::kLogs ? kPadded : 1];
        loadRow(queries, query, params.pairs.d, row);
        stageRow<Term>(row, logs);
#pragma unroll
        for (int c = 0; c < kStride; ++c) {
            shared.q[query][c] = c < kPadded ? row[c] : 0.0f;
            if constexpr (Term::kLogs) {
                shared.logQ[query][c] = c < kPadded ? logs[c] : 0.0f;
            }
        }
        const bool exists = query < queries.count;
        const float fact = Term::kFacts && exists ? queries.facts[query] : 0.0f;
        shared.facts[query] = fact;
        shared.limits[query] = exists && fact >= 0
                ? Test::of(params.passed.limits[query], fact)
                : Test::nothing();
    }

    __device__ __forceinline__ static void read(
            float (&out)[kPadded],
            const float (&from)[kStride]) {
#pragma unroll
        for (int c = 0; c < kStride; c += 4) {
            const float4 four = *reinterpret_cast<const float4*>(from + c);
            const float v[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int j = 0; j < 4 && c + j < kPadded; ++j) {
                out[c + j] = v[j];
            }
        }
    }

    template <int Logs>
    __device__ __forceinline__ uint32_t
    fitMask(const float (&x)[kPerV][kPadded],
            const float (&logX)[kPerV][Logs],
            const float (&factsV)[kPerV],
            int query) const {
        float q[kPadded];
        float logQ[Logs] = {};
        read(q, shared.q[query]);
        if constexpr (Term::kLogs) {
            read(logQ, shared.logQ[query]);
        }
        const PassLimit limit = shared.limits[query];
        float sums[kPerV];
        bool some = false;
#pragma unroll
        for (int j = 0; j < kPerV; ++j) {
#pragma unroll
            for (int c = 0; c < kPadded; c += kStep) {
                float one[kStep];
                float log[kStep] = {};
                takeStep(one, x[j], c);
                if constexpr (Term::kLogs) {
                    takeStep(log, logX[j], c);
                }
                addComponents<Term>(
                        sums[j], one, log, q, logQ, c, params.pairs.power);
            }
            some |= Test::maybe(sums[j], factsV[j], limit);
        }
        uint32_t mask = 0;
        if (some) {
#pragma unroll
            for (int j = 0; j < kPerV; ++j) {
                bool passes = Test::maybe(sums[j], factsV[j], limit);
                if constexpr (!Test::kExact) {
                    passes = passes &&
                            passesLimit(
                                     params,
                                     query,
                                     Test::key(
                                             sums[j],
                                             factsV[j],
                                             shared.facts[query]));
                }
                mask |= passes ? 1u << j : 0u;
            }
        }
        return mask;
    }

    /// Of pairs of which some are not fit.
    template <int Logs>
    __device__ __forceinline__ uint32_t
    anyMask(const float (&x)[kPerV][kPadded],
            const float (&logX)[kPerV][Logs],
            const float (&factsV)[kPerV],
            int query,
            idx_t first) const {
        if constexpr (Term::kUnfit == UnfitPairs::Second) {
            const PairwiseParams& pairs = params.pairs;
            float q[kPadded];
            loadRow(pairs.queries, query, pairs.d, q);
            uint32_t mask = 0;
#pragma unroll 1
            for (int j = 0; j < kPerV; ++j) {
                const idx_t vector = first + j * kSmallDimsThreads;
                float row[kPadded]; // as in memory
                loadRow(pairs.vectors, vector, pairs.d, row);
                const float key = secondKey<Term>(row, q, pairs.power);
                mask |= passesLimit(params, query, key) ? 1u << j : 0u;
            }
            return mask;
        } else if constexpr (Term::kUnfit == UnfitPairs::Canonical) {
            const bool fits = shared.facts[query] >= 0;
            uint32_t fit = 0;
#pragma unroll
            for (int j = 0; j < kPerV; ++j) {
                fit |= fits && factsV[j] >= 0 ? 1u << j : 0u;
            }
            uint32_t mask = 0;
            if (fit) {
                mask = fit & fitMask(x, logX, factsV, query);
            }
            return mask | canonicalMask(params, ~fit, query, first);
        } else {
            return 0; // not reached: every pair is fit
        }
    }

    /// The pairs of the bits of the mask. Not inlined: for data that is rare.
    __device__ __noinline__ static uint32_t canonicalMask(
            const FusedPairwiseParams& params,
            uint32_t which,
            int query,
            idx_t first) {
        const PairwiseParams& pairs = params.pairs;
        uint32_t mask = 0;
#pragma unroll 1
        for (int j = 0; j < kPerV; ++j) {
            const idx_t vector = first + j * kSmallDimsThreads;
            if (!(which >> j & 1) || vector >= pairs.vectors.count) {
                continue;
            }
            const float value = canonicalPair<Term::kMetric>(
                    pairs.vectors, vector, pairs.queries, query, pairs.d);
            const float key = Test::kSimilarity ? -value : value;
            // NaN is no distance here, but what the search leaves out.
            const bool passes = key == key && passesLimit(params, query, key);
            mask |= passes ? 1u << j : 0u;
        }
        return mask;
    }
};

template <class Term, int Dims>
__global__ void __launch_bounds__(kSmallDimsThreads) vectorsInLanesKernel(
        const __grid_constant__ FusedPairwiseParams params) {
    using Body = VectorsInLanes<Term, Dims>;
    __shared__ typename Body::SharedStorage shared;
    Body{shared, params}.run();
}

} // namespace faiss_bits

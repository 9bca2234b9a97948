/// Scans for small d and few queries: every lane has its own vectors, all
/// their components in registers, and takes query after query from shared
/// memory.
///
/// Bound by: the read of the vectors; for 16 queries the metric's instructions.
#pragma once

#include "kernels/knn/fused/pairwise/AppendPassed.cuh"
#include "kernels/knn/fused/pairwise/CanonicalPass.cuh"
#include "kernels/knn/fused/pairwise/PairSums.cuh"
#include "kernels/knn/fused/pairwise/PassTest.cuh"
#include "kernels/knn/fused/pairwise/QueriesInLanes.cuh"

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
        bool queriesFit = true;
#pragma unroll 1
        for (int query = 0; query < count; ++query) {
            const bool queryFits = shared.facts[query] >= 0;
            queriesFit = queriesFit && queryFits;
            uint32_t mask = 0;
            if (Term::kUnfit == UnfitPairs::Second && !(fit && queryFits)) {
                mask = secondMask(query, first);
            } else if (queryFits) {
                mask = fitMask(x, logX, factsV, query);
            }
            if (mask) {
                append(query, mask, first);
            }
        }
        // By itself: a call in the loop would take its registers.
        if constexpr (Term::kUnfit == UnfitPairs::Canonical) {
            if (!(fit && queriesFit)) {
                takeCanonical(params, shared.facts, first);
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
            some |= Test::passes(sums[j], factsV[j], limit);
        }
        uint32_t mask = 0;
        if (some) {
            const PassLimit again = limit.again();
#pragma unroll
            for (int j = 0; j < kPerV; ++j) {
                const bool passes = factsV[j] >= 0 &&
                        Test::passes(sums[j], factsV[j], again);
                mask |= passes ? 1u << j : 0u;
            }
        }
        return mask;
    }

    __device__ __forceinline__ void append(
            int query,
            uint32_t mask,
            idx_t first) const {
        appendMask(params, query, mask, [first](int j) {
            return first + j * kSmallDimsThreads;
        });
    }

    /// Of all vectors of the thread, by the arithmetic for pairs that are not
    /// fit.
    __device__ __forceinline__ uint32_t
    secondMask(int query, idx_t first) const {
        uint32_t mask = 0;
        if constexpr (Term::kUnfit == UnfitPairs::Second) {
            const PairwiseParams& pairs = params.pairs;
            float q[kPadded];
            loadRow(pairs.queries, query, pairs.d, q);
#pragma unroll 1
            for (int j = 0; j < kPerV; ++j) {
                const idx_t vector = first + j * kSmallDimsThreads;
                float row[kPadded]; // as in memory
                loadRow(pairs.vectors, vector, pairs.d, row);
                const float key = secondKey<Term>(row, q, pairs.power);
                mask |= passesLimit(params, query, key) ? 1u << j : 0u;
            }
        }
        return mask;
    }

    /// The pairs that are not fit: slow, for data that is rare.
    __device__ __noinline__ static void takeCanonical(
            const FusedPairwiseParams& params,
            const float* factsQ,
            idx_t first) {
        const PairwiseParams& pairs = params.pairs;
#pragma unroll 1
        for (int at = 0; at < int(pairs.queries.count) * kPerV; ++at) {
            const int query = at / kPerV;
            const idx_t vector = first + at % kPerV * kSmallDimsThreads;
            if (vector >= pairs.vectors.count ||
                (factsQ[query] >= 0 && pairs.vectors.facts[vector] >= 0)) {
                continue;
            }
            if (canonicalPasses<Term>(params, vector, query)) {
                appendMask(params, query, 1, [vector](int) { return vector; });
            }
        }
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

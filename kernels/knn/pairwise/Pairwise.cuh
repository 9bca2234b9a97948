/// A tile of distances from the components of queries and vectors, by a metric
/// that is no matrix product: a matrix product's loops with another inner term.
///
/// A block takes Queries x Vectors distances, a thread PerQueries x PerVectors
/// of them. A step of `Depth` components of all its rows comes through shared
/// memory, in two buffers: while one is computed with, the next is on its way
/// in registers. A sum takes its components in their order, whatever the shape.
///
/// Bound by: the metric's instructions; 128 x 128 with 8 x 8 a thread loads 16
/// components from shared memory for 64 terms (L1, sm_90: 1071 instructions for
/// 512 terms of two, and about 100 to stage them). Few queries: the one read of
/// the vectors.
#pragma once

#include "kernels/knn/pairwise/CanonicalPair.cuh"
#include "kernels/knn/pairwise/PairwiseLayout.cuh"
#include "kernels/knn/pairwise/PairwiseParams.h"
#include "kernels/knn/pairwise/PairwiseStage.cuh"
#include "kernels/knn/pairwise/PairwiseTerms.cuh"

namespace faiss_bits {

template <class Term, class P>
struct PairwiseBody {
    using Layout = PairwiseLayout<P>;
    static constexpr int kPerQ = Layout::kPerQ;
    static constexpr int kPerV = Layout::kPerV;
    static constexpr int kGroupV = Layout::kGroupV;
    static constexpr int kQuads = Layout::kQuads;
    static constexpr int kItemsV = Layout::kItemsV;
    static constexpr int kItemsQ = Layout::kItemsQ;
    template <int Rows>
    using Stage = typename Layout::template Stage<Rows>;
    struct SharedStorage {
        Stage<P::vectors> x;
        Stage<P::queries> q;
        Stage<Term::kLogs ? P::vectors : 4> logX;
        Stage<Term::kLogs ? P::queries : 4> logQ;
    };

    SharedStorage& shared;
    const PairwiseParams& params;
    idx_t firstVector;
    idx_t firstQuery;
    const uint8_t* rowsV[kItemsV];
    const uint8_t* rowsQ[kItemsQ];
    RawQuad rawV[kItemsV];
    RawQuad rawQ[kItemsQ];

    __device__ __forceinline__
    PairwiseBody(SharedStorage& storage, const PairwiseParams& p)
            : shared(storage), params(p) {
        const unsigned queryTile = blockIdx.x % p.queryTiles;
        const unsigned vectorTile = blockIdx.x / p.queryTiles;
        firstVector = idx_t(vectorTile) * P::vectors;
        firstQuery = idx_t(queryTile) * P::queries;
        // Rows behind the last are the last again: nobody sees their results.
#pragma unroll
        for (int i = 0; i < kItemsV; ++i) {
            const idx_t row = firstVector + Layout::item(i) / kQuads;
            rowsV[i] = rowPointer(p.vectors, lastOr(row, p.vectors));
        }
#pragma unroll
        for (int i = 0; i < kItemsQ; ++i) {
            const idx_t row = firstQuery + Layout::item(i) / kQuads;
            rowsQ[i] = rowPointer(p.queries, lastOr(row, p.queries));
        }
    }

    __device__ __forceinline__ void run() {
        bool allFit = true;
        if constexpr (Term::kFacts) {
            allFit = everyRowIsFit();
        }
        float sums[kPerQ][kPerV];
        sumUp<Term>(sums);
        if (allFit) {
            storeAll<false>([&](int i, int j, float, const float* v, float q) {
                return Term::finish(sums[i][j], v[j], q);
            });
            return;
        }
        if constexpr (Term::kUnfit == UnfitPairs::Second) {
            // The first sums wait where the distances go.
            storeAll<false>([&](int i, int j, float, const float*, float) {
                return sums[i][j];
            });
            sumUp<typename Term::Second>(sums);
            storeAll<true>(
                    [&](int i, int j, float first, const float* v, float q) {
                        return v[j] >= 0 && q >= 0
                                ? Term::finish(first, v[j], q)
                                : Term::finishUnfit(first, sums[i][j]);
                    });
        } else if constexpr (Term::kUnfit == UnfitPairs::Canonical) {
            storeAll<false>([&](int i, int j, float, const float* v, float q) {
                return Term::finish(sums[i][j], v[j], q);
            });
            storeCanonical();
        }
    }

   private:
    __device__ __forceinline__ static idx_t lastOr(
            idx_t row,
            const PairwiseRows& rows) {
        return row < rows.count ? row : rows.count - 1;
    }

    __device__ __forceinline__ bool everyRowIsFit() const {
        bool fit = true;
        for (int i = threadIdx.x; i < P::vectors + P::queries;
             i += kPairwiseThreads) {
            const float fact = i < P::vectors
                    ? params.vectors
                              .facts[lastOr(firstVector + i, params.vectors)]
                    : params.queries.facts[lastOr(
                              firstQuery + i - P::vectors, params.queries)];
            fit = fit && fact >= 0;
        }
        return __syncthreads_and(fit);
    }

    // ---- memory to shared memory ----

    __device__ __forceinline__ void fetch(int first) {
#pragma unroll
        for (int i = 0; i < kItemsV; ++i) {
            if (Layout::item(i) < P::vectors * kQuads) {
                const int c = first + Layout::item(i) % kQuads * 4;
                rawV[i] = loadQuad(params.vectors, rowsV[i], c, params.d);
            }
        }
#pragma unroll
        for (int i = 0; i < kItemsQ; ++i) {
            if (Layout::item(i) < P::queries * kQuads) {
                const int c = first + Layout::item(i) % kQuads * 4;
                rawQ[i] = loadQuad(params.queries, rowsQ[i], c, params.d);
            }
        }
    }

    template <class Step, class Values, class Logs>
    __device__ __forceinline__ static void stageOne(
            Values& values,
            Logs& logs,
            int buffer,
            int i,
            float4 four) {
        const int row = Layout::item(i) / kQuads;
        const int c = Layout::item(i) % kQuads * 4;
        const float v[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            values.values[buffer][c + j][row] = v[j];
            if constexpr (Step::kLogs) {
                logs.values[buffer][c + j][row] = Step::logOf(v[j]);
            }
        }
    }

    template <class Step>
    __device__ __forceinline__ void stage(int buffer) {
#pragma unroll
        for (int i = 0; i < kItemsV; ++i) {
            if (Layout::item(i) < P::vectors * kQuads) {
                stageOne<Step>(
                        shared.x,
                        shared.logX,
                        buffer,
                        i,
                        widenQuad(params.vectors, rawV[i]));
            }
        }
#pragma unroll
        for (int i = 0; i < kItemsQ; ++i) {
            if (Layout::item(i) < P::queries * kQuads) {
                stageOne<Step>(
                        shared.q,
                        shared.logQ,
                        buffer,
                        i,
                        widenQuad(params.queries, rawQ[i]));
            }
        }
    }

    // ---- sums ----

    /// Components k to k + kStep - 1 of the buffer.
    template <class Step>
    __device__ __forceinline__ void addStep(
            float (&sums)[kPerQ][kPerV],
            int buffer,
            int k) const {
        constexpr int kStep = Step::kStep;
        float x[kPerV][kStep];
        float q[kPerQ][kStep];
#pragma unroll
        for (int s = 0; s < kStep; ++s) {
            Layout::pickV(x, s, shared.x.values[buffer][k + s]);
            Layout::pickQ(q, s, shared.q.values[buffer][k + s]);
        }
        if constexpr (Step::kLogs) {
            float logX[kPerV][kStep];
            float logQ[kPerQ][kStep];
            Layout::pickV(logX, 0, shared.logX.values[buffer][k]);
            Layout::pickQ(logQ, 0, shared.logQ.values[buffer][k]);
#pragma unroll
            for (int i = 0; i < kPerQ; ++i) {
#pragma unroll
                for (int j = 0; j < kPerV; ++j) {
                    Step::add(sums[i][j], x[j], q[i], logX[j], logQ[i]);
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < kPerQ; ++i) {
#pragma unroll
                for (int j = 0; j < kPerV; ++j) {
                    Step::add(sums[i][j], x[j], q[i], params.power);
                }
            }
        }
    }

    template <class Step>
    __device__ __forceinline__ void sumUp(float (&sums)[kPerQ][kPerV]) {
#pragma unroll
        for (int i = 0; i < kPerQ; ++i) {
#pragma unroll
            for (int j = 0; j < kPerV; ++j) {
                sums[i][j] = 0.0f;
            }
        }
        fetch(0);
        stage<Step>(0);
        __syncthreads();
        int buffer = 0;
        for (int left = params.d; left > 0; left -= P::depth) {
            const bool more = left > P::depth;
            if (more) {
                fetch(params.d - left + P::depth);
            }
            if (left >= P::depth) {
#pragma unroll
                for (int k = 0; k < P::depth; k += Step::kStep) {
                    addStep<Step>(sums, buffer, k);
                }
            } else {
#pragma unroll 1
                for (int k = 0; k < left; k += Step::kStep) {
                    addStep<Step>(sums, buffer, k);
                }
            }
            buffer ^= 1;
            if (more) {
                stage<Step>(buffer);
            }
            // Behind it the next step is there, and this one's buffer free.
            __syncthreads();
        }
    }

    // ---- results ----

    /// Writes valueOf(i, j, what is there if kReadBack, facts of the vectors,
    /// fact of the query) for the thread's distances.
    template <bool kReadBack, class ValueOf>
    __device__ __forceinline__ void storeAll(ValueOf valueOf) const {
        float factsV[kPerV] = {};
        if constexpr (Term::kFacts) {
#pragma unroll
            for (int j = 0; j < kPerV; ++j) {
                factsV[j] = params.vectors.facts[lastOr(
                        firstVector + Layout::rowV(j), params.vectors)];
            }
        }
#pragma unroll
        for (int i = 0; i < kPerQ; ++i) {
            const idx_t query = firstQuery + Layout::rowQ(i);
            if (query >= params.queries.count) {
                continue;
            }
            const float factQ = Term::kFacts ? params.queries.facts[query] : 0;
            float* out = params.distances + query * params.distanceStride;
#pragma unroll
            for (int g = 0; g < kPerV; g += kGroupV) {
                storeGroup<kReadBack>(out, i, g, factsV, factQ, valueOf);
            }
        }
    }

    template <bool kReadBack, class ValueOf>
    __device__ __forceinline__ void storeGroup(
            float* out,
            int i,
            int g,
            const float (&factsV)[kPerV],
            float factQ,
            ValueOf valueOf) const {
        const idx_t vector = firstVector + Layout::rowV(g);
        float* to = out + vector;
        if constexpr (kGroupV == 4) {
            if (params.quadStores && vector + 4 <= params.vectors.count) {
                float4 four = {};
                if constexpr (kReadBack) {
                    four = *reinterpret_cast<const float4*>(to);
                }
                four.x = valueOf(i, g, four.x, factsV, factQ);
                four.y = valueOf(i, g + 1, four.y, factsV, factQ);
                four.z = valueOf(i, g + 2, four.z, factsV, factQ);
                four.w = valueOf(i, g + 3, four.w, factsV, factQ);
                *reinterpret_cast<float4*>(to) = four;
                return;
            }
        }
#pragma unroll
        for (int e = 0; e < kGroupV; ++e) {
            if (vector + e < params.vectors.count) {
                const float there = kReadBack ? to[e] : 0.0f;
                to[e] = valueOf(i, g + e, there, factsV, factQ);
            }
        }
    }

    /// The canonical distances of the pairs that are not fit.
    __device__ __forceinline__ void storeCanonical() const {
#pragma unroll 1
        for (int i = 0; i < kPerQ; ++i) {
            const idx_t query = firstQuery + Layout::rowQ(i);
            if (query >= params.queries.count) {
                continue;
            }
            const bool fits = params.queries.facts[query] >= 0;
#pragma unroll 1
            for (int j = 0; j < kPerV; ++j) {
                const idx_t vector = firstVector + Layout::rowV(j);
                if (vector < params.vectors.count &&
                    !(fits && params.vectors.facts[vector] >= 0)) {
                    params.distances[query * params.distanceStride + vector] =
                            canonicalPair<Term::kMetric>(
                                    params.vectors,
                                    vector,
                                    params.queries,
                                    query,
                                    params.d);
                }
            }
        }
    }
};

/// sm_90, nvcc 13.0: up to 24 bytes of addresses are spilled for that many
/// blocks a multiprocessor; a step's unrolled sums read none of them.
template <class Term, class P>
__global__ void __launch_bounds__(kPairwiseThreads, P::minBlocks)
        pairwiseKernel(const __grid_constant__ PairwiseParams params) {
    using Body = PairwiseBody<Term, P>;
    __shared__ typename Body::SharedStorage shared;
    Body(shared, params).run();
}

} // namespace faiss_bits

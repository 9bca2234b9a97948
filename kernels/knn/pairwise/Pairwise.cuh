/// A tile of distances, written to a matrix.
#pragma once

#include "kernels/knn/pairwise/CanonicalPair.cuh"
#include "kernels/knn/pairwise/PairwiseTile.cuh"

namespace faiss_bits {

template <class Term, class P>
struct PairwiseBody {
    using Tile = PairwiseTile<Term, P>;
    using Layout = typename Tile::Layout;
    using SharedStorage = typename Tile::SharedStorage;
    static constexpr int kPerQ = Layout::kPerQ;
    static constexpr int kPerV = Layout::kPerV;
    static constexpr int kGroupV = Layout::kGroupV;

    Tile tile;
    const PairwiseParams& params;
    idx_t firstVector;
    idx_t firstQuery;

    __device__ __forceinline__
    PairwiseBody(SharedStorage& storage, const PairwiseParams& p)
            : tile(storage, p),
              params(p),
              firstVector(tile.firstVector),
              firstQuery(tile.firstQuery) {}

    __device__ __forceinline__ void run() {
        bool allFit = true;
        if constexpr (Term::kFacts) {
            allFit = tile.everyRowIsFit();
        }
        float sums[kPerQ][kPerV];
        tile.template sumUp<Term>(sums);
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
            tile.template sumUp<typename Term::Second>(sums);
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
    /// Writes valueOf(i, j, what is there if kReadBack, facts of the vectors,
    /// fact of the query) for the thread's distances.
    template <bool kReadBack, class ValueOf>
    __device__ __forceinline__ void storeAll(ValueOf valueOf) const {
        float factsV[kPerV] = {};
        if constexpr (Term::kFacts) {
#pragma unroll
            for (int j = 0; j < kPerV; ++j) {
                factsV[j] = params.vectors.facts[Tile::lastOr(
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

/// Scans for small d: every lane has its own queries, all their components in
/// registers, and the vectors of a tile go by in shared memory, four at a time
/// and the same for all lanes. Blocks have equal parts of all pairs.
///
/// Bound by: the metric's instructions and one comparison a pair; shared memory
/// is read once a component for 4 PerQ pairs of a lane. The loop over a tile
/// has nothing else in it: no call, no division, no wait for global memory.
#pragma once

#include "kernels/knn/fused/pairwise/CanonicalPass.cuh"
#include "kernels/knn/fused/pairwise/PairSums.cuh"
#include "kernels/knn/fused/pairwise/PassTest.cuh"
#include "kernels/knn/fused/pairwise/PassedBuffer.cuh"

namespace faiss_bits {

constexpr int kSmallDimsThreads = 256;

template <class Term, int Dims, int PerQ>
struct QueriesInLanes {
    using Test = PassTest<Term>;
    static constexpr int kStep = Term::kStep;
    static constexpr int kPadded = (Dims + kStep - 1) / kStep * kStep;
    static constexpr int kQueries = 32 * PerQ; // of a block
    static constexpr int kVectors =            // of a tile, at most
            (Dims <= 4           ? 2048
                     : Dims <= 8 ? 1024
                                 : 512) /
            (Term::kLogs ? 2 : 1);
    static constexpr int kUnit = 128; // of the parts that blocks have
    static constexpr int kGroup = 4;  // vectors at a time
    static constexpr int kWarps = kSmallDimsThreads / 32;
    /// Queries whose pairs are tested together: fewer would branch more often,
    /// and of more there is more to look through where one has passed.
    static constexpr int kTested = PerQ < 4 ? PerQ : 4;

    struct alignas(16) SharedStorage {
        float x[kPadded][kVectors];
        float logX[Term::kLogs ? kPadded : 1][Term::kLogs ? kVectors : 4];
        float facts[Term::kFacts ? kVectors : 4];
        PassedBuffer<kSmallDimsThreads> passed;
    };

    SharedStorage& shared;
    const FusedPairwiseParams& params;
    idx_t firstQuery = 0;
    float q[PerQ][kPadded];
    float logQ[PerQ][Term::kLogs ? kPadded : 1];
    PassLimit limits[PerQ];
    uint32_t unfitQ = 0; // a bit for each of the lane's queries
    /// Bits of pairs of a group, as in takeGroup(), of queries whose lists are
    /// not known to be full. Infinite sums pass any limit.
    uint32_t open = ~0u;

    __device__ __forceinline__
    QueriesInLanes(SharedStorage& storage, const FusedPairwiseParams& p)
            : shared(storage), params(p) {}

    __device__ __forceinline__ void run() {
        const idx_t perTile = (params.pairs.vectors.count + kUnit - 1) / kUnit;
        const idx_t units = perTile * params.pairs.queryTiles;
        idx_t unit = units * blockIdx.x / gridDim.x;
        const idx_t end = units * (blockIdx.x + 1) / gridDim.x;
        shared.passed.clear();
        while (unit < end) {
            // As far as this block's part goes with these queries.
            const idx_t queryTile = unit / perTile;
            const idx_t last = min(end, (queryTile + 1) * perTile);
            loadQueries(queryTile * kQueries);
            const idx_t firstUnit = queryTile * perTile;
            idx_t vector = (unit - firstUnit) * kUnit;
            const idx_t behind =
                    min((last - firstUnit) * kUnit, params.pairs.vectors.count);
            for (; vector < behind; vector += kVectors) {
                const idx_t left = behind - vector;
                takeTile(vector, left < kVectors ? int(left) : kVectors);
            }
            unit = last;
        }
        __syncthreads();
        shared.passed.handOn(params);
    }

   private:
    __device__ __forceinline__ idx_t queryOf(int i) const {
        return firstQuery + i * 32 + threadIdx.x % 32;
    }

    __device__ __forceinline__ void loadQueries(idx_t first) {
        const PairwiseRows& queries = params.pairs.queries;
        firstQuery = first;
        unfitQ = 0;
        open = ~0u;
#pragma unroll
        for (int i = 0; i < PerQ; ++i) {
            const idx_t query = queryOf(i);
            loadRow(queries, query, params.pairs.d, q[i]);
            stageRow<Term>(q[i], logQ[i]);
            limits[i] = Test::nothing();
            if (query < queries.count) {
                const float fact = Term::kFacts ? queries.facts[query] : 0.0f;
                if (fact >= 0) {
                    limits[i] = Test::of(params.passed.limits[query], fact);
                } else {
                    unfitQ |= 1u << i;
                }
            }
        }
    }

    __device__ __forceinline__ void takeTile(idx_t firstVector, int count) {
        __syncthreads(); // the tile before has been read
        using Buffer = PassedBuffer<kSmallDimsThreads>;
        if (shared.passed.count > Buffer::kRoom / 2) {
            shared.passed.handOn(params);
        }
        const bool allFit = stageTile(firstVector, count);
        const int first = threadIdx.x / 32 * kGroup;
        if (allFit) {
#pragma unroll 1
            for (int g = first; g < count; g += kWarps * kGroup) {
                takeGroup<true>(firstVector, g);
            }
        } else if constexpr (Term::kUnfit == UnfitPairs::Second) {
#pragma unroll 1
            for (int g = first; g < count; g += kWarps * kGroup) {
                takeSecond(firstVector, g);
            }
        } else if constexpr (Term::kUnfit == UnfitPairs::Canonical) {
#pragma unroll 1
            for (int g = first; g < count; g += kWarps * kGroup) {
                takeGroup<false>(firstVector, g);
            }
            takeCanonical(params, firstVector, count, firstQuery, unfitQ);
            // So that the call has no need to keep them.
            loadQueries(firstQuery);
        }
    }

    /// Brings the vectors to shared memory. True if they and the warp's queries
    /// are all fit.
    __device__ __forceinline__ bool stageTile(idx_t firstVector, int count) {
        const PairwiseRows& vectors = params.pairs.vectors;
        // Groups are whole: what lies behind the last vector is no vector.
        const int padded = (count + kGroup - 1) / kGroup * kGroup;
        bool fit = true;
#pragma unroll 2
        for (int v = threadIdx.x; v < padded; v += kSmallDimsThreads) {
            float row[kPadded];
            float logs[Term::kLogs ? kPadded : 1];
            loadRow(vectors, firstVector + v, params.pairs.d, row);
            stageRow<Term>(row, logs);
#pragma unroll
            for (int c = 0; c < kPadded; ++c) {
                shared.x[c][v] = row[c];
                if constexpr (Term::kLogs) {
                    shared.logX[c][v] = logs[c];
                }
            }
            if constexpr (Term::kFacts) {
                const bool exists = firstVector + v < vectors.count;
                shared.facts[v] = exists ? vectors.facts[firstVector + v] : 0;
                fit = fit && shared.facts[v] >= 0;
            }
        }
        if constexpr (Term::kFacts) {
            return __syncthreads_and(fit && unfitQ == 0);
        } else {
            __syncthreads();
            return true;
        }
    }

    template <bool AllFit>
    __device__ __forceinline__ void takeGroup(idx_t firstVector, int g) {
        float sums[PerQ][kGroup];
        sumUp(sums, g);
        float factsV[kGroup] = {};
        if constexpr (Term::kFacts) {
            read(factsV, shared.facts + g);
        }
        uint32_t passed = 0; // bit 4 i + j
#pragma unroll
        for (int r = 0; r < PerQ; r += kTested) {
            bool some = false;
#pragma unroll
            for (int i = r; i < r + kTested; ++i) {
#pragma unroll
                for (int j = 0; j < kGroup; ++j) {
                    some |= Test::passes(sums[i][j], factsV[j], limits[i]);
                }
            }
            if (some) {
#pragma unroll
                for (int i = r; i < r + kTested; ++i) {
                    const PassLimit limit = limits[i].again();
#pragma unroll
                    for (int j = 0; j < kGroup; ++j) {
                        passed |= Test::passes(sums[i][j], factsV[j], limit)
                                ? 1u << (4 * i + j)
                                : 0u;
                    }
                }
            }
        }
        if constexpr (!AllFit) {
#pragma unroll
            for (int i = 0; i < PerQ; ++i) {
                passed &= unfitQ >> i & 1 ? ~(0xFu << (4 * i)) : ~0u;
            }
#pragma unroll
            for (int j = 0; j < kGroup; ++j) {
                passed &= factsV[j] >= 0 ? ~0u : ~(0x11111111u << j);
            }
        }
        passed &= open;
        if (passed) {
            push(firstVector + g, passed);
        }
    }

    __device__ __forceinline__ void push(idx_t vector, uint32_t passed) {
        const uint32_t full = shared.passed.push(
                params, passed, vector, [&](int i) { return queryOf(i); });
        open &= ~full;
#pragma unroll
        for (int i = 0; i < PerQ; ++i) {
            if (full >> (4 * i) & 1) {
                limits[i] = Test::nothing();
            }
        }
    }

    __device__ __forceinline__ static void read(
            float (&out)[kGroup],
            const float* from) {
        const float4 four = *reinterpret_cast<const float4*>(from);
        out[0] = four.x;
        out[1] = four.y;
        out[2] = four.z;
        out[3] = four.w;
    }

    __device__ __forceinline__ void sumUp(float (&sums)[PerQ][kGroup], int g)
            const {
#pragma unroll
        for (int c = 0; c < kPadded; c += kStep) {
            float x[kStep][kGroup];
            float logX[kStep][kGroup];
#pragma unroll
            for (int s = 0; s < kStep; ++s) {
                read(x[s], shared.x[c + s] + g);
                if constexpr (Term::kLogs) {
                    read(logX[s], shared.logX[c + s] + g);
                }
            }
#pragma unroll
            for (int j = 0; j < kGroup; ++j) {
                float one[kStep];
                float log[kStep] = {};
#pragma unroll
                for (int s = 0; s < kStep; ++s) {
                    one[s] = x[s][j];
                    if constexpr (Term::kLogs) {
                        log[s] = logX[s][j];
                    }
                }
#pragma unroll
                for (int i = 0; i < PerQ; ++i) {
                    addComponents<Term>(
                            sums[i][j],
                            one,
                            log,
                            q[i],
                            logQ[i],
                            c,
                            params.pairs.power);
                }
            }
        }
    }

    /// All pairs of a group by the arithmetic for those that are not fit.
    __device__ __forceinline__ void takeSecond(idx_t firstVector, int g) {
        const PairwiseParams& pairs = params.pairs;
        uint32_t passed = 0;
#pragma unroll 1
        for (int j = 0; j < kGroup; ++j) {
            float x[kPadded];
            loadRow(pairs.vectors, firstVector + g + j, pairs.d, x);
#pragma unroll
            for (int i = 0; i < PerQ; ++i) {
                const idx_t query = queryOf(i);
                float key;
                if constexpr (Term::kUnfitOfBoth) {
                    key = secondKey<Term>(x, q[i], pairs.power);
                } else { // its queries are staged as others
                    float other[kPadded];
                    loadRow(pairs.queries, query, pairs.d, other);
                    key = secondKey<Term>(x, other, pairs.power);
                }
                const bool passes = query < pairs.queries.count &&
                        passesLimit(params, query, key);
                passed |= passes ? 1u << (4 * i + j) : 0u;
            }
        }
        if (passed) {
            push(firstVector + g, passed);
        }
    }

    /// The pairs that are not fit: slow, for data that is rare. Not inlined,
    /// and not of this, so that it costs its caller no registers.
    __device__ __noinline__ static void takeCanonical(
            const FusedPairwiseParams& params,
            idx_t firstVector,
            int count,
            idx_t firstQuery,
            uint32_t unfitQ) {
        const PairwiseParams& pairs = params.pairs;
        for (int v = threadIdx.x / 32; v < count; v += kWarps) {
            const idx_t vector = firstVector + v;
            const bool fits = pairs.vectors.facts[vector] >= 0;
#pragma unroll 1
            for (int i = 0; i < PerQ; ++i) {
                const idx_t query = firstQuery + i * 32 + threadIdx.x % 32;
                if (query < pairs.queries.count &&
                    !(fits && !(unfitQ >> i & 1)) &&
                    canonicalPasses<Term>(params, vector, query)) {
                    appendMask(params, query, 1, [=](int) { return vector; });
                }
            }
        }
    }
};

/// sm_90, nvcc 13.0: what is spilled is for the ways out of the loop, but for
/// Canberra (d = 3 and 4: 43 of the loop's 970 instructions; d = 16: 42 of
/// 1480) and the metrics with facts at d = 8 (17 of 900).
template <class Term, int Dims, int PerQ>
__global__ void __launch_bounds__(kSmallDimsThreads, 2) queriesInLanesKernel(
        const __grid_constant__ FusedPairwiseParams params) {
    using Body = QueriesInLanes<Term, Dims, PerQ>;
    __shared__ typename Body::SharedStorage shared;
    Body(shared, params).run();
}

} // namespace faiss_bits

/// Scans for small d: every lane has its own queries, all their components in
/// registers, and the vectors of a tile go by in shared memory, four at a time
/// and the same for all lanes. Blocks have equal parts of all tiles.
///
/// Bound by: the metric's instructions and one comparison a pair; shared memory
/// is read once a component for 4 PerQ pairs of a lane.
#pragma once

#include "kernels/knn/fused/pairwise/AppendPassed.cuh"
#include "kernels/knn/fused/pairwise/PairSums.cuh"
#include "kernels/knn/fused/pairwise/PassTest.cuh"
#include "kernels/knn/pairwise/CanonicalPair.cuh"

namespace faiss_bits {

constexpr int kSmallDimsThreads = 256;

template <class Term, int Dims, int PerQ>
struct QueriesInLanes {
    using Test = PassTest<Term>;
    static constexpr int kStep = Term::kStep;
    static constexpr int kPadded = (Dims + kStep - 1) / kStep * kStep;
    static constexpr int kQueries = 32 * PerQ; // of a block
    static constexpr int kVectors =            // of a tile
            Dims <= 4 ? 512 : (Dims <= 8 ? 512 : 256) / (Term::kLogs ? 2 : 1);
    static constexpr int kGroup = 4; // vectors at a time
    static constexpr int kWarps = kSmallDimsThreads / 32;
    /// Queries whose pairs are tested together: fewer would branch more often,
    /// and of more there is more to look through where one has passed.
    static constexpr int kTested = PerQ < 4 ? PerQ : 4;

    struct alignas(16) SharedStorage {
        float x[kPadded][kVectors];
        float logX[Term::kLogs ? kPadded : 1][Term::kLogs ? kVectors : 4];
        float facts[Term::kFacts ? kVectors : 4];
    };

    SharedStorage& shared;
    const FusedPairwiseParams& params;
    idx_t firstQuery = 0;
    float q[PerQ][kPadded];
    float logQ[PerQ][Term::kLogs ? kPadded : 1];
    PassLimit limits[PerQ];
    uint32_t unfitQ = 0; // a bit for each of the lane's queries

    __device__ __forceinline__
    QueriesInLanes(SharedStorage& storage, const FusedPairwiseParams& p)
            : shared(storage), params(p) {}

    __device__ __forceinline__ void run() {
        const unsigned vectorTiles = unsigned(
                (params.pairs.vectors.count + kVectors - 1) / kVectors);
        const uint64_t units = uint64_t(params.pairs.queryTiles) * vectorTiles;
        uint64_t unit = units * blockIdx.x / gridDim.x;
        const uint64_t end = units * (blockIdx.x + 1) / gridDim.x;
        unsigned queryTile = unsigned(unit / vectorTiles);
        unsigned vectorTile = unsigned(unit % vectorTiles);
        bool loaded = false;
        for (; unit < end; ++unit) {
            if (!loaded) {
                loadQueries(idx_t(queryTile) * kQueries);
                loaded = true;
            }
            takeTile(idx_t(vectorTile) * kVectors);
            if (++vectorTile == vectorTiles) {
                vectorTile = 0;
                ++queryTile;
                loaded = false;
            }
        }
    }

   private:
    __device__ __forceinline__ idx_t queryOf(int i) const {
        return firstQuery + i * 32 + threadIdx.x % 32;
    }

    __device__ __forceinline__ void loadQueries(idx_t first) {
        const PairwiseRows& queries = params.pairs.queries;
        firstQuery = first;
        unfitQ = 0;
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

    __device__ __forceinline__ void takeTile(idx_t firstVector) {
        const PairwiseRows& vectors = params.pairs.vectors;
        __syncthreads(); // the tile before has been read
        bool fit = true;
#pragma unroll 1
        for (int v = threadIdx.x; v < kVectors; v += kSmallDimsThreads) {
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
        const bool vectorsFit =
                Term::kFacts ? __syncthreads_and(fit) : (__syncthreads(), true);
        const bool allFit = !Term::kFacts ||
                (vectorsFit && !__any_sync(0xFFFFFFFFu, unfitQ != 0));
        const idx_t left = vectors.count - firstVector;
        const int count = left < kVectors ? int(left) : kVectors;
#pragma unroll 1
        for (int g = threadIdx.x / 32 * kGroup; g < count;
             g += kWarps * kGroup) {
            takeGroup(firstVector, g, allFit);
        }
    }

    __device__ __forceinline__ void takeGroup(
            idx_t firstVector,
            int g,
            bool allFit) {
        if constexpr (Term::kUnfit == UnfitPairs::Second) {
            if (!allFit) {
                takeSecond(firstVector, g);
                return;
            }
        }
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
                    some |= Test::maybe(sums[i][j], factsV[j], limits[i]);
                }
            }
            if (some) {
#pragma unroll
                for (int i = r; i < r + kTested; ++i) {
                    passed |= maskOf(sums[i], factsV, i, allFit) << (4 * i);
                }
            }
        }
        if constexpr (Term::kUnfit == UnfitPairs::Canonical) {
            if (!allFit) {
                passed |= canonicalMasks(
                        params, firstVector + g, firstQuery, unfitQ);
            }
        }
        append(firstVector + g, passed);
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

    __device__ __forceinline__ uint32_t
    maskOf(const float (&sums)[kGroup],
           const float (&factsV)[kGroup],
           int i,
           bool allFit) const {
        const idx_t query = queryOf(i);
        uint32_t mask = 0;
#pragma unroll
        for (int j = 0; j < kGroup; ++j) {
            bool passes = Test::maybe(sums[j], factsV[j], limits[i]) &&
                    query < params.pairs.queries.count;
            if constexpr (!Test::kExact) {
                if (passes) {
                    const float fact = Term::kFacts
                            ? params.pairs.queries.facts[query]
                            : 0.0f;
                    passes = (allFit || (fact >= 0 && factsV[j] >= 0)) &&
                            passesLimit(
                                     params,
                                     query,
                                     Test::key(sums[j], factsV[j], fact));
                }
            }
            mask |= passes ? 1u << j : 0u;
        }
        return mask;
    }

    __device__ __forceinline__ void append(idx_t vector, uint32_t passed)
            const {
        while (passed) {
            const int i = (__ffs(int(passed)) - 1) / 4;
            appendMask(
                    params,
                    queryOf(i),
                    passed >> (4 * i) & 0xF,
                    [vector](int j) { return vector + j; });
            passed &= ~(0xFu << (4 * i));
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
        append(firstVector + g, passed);
    }

    /// The pairs that are not fit: slow, for data that is rare. Not inlined,
    /// and not of this, so that it costs its caller no registers.
    __device__ __noinline__ static uint32_t canonicalMasks(
            const FusedPairwiseParams& params,
            idx_t vector,
            idx_t firstQuery,
            uint32_t unfitQ) {
        const PairwiseParams& pairs = params.pairs;
        uint32_t passed = 0;
#pragma unroll 1
        for (int at = 0; at < PerQ * kGroup; ++at) {
            const int i = at / kGroup;
            const idx_t v = vector + at % kGroup;
            const idx_t query = firstQuery + i * 32 + threadIdx.x % 32;
            if (query >= pairs.queries.count || v >= pairs.vectors.count ||
                (!(unfitQ >> i & 1) && pairs.vectors.facts[v] >= 0)) {
                continue;
            }
            const float value = canonicalPair<Term::kMetric>(
                    pairs.vectors, v, pairs.queries, query, pairs.d);
            const float key = Test::kSimilarity ? -value : value;
            // NaN is no distance here, but what the search leaves out.
            const bool passes = key == key && passesLimit(params, query, key);
            passed |= passes ? 1u << at : 0u;
        }
        return passed;
    }
};

template <class Term, int Dims, int PerQ>
__global__ void __launch_bounds__(kSmallDimsThreads, 2) queriesInLanesKernel(
        const __grid_constant__ FusedPairwiseParams params) {
    using Body = QueriesInLanes<Term, Dims, PerQ>;
    __shared__ typename Body::SharedStorage shared;
    Body(shared, params).run();
}

} // namespace faiss_bits

/// A tile of distances that are compared with their queries' limits where the
/// sums are, in registers: what passes is appended, and nothing else written.
///
/// The sums are those of PairwiseTile. A tile with rows that are not fit takes
/// the term's second sum for all of its pairs, or the canonical distance for
/// those that are not fit.
///
/// Bound by: as PairwiseTile, and one comparison a pair.
#pragma once

#include "kernels/knn/fused/pairwise/AppendPassed.cuh"
#include "kernels/knn/fused/pairwise/CanonicalPass.cuh"
#include "kernels/knn/fused/pairwise/PassTest.cuh"
#include "kernels/knn/pairwise/PairwiseTile.cuh"

namespace faiss_bits {

template <class Term, class P>
struct TileScanBody {
    using Tile = PairwiseTile<Term, P>;
    using Layout = typename Tile::Layout;
    using Test = PassTest<Term>;
    static constexpr int kPerQ = Layout::kPerQ;
    static constexpr int kPerV = Layout::kPerV;

    struct SharedStorage {
        typename Tile::SharedStorage tile;
        PassLimit limits[P::queries];
        float factsV[Term::kFacts ? P::vectors : 1];
        float factsQ[Term::kFacts ? P::queries : 1];
    };

    SharedStorage& shared;
    const FusedPairwiseParams& params;
    Tile tile;

    __device__ __forceinline__
    TileScanBody(SharedStorage& storage, const FusedPairwiseParams& p)
            : shared(storage), params(p), tile(storage.tile, p.pairs) {}

    __device__ __forceinline__ void run() {
        const bool allFit = loadRows();
        float sums[kPerQ][kPerV];
        if constexpr (Term::kUnfit == UnfitPairs::Second) {
            if (!allFit) {
                takeSecond(sums);
                return;
            }
        }
        tile.template sumUp<Term>(sums);
        takeFit(sums, allFit);
        if constexpr (Term::kUnfit == UnfitPairs::Canonical) {
            if (!allFit) {
                takeCanonical();
            }
        }
    }

   private:
    /// What the tests read, behind the barrier of the first step. True if every
    /// row is fit.
    __device__ __forceinline__ bool loadRows() {
        const PairwiseRows& vectors = params.pairs.vectors;
        const PairwiseRows& queries = params.pairs.queries;
        bool fit = true;
        if constexpr (Term::kFacts) {
            for (int i = threadIdx.x; i < P::vectors; i += kPairwiseThreads) {
                const idx_t row = Tile::lastOr(tile.firstVector + i, vectors);
                shared.factsV[i] = vectors.facts[row];
                fit = fit && shared.factsV[i] >= 0;
            }
        }
        for (int i = threadIdx.x; i < P::queries; i += kPairwiseThreads) {
            const idx_t row = tile.firstQuery + i;
            PassLimit limit = Test::nothing();
            float fact = 0;
            if (row < queries.count) {
                if constexpr (Term::kFacts) {
                    fact = queries.facts[row];
                    fit = fit && fact >= 0;
                }
                if (fact >= 0) {
                    limit = Test::of(params.passed.limits[row], fact);
                }
            }
            if constexpr (Term::kFacts) {
                shared.factsQ[i] = fact;
            }
            shared.limits[i] = limit;
        }
        return Term::kFacts ? __syncthreads_and(fit) : true;
    }

    __device__ __forceinline__ void append(int i, uint32_t mask) const {
        const idx_t first = tile.firstVector;
        appendMask(
                params,
                tile.firstQuery + Layout::rowQ(i),
                mask,
                [first](int j) { return first + Layout::rowV(j); });
    }

    /// The fit pairs. No pair of a query that is not passes the first test but
    /// by NaN.
    __device__ __forceinline__ void takeFit(
            const float (&sums)[kPerQ][kPerV],
            bool allFit) const {
        float factsV[kPerV] = {};
        if constexpr (Term::kFacts) {
#pragma unroll
            for (int j = 0; j < kPerV; ++j) {
                factsV[j] = shared.factsV[Layout::rowV(j)];
            }
        }
        static_assert(kPerQ <= 8 && kPerV <= 8);
        uint64_t passed = 0; // bit 8 i + j
#pragma unroll
        for (int i = 0; i < kPerQ; ++i) {
            const PassLimit limit = shared.limits[Layout::rowQ(i)];
            bool some = false;
#pragma unroll
            for (int j = 0; j < kPerV; ++j) {
                some |= Test::passes(sums[i][j], factsV[j], limit);
            }
            if (some) {
                passed |= uint64_t(maskOf(
                                  sums[i], factsV, i, limit.again(), allFit))
                        << (8 * i);
            }
        }
        while (passed) {
            const int i = (__ffsll((long long)passed) - 1) / 8;
            append(i, uint32_t(passed >> (8 * i)) & 0xFF);
            passed &= ~(uint64_t(0xFF) << (8 * i));
        }
    }

    __device__ __forceinline__ uint32_t
    maskOf(const float (&sums)[kPerV],
           const float (&factsV)[kPerV],
           int i,
           const PassLimit& limit,
           bool allFit) const {
        uint32_t mask = 0;
#pragma unroll
        for (int j = 0; j < kPerV; ++j) {
            const bool passes = Test::passes(sums[j], factsV[j], limit) &&
                    (allFit || factsV[j] >= 0);
            mask |= passes ? 1u << j : 0u;
        }
        if constexpr (Term::kFacts) {
            mask = shared.factsQ[Layout::rowQ(i)] >= 0 ? mask : 0u;
        }
        return mask;
    }

    /// All pairs, by the arithmetic for those that are not fit, which is no
    /// coarser for the others.
    __device__ __forceinline__ void takeSecond(float (&sums)[kPerQ][kPerV]) {
        using Second = typename Term::Second;
        constexpr int kHalf = kPerQ / 2;
        if constexpr (Term::kUnfitOfBoth) {
#pragma unroll 1
            for (int half = 0; half < 2; ++half) {
                tile.template sumUpBoth<Term, Second>(sums, half);
#pragma unroll
                for (int i = 0; i < kHalf; ++i) {
                    takeUnfit(sums[i], sums[i + kHalf], i + half * kHalf);
                }
            }
        } else {
            tile.template sumUp<Second>(sums);
#pragma unroll
            for (int i = 0; i < kPerQ; ++i) {
                takeUnfit(sums[i], sums[i], i);
            }
        }
    }

    __device__ __forceinline__ void takeUnfit(
            const float (&first)[kPerV],
            const float (&second)[kPerV],
            int i) const {
        const idx_t query = tile.firstQuery + Layout::rowQ(i);
        if (query >= params.pairs.queries.count) {
            return;
        }
        uint32_t mask = 0;
#pragma unroll
        for (int j = 0; j < kPerV; ++j) {
            const float key = Term::finishUnfit(first[j], second[j]);
            mask |= passesLimit(params, query, key) ? 1u << j : 0u;
        }
        if (mask) {
            append(i, mask);
        }
    }

    /// The pairs that are not fit: slow, for data that is rare.
    __device__ __forceinline__ void takeCanonical() const {
        const PairwiseParams& pairs = params.pairs;
#pragma unroll 1
        for (int i = 0; i < kPerQ; ++i) {
            const int row = Layout::rowQ(i);
            const idx_t query = tile.firstQuery + row;
            if (query >= pairs.queries.count) {
                continue;
            }
            const bool fits = shared.factsQ[row] >= 0;
            uint32_t mask = 0;
#pragma unroll 1
            for (int j = 0; j < kPerV; ++j) {
                const idx_t vector = tile.firstVector + Layout::rowV(j);
                if (vector < pairs.vectors.count &&
                    !(fits && shared.factsV[Layout::rowV(j)] >= 0)) {
                    mask |= canonicalPasses<Term>(params, vector, query)
                            ? 1u << j
                            : 0u;
                }
            }
            if (mask) {
                append(i, mask);
            }
        }
    }
};

/// sm_90, nvcc 13.0: up to 40 bytes of addresses are spilled for that many
/// blocks a multiprocessor, as in pairwiseKernel.
template <class Term, class P>
__global__ void __launch_bounds__(kPairwiseThreads, P::minBlocks)
        tileScanKernel(const __grid_constant__ FusedPairwiseParams params) {
    using Body = TileScanBody<Term, P>;
    __shared__ typename Body::SharedStorage shared;
    Body(shared, params).run();
}

} // namespace faiss_bits

/// Scans for a few queries: each vector is read once, and nothing written but
/// what passes. Any term of PairwiseTerms.cuh.
///
/// A group of `Lanes` lanes owns `kRows` vectors and reads 4 of their
/// components a lane at a time; every query waits in shared memory, so that a
/// load of its components serves all the vectors, and so that that many loads
/// are in flight. The sums over the lanes are added up as
/// kernels/knn/few_queries/FewQueries.cuh does it.
///
/// Bound by: the read of the vectors for 1 to 4 queries; the metric's
/// instructions for 16.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/fused/few_queries/FewQueriesScanParams.h"
#include "kernels/knn/fused/pairwise/AppendPassed.cuh"
#include "kernels/knn/fused/pairwise/CanonicalPass.cuh"
#include "kernels/knn/fused/pairwise/PassTest.cuh"

namespace faiss_bits {

constexpr int kFewQueriesScanThreads = 256;

template <class Term, int Lanes, int Queries>
struct FewQueriesScanBody {
    using Test = PassTest<Term>;
    static constexpr int kRows = Queries >= 16 ? 4 : 8;
    static constexpr int kGroupsPerWarp = 32 / Lanes;
    static constexpr int kChunk = Lanes * 4; // components at a time
    static constexpr int kVectorsPerWarp = kGroupsPerWarp * kRows;
    static constexpr int kSums = kRows * Queries;
    /// Sums of a lane after they have been added up over the lanes.
    static constexpr int kHeld = kSums > Lanes ? kSums / Lanes : 1;
    static_assert(kChunk == fewQueriesScanChunk(Lanes == 4 ? 1 : 17));

    float* queries; // shared, [Queries, padded d], zeros behind d; logarithms
    const FusedPairwiseParams& params;

    __device__ __forceinline__ void run() {
        loadQueries<Term>();
        const int warpsPerBlock = kFewQueriesScanThreads / 32;
        const idx_t warp = idx_t(blockIdx.x) * warpsPerBlock + threadIdx.x / 32;
        const idx_t step = idx_t(gridDim.x) * warpsPerBlock;
        const idx_t count = params.pairs.vectors.count;
        for (idx_t first = warp * kVectorsPerWarp; first < count;
             first += step * kVectorsPerWarp) {
            takeVectors(first + threadIdx.x % 32 / Lanes * kRows);
        }
    }

   private:
    __device__ __forceinline__ int paddedDim() const {
        return (params.pairs.d + kChunk - 1) / kChunk * kChunk;
    }

    template <class Step>
    __device__ __forceinline__ void loadQueries() {
        const int padded = paddedDim();
        const PairwiseParams& pairs = params.pairs;
        for (int i = threadIdx.x; i < Queries * padded;
             i += kFewQueriesScanThreads) {
            const int query = i / padded;
            const int c = i % padded;
            const float value = query < pairs.queries.count && c < pairs.d
                    ? loadComponent(pairs.queries, query, c)
                    : 0.0f;
            queries[i] = value;
            if constexpr (Step::kLogs) {
                queries[i + Queries * padded] = Step::logOf(value);
            }
        }
        __syncthreads();
    }

    /// The group's vectors from `own` on.
    __device__ __forceinline__ void takeVectors(idx_t own) {
        float held[kHeld];
        bool allFit = true;
        if constexpr (Term::kFacts) {
            allFit = __all_sync(0xFFFFFFFFu, heldAreFit(own));
        }
        if constexpr (Term::kUnfit == UnfitPairs::Second) {
            if (!allFit) {
                takeSecond(own);
                return;
            }
        }
        sumUp<Term>(own, held);
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
            const Pair pair = pairOf(own, i);
            if (!pair.exists) {
                continue;
            }
            float factV = 0;
            float factQ = 0;
            if constexpr (Term::kFacts) {
                factV = params.pairs.vectors.facts[pair.vector];
                factQ = params.pairs.queries.facts[pair.query];
            }
            if (factV >= 0 && factQ >= 0) {
                take(pair, Test::key(held[i], factV, factQ));
            }
        }
        // By itself: a call above would take the registers of its loop.
        if constexpr (Term::kUnfit == UnfitPairs::Canonical) {
            if (!allFit) {
                takeCanonical(own);
            }
        }
    }

    /// The pairs that are not fit: slow, for data that is rare.
    __device__ __forceinline__ void takeCanonical(idx_t own) const {
#pragma unroll 1
        for (int i = 0; i < kHeld; ++i) {
            const Pair pair = pairOf(own, i);
            if (pair.exists &&
                !(params.pairs.vectors.facts[pair.vector] >= 0 &&
                  params.pairs.queries.facts[pair.query] >= 0) &&
                canonicalPasses<Term>(params, pair.vector, pair.query)) {
                append(pair);
            }
        }
    }

    /// All pairs, by the arithmetic for those that are not fit, which is no
    /// coarser for the others.
    __device__ __forceinline__ void takeSecond(idx_t own) {
        float first[kHeld] = {};
        float second[kHeld];
        if constexpr (Term::kUnfitOfBoth) {
            sumUp<Term>(own, first);
        }
        sumUp<typename Term::Second>(own, second);
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
            const Pair pair = pairOf(own, i);
            if (pair.exists) {
                take(pair, Term::finishUnfit(first[i], second[i]));
            }
        }
    }

    // ---- sums ----

    /// A component of a query, as it is in memory, to what Step adds.
    template <class Step>
    __device__ __forceinline__ void readQuery(
            float (&y)[4],
            float (&logY)[4],
            int query,
            int c,
            int padded) const {
        const float* from = queries + query * padded + c;
        const float4 four = *reinterpret_cast<const float4*>(from);
        y[0] = Step::staged(four.x);
        y[1] = Step::staged(four.y);
        y[2] = Step::staged(four.z);
        y[3] = Step::staged(four.w);
        if constexpr (Step::kLogs) {
            const float4 logs =
                    *reinterpret_cast<const float4*>(from + Queries * padded);
            logY[0] = logs.x;
            logY[1] = logs.y;
            logY[2] = logs.z;
            logY[3] = logs.w;
        }
    }

    __device__ __forceinline__ void loadComponents(
            float (&x)[kRows][4],
            idx_t own,
            int c) const {
        const PairwiseRows& vectors = params.pairs.vectors;
        const int d = params.pairs.d;
        if (vectors.quads && vectors.type == DataType::Float32) {
            const float* from = static_cast<const float*>(vectors.data) +
                    own * vectors.rowStride + c;
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                float4 four = {};
                if (c < d && own + r < vectors.count) {
                    four = __ldg(reinterpret_cast<const float4*>(
                            from + r * vectors.rowStride));
                }
                x[r][0] = four.x;
                x[r][1] = four.y;
                x[r][2] = four.z;
                x[r][3] = four.w;
            }
            return;
        }
        RawQuad raw[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const bool exists = own + r < vectors.count;
            raw[r] = loadQuad(
                    vectors,
                    rowPointer(vectors, exists ? own + r : 0),
                    c,
                    exists ? d : 0);
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const float4 four = widenQuad(vectors, raw[r]);
            x[r][0] = four.x;
            x[r][1] = four.y;
            x[r][2] = four.z;
            x[r][3] = four.w;
        }
    }

    template <class Step>
    __device__ __forceinline__ void sumUp(idx_t own, float (&held)[kHeld])
            const {
        constexpr int kStep = Step::kStep;
        const int lane = threadIdx.x % Lanes;
        const int padded = paddedDim();
        float sums[kSums];
#pragma unroll
        for (int i = 0; i < kSums; ++i) {
            sums[i] = 0.0f;
        }
        for (int chunk = 0; chunk < padded; chunk += kChunk) {
            const int c = chunk + lane * 4;
            float x[kRows][4];
            float logX[Step::kLogs ? kRows : 1][4];
            loadComponents(x, own, c);
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    if constexpr (Step::kLogs) {
                        logX[r][j] = Step::logOf(x[r][j]);
                    }
                    x[r][j] = Step::staged(x[r][j]);
                }
            }
#pragma unroll
            for (int query = 0; query < Queries; ++query) {
                float y[4];
                float logY[4];
                readQuery<Step>(y, logY, query, c, padded);
#pragma unroll
                for (int r = 0; r < kRows; ++r) {
#pragma unroll
                    for (int j = 0; j < 4; j += kStep) {
                        float& sum = sums[query * kRows + r];
                        float ofX[kStep];
                        float ofY[kStep];
#pragma unroll
                        for (int s = 0; s < kStep; ++s) {
                            ofX[s] = x[r][j + s];
                            ofY[s] = y[j + s];
                        }
                        if constexpr (Step::kLogs) {
                            const float logs[1] = {logX[r][j]};
                            const float logsQ[1] = {logY[j]};
                            Step::add(sum, ofX, ofY, logs, logsQ);
                        } else {
                            Step::add(sum, ofX, ofY, params.pairs.power);
                        }
                    }
                }
            }
        }
        join<Step, kSums, Lanes / 2>(sums, lane);
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
            held[i] = sums[i];
        }
    }

    /// Adds up the sums over the lanes of a group. Each step hands half of the
    /// sums to the partner and takes the other half, so that it costs about
    /// one shuffle a sum and not log2(Lanes).
    template <class Step, int Count, int Distance>
    __device__ __forceinline__ static void join(float* sums, int lane) {
        if constexpr (Distance >= 1) {
            const bool upper = lane & Distance;
            if constexpr (Count > 1) {
                constexpr int kHalf = Count / 2;
#pragma unroll
                for (int i = 0; i < kHalf; ++i) {
                    const float keep = upper ? sums[i + kHalf] : sums[i];
                    const float give = upper ? sums[i] : sums[i + kHalf];
                    sums[i] = Step::join(
                            keep, __shfl_xor_sync(0xFFFFFFFFu, give, Distance));
                }
                join<Step, kHalf, Distance / 2>(sums, lane);
            } else {
                sums[0] = Step::join(
                        sums[0],
                        __shfl_xor_sync(0xFFFFFFFFu, sums[0], Distance));
                join<Step, 1, Distance / 2>(sums, lane);
            }
        }
    }

    // ---- results ----

    struct Pair {
        idx_t vector;
        int query;
        bool exists;
    };

    /// Whose sum the lane's number i is: the bits of the lane, highest first,
    /// chose the upper or lower half.
    __device__ __forceinline__ Pair pairOf(idx_t own, int i) const {
        static_assert(kSums >= Lanes);
        const int at = int(threadIdx.x % Lanes) * kHeld + i;
        const idx_t vector = own + at % kRows;
        const int query = at / kRows;
        return {vector,
                query,
                query < params.pairs.queries.count &&
                        vector < params.pairs.vectors.count};
    }

    __device__ __forceinline__ bool heldAreFit(idx_t own) const {
        bool fit = true;
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
            const Pair pair = pairOf(own, i);
            if (pair.exists) {
                fit = fit && params.pairs.vectors.facts[pair.vector] >= 0 &&
                        params.pairs.queries.facts[pair.query] >= 0;
            }
        }
        return fit;
    }

    __device__ __forceinline__ void take(const Pair& pair, float key) const {
        if (passesLimit(params, pair.query, key)) {
            append(pair);
        }
    }

    __device__ __forceinline__ void append(const Pair& pair) const {
        appendMask(params, pair.query, 1, [&](int) { return pair.vector; });
    }
};

/// sm_90, nvcc 13.0: up to 40 bytes are spilled where the metric has a second
/// sum.
template <class Term, int Lanes, int Queries>
__global__ void __launch_bounds__(kFewQueriesScanThreads, Queries >= 4 ? 2 : 3)
        fewQueriesScanKernel(
                const __grid_constant__ FusedPairwiseParams params) {
    extern __shared__ float4 sharedQueries[];
    allowNext();
    waitForPrevious();
    FewQueriesScanBody<Term, Lanes, Queries>{
            reinterpret_cast<float*>(sharedQueries), params}
            .run();
}

} // namespace faiss_bits

/// Sums of queries and vectors, component by component, by a metric that is no
/// matrix product: a matrix product's loops with another inner term.
///
/// A block takes Queries x Vectors sums, a thread PerQueries x PerVectors of
/// them. A step of `Depth` components of all its rows comes through shared
/// memory, in two buffers: while one is computed with, the next is on its way
/// in registers. A sum takes its components in their order, whatever the shape.
///
/// Bound by: the metric's instructions; 128 x 128 with 8 x 8 a thread loads 16
/// components from shared memory for 64 terms (L1, sm_90: 1071 instructions for
/// 512 terms of two, and about 100 to stage them). Few queries: the one read of
/// the vectors.
#pragma once

#include "kernels/knn/pairwise/PairwiseLayout.cuh"
#include "kernels/knn/pairwise/PairwiseParams.h"
#include "kernels/knn/pairwise/PairwiseStage.cuh"
#include "kernels/knn/pairwise/PairwiseTerms.cuh"

namespace faiss_bits {

template <class Term, class P>
struct PairwiseTile {
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
    PairwiseTile(SharedStorage& storage, const PairwiseParams& p)
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

    template <class Step>
    __device__ __forceinline__ void sumUp(float (&sums)[kPerQ][kPerV]) {
        setZero(sums);
        eachStep<Step>(
                [&](int buffer, int k) { addStep<Step>(sums, buffer, k); });
    }

    /// Of half of the thread's queries, from number `half` kPerQ / 2 on, the
    /// sums of two terms: those of First, and kPerQ / 2 further on of Second.
    template <class First, class Second>
    __device__ __forceinline__ void sumUpBoth(
            float (&sums)[kPerQ][kPerV],
            int half) {
        static_assert(First::kStep == Second::kStep && !First::kLogs);
        setZero(sums);
        eachStep<First>([&](int buffer, int k) {
            addBoth<First, Second>(sums, buffer, k, half);
        });
    }

   private:
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
            values.values[buffer][c + j][row] = Step::staged(v[j]);
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

    /// The next components of half of the queries, to sums of two terms.
    template <class First, class Second>
    __device__ __forceinline__ void addBoth(
            float (&sums)[kPerQ][kPerV],
            int buffer,
            int k,
            int half) const {
        constexpr int kHalf = kPerQ / 2;
        constexpr int kStep = First::kStep;
        float x[kPerV][kStep];
        float q[kPerQ][kStep];
#pragma unroll
        for (int s = 0; s < kStep; ++s) {
            Layout::pickV(x, s, shared.x.values[buffer][k + s]);
            Layout::pickQ(q, s, shared.q.values[buffer][k + s]);
        }
#pragma unroll
        for (int i = 0; i < kHalf; ++i) {
            float one[kStep];
#pragma unroll
            for (int s = 0; s < kStep; ++s) {
                one[s] = half ? q[i + kHalf][s] : q[i][s];
            }
#pragma unroll
            for (int j = 0; j < kPerV; ++j) {
                First::add(sums[i][j], x[j], one, params.power);
                Second::add(sums[i + kHalf][j], x[j], one, params.power);
            }
        }
    }

    __device__ __forceinline__ static void setZero(
            float (&sums)[kPerQ][kPerV]) {
#pragma unroll
        for (int i = 0; i < kPerQ; ++i) {
#pragma unroll
            for (int j = 0; j < kPerV; ++j) {
                sums[i][j] = 0.0f;
            }
        }
    }

    /// add(buffer, k) for every step of components, in their order; they lie
    /// from k on in the buffer.
    template <class Step, class Add>
    __device__ __forceinline__ void eachStep(Add add) {
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
                    add(buffer, k);
                }
            } else {
#pragma unroll 1
                for (int k = 0; k < left; k += Step::kStep) {
                    add(buffer, k);
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
};

} // namespace faiss_bits

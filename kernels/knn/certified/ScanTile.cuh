/// A tile of canonical distances: some queries against some vectors, by one
/// block, in registers.
///
/// Bound by: float64, three operations a component and pair for L2 (a
/// multiply-add would round once instead of twice).
#pragma once

#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits {

template <Metric kMetric>
struct ScanTile {
    using Terms = canonical::Terms<kMetric>;
    static constexpr int kThreads = 256;
    /// Pairs of a thread, each way; every pair has eight slots of each sum.
    static constexpr int kPairs = Terms::kSums == 1 ? 2 : 1;
    // A warp has 4 x 8 lanes, a block 2 x 4 warps.
    static constexpr int kQueries = 8 * kPairs;
    static constexpr int kVectors = 32 * kPairs;
    static constexpr int kDepth = 32; // components at a time
    static_assert(kDepth % canonical::kSlots == 0);

    struct SharedStorage {
        // One column more: rows begin in different banks.
        double vectors[kDepth][kVectors + 1];
        double queries[kDepth][kQueries + 1];
    };

    SharedStorage& shared;
    const CertifiedParams& params;

    /// visit(query, vector, distance) for the pairs of this thread: numbers
    /// within the tile. rowOf(query) is the row of a query, or -1. All threads
    /// of the block call it. `first` is the first vector, `last` the end.
    template <class RowOf, class Visit>
    __device__ __forceinline__ void run(
            int64_t first,
            int64_t last,
            const RowOf& rowOf,
            const Visit& visit) {
        double sums[kPairs][kPairs][Terms::kSums][canonical::kSlots] = {};
        for (int depth = 0; depth < params.d; depth += kDepth) {
            __syncthreads();
            load(depth, first, last, rowOf);
            __syncthreads();
            for (int c = 0; c < kDepth; c += canonical::kSlots) {
#pragma unroll
                for (int slot = 0; slot < canonical::kSlots; ++slot) {
                    addComponent(c + slot, slot, sums);
                }
            }
        }
#pragma unroll
        for (int a = 0; a < kPairs; ++a) {
#pragma unroll
            for (int b = 0; b < kPairs; ++b) {
                visit(queryOf(a),
                      vectorOf(b),
                      canonical::joinSlots<Terms>(sums[a][b]));
            }
        }
    }

   private:
    __device__ __forceinline__ static int queryOf(int a) {
        const int warp = threadIdx.x / kWarpSize;
        return warp / 4 * (4 * kPairs) + threadIdx.x % kWarpSize / 8 + 4 * a;
    }
    __device__ __forceinline__ static int vectorOf(int b) {
        const int warp = threadIdx.x / kWarpSize;
        return warp % 4 * (8 * kPairs) + threadIdx.x % 8 + 8 * b;
    }

    __device__ __forceinline__ void addComponent(
            int c,
            int slot,
            double (&sums)[kPairs][kPairs][Terms::kSums][canonical::kSlots]) {
        double x[kPairs];
        double q[kPairs];
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
            x[i] = shared.vectors[c][vectorOf(i)];
            q[i] = shared.queries[c][queryOf(i)];
        }
#pragma unroll
        for (int a = 0; a < kPairs; ++a) {
#pragma unroll
            for (int b = 0; b < kPairs; ++b) {
                double one[Terms::kSums];
#pragma unroll
                for (int j = 0; j < Terms::kSums; ++j) {
                    one[j] = sums[a][b][j][slot];
                }
                Terms::add(one, x[b], q[a], params.power);
#pragma unroll
                for (int j = 0; j < Terms::kSums; ++j) {
                    sums[a][b][j][slot] = one[j];
                }
            }
        }
    }

    /// Components depth and on; zeros behind d, which no sum notices.
    template <class RowOf>
    __device__ __forceinline__ void load(
            int depth,
            int64_t first,
            int64_t last,
            const RowOf& rowOf) {
        withVectors(params.vectors, [&](const auto* data) {
            const bool rowMajor = params.vectors.columnStride == 1;
            for (int i = threadIdx.x; i < kDepth * kVectors; i += kThreads) {
                // Neighbours in memory go to neighbouring threads.
                const int c = rowMajor ? i % kDepth : i / kVectors;
                const int v = rowMajor ? i / kDepth : i % kVectors;
                const bool exists = depth + c < params.d && first + v < last;
                const int64_t at = (first + v) * params.vectors.rowStride +
                        (depth + c) * params.vectors.columnStride;
                shared.vectors[c][v] = exists ? double(toFloat(data[at])) : 0.0;
            }
        });
        for (int i = threadIdx.x; i < kDepth * kQueries; i += kThreads) {
            const int c = i % kDepth;
            const int64_t row = rowOf(i / kDepth);
            const bool exists = depth + c < params.d && row >= 0;
            shared.queries[c][i / kDepth] = exists
                    ? double(params.queries[row * params.d + depth + c])
                    : 0.0;
        }
    }
};

} // namespace faiss_bits

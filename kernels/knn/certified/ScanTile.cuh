/// A tile of distances in float64: some queries against some vectors, by one
/// block, in registers.
///
/// A warp has one of the eight slots of the sums: it takes every eighth
/// component, of a tile of pairs so large that reading shared memory is little
/// beside the arithmetic. At the end the slots of a pair meet in shared memory.
/// While a step of components is computed with, the next is on its way in
/// registers.
///
/// Bound by: float64, two operations a component and pair for L2 (ScanTerms).
#pragma once

#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits {

/// The terms of canonical distances, or of distances that nearly are:
/// relativeError(d) says how near, and 0 that they are.
template <Metric kMetric>
struct ScanTerms : canonical::Terms<kMetric> {
    static constexpr bool kExact = true;
};

/// A fused operation in place of two: the square is not rounded. Each of the
/// d / 8 + 3 sums and, of the canonical distance, the squares is rounded by
/// 2^-53 at most, in one of the two and in the other.
template <>
struct ScanTerms<Metric::L2> : canonical::Terms<Metric::L2> {
    static constexpr bool kExact = false;

    __device__ __forceinline__ static void add(
            double* s,
            double x,
            double q,
            const canonical::Power&) {
        const double t = __dsub_rn(x, q);
        s[0] = __fma_rn(t, t, s[0]);
    }
    __device__ __forceinline__ static double relativeError(int d) {
        return (0.25 * d + 16) * 0x1p-53;
    }
};

template <Metric kMetric>
struct ScanTile {
    using Terms = ScanTerms<kMetric>;
    static constexpr int kSums = Terms::kSums;
    static constexpr int kSlots = canonical::kSlots;
    static constexpr int kThreads = kSlots * kWarpSize;
    static constexpr int kWarps = kThreads / kWarpSize;
    // Of a warp, 4 lanes along the queries and 8 along the vectors.
    static constexpr int kQueryLanes = 4;
    static constexpr int kVectorLanes = 8;
    // Pairs of a lane, each way, in twos that lie side by side.
    static constexpr int kQueriesOfLane = kSums == 1 ? 8 : 4;
    static constexpr int kVectorsOfLane = kSums <= 2 ? 4 : 2;
    static constexpr int kQueries = kQueryLanes * kQueriesOfLane;
    static constexpr int kVectors = kVectorLanes * kVectorsOfLane;
    static constexpr int kRows = kQueries + kVectors;
    static constexpr int kDepth = kWarpSize; // components at a time
    // Pairs that meet at a time: at most one a thread, as memory allows.
    static constexpr int kMeeting = kSums <= 2 ? kThreads : kThreads / 2;
    static constexpr int kQueriesMeeting = kMeeting / kVectors;
    static constexpr int kLaneQueriesMeeting = kQueriesMeeting / kQueryLanes;
    static_assert(kLaneQueriesMeeting * kQueryLanes * kVectors == kMeeting);
    static_assert(kLaneQueriesMeeting % 2 == 0);
    static_assert(kVectors % kWarps == 0 && kQueries % kWarps == 0);

    struct SharedStorage {
        union {
            // Of a component: vectors, then queries. Two more columns: even
            // places are aligned, and rows begin in different banks.
            alignas(16) double components[2][kDepth][kRows + 2];
            double slots[kSums][kSlots][kMeeting];
        };
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
        double sums[kQueriesOfLane][kVectorsOfLane][kSums] = {};
        float next[kRows / kWarps];
        fetch(0, first, last, rowOf, next);
        __syncthreads();
        store(0, next);
        __syncthreads();
        const int steps = (params.d + kDepth - 1) / kDepth;
        for (int step = 0; step < steps; ++step) {
            if (step + 1 < steps) {
                fetch((step + 1) * kDepth, first, last, rowOf, next);
            }
            // Those behind the last are zeros, which no sum notices.
#pragma unroll
            for (int c = 0; c < kDepth; c += kSlots) {
                if (step * kDepth + c < params.d) {
                    addComponent(step % 2, c + threadIdx.x / kWarpSize, sums);
                }
            }
            if (step + 1 < steps) {
                store((step + 1) % 2, next);
            }
            __syncthreads();
        }
        meet(sums, visit);
    }

   private:
    using Sums = double[kQueriesOfLane][kVectorsOfLane][kSums];

    __device__ __forceinline__ static int query(int a) {
        const int lane = threadIdx.x % kWarpSize / kVectorLanes;
        return (a / 2 * kQueryLanes + lane) * 2 + a % 2;
    }
    __device__ __forceinline__ static int vector(int b) {
        const int lane = threadIdx.x % kVectorLanes;
        return (b / 2 * kVectorLanes + lane) * 2 + b % 2;
    }

    __device__ __forceinline__ void addComponent(
            int buffer,
            int c,
            Sums& sums) {
        const double* row = shared.components[buffer][c];
        double x[kVectorsOfLane];
        double q[kQueriesOfLane];
#pragma unroll
        for (int b = 0; b < kVectorsOfLane; b += 2) {
            reinterpret_cast<double2&>(x[b]) =
                    reinterpret_cast<const double2&>(row[vector(b)]);
        }
#pragma unroll
        for (int a = 0; a < kQueriesOfLane; a += 2) {
            reinterpret_cast<double2&>(q[a]) =
                    reinterpret_cast<const double2&>(row[kVectors + query(a)]);
        }
#pragma unroll
        for (int a = 0; a < kQueriesOfLane; ++a) {
#pragma unroll
            for (int b = 0; b < kVectorsOfLane; ++b) {
                Terms::add(sums[a][b], x[b], q[a], params.power);
            }
        }
    }

    template <class Visit>
    __device__ __forceinline__ void meet(const Sums& sums, const Visit& visit) {
        const int slot = threadIdx.x / kWarpSize;
#pragma unroll
        for (int begin = 0; begin < kQueriesOfLane;
             begin += kLaneQueriesMeeting) {
            __syncthreads();
#pragma unroll
            for (int a = 0; a < kLaneQueriesMeeting; ++a) {
#pragma unroll
                for (int b = 0; b < kVectorsOfLane; ++b) {
                    const int pair = query(a) * kVectors + vector(b);
#pragma unroll
                    for (int j = 0; j < kSums; ++j) {
                        shared.slots[j][slot][pair] = sums[begin + a][b][j];
                    }
                }
            }
            __syncthreads();
            if (threadIdx.x >= kMeeting) {
                continue;
            }
            double joined[kSums][kSlots];
#pragma unroll
            for (int j = 0; j < kSums; ++j) {
#pragma unroll
                for (int s = 0; s < kSlots; ++s) {
                    joined[j][s] = shared.slots[j][s][threadIdx.x];
                }
            }
            visit(begin * kQueryLanes + threadIdx.x / kVectors,
                  threadIdx.x % kVectors,
                  canonical::joinSlots<Terms>(joined));
        }
    }

    /// Components depth and on, to registers: as store() takes them.
    template <class RowOf>
    __device__ __forceinline__ void fetch(
            int depth,
            int64_t first,
            int64_t last,
            const RowOf& rowOf,
            float (&next)[kRows / kWarps]) {
        const int warp = threadIdx.x / kWarpSize;
        const int c = depth + threadIdx.x % kWarpSize;
        const VectorsParams& vectors = params.vectors;
        withVectors(vectors, [&](const auto* data) {
#pragma unroll
            for (int i = 0; i < kVectors / kWarps; ++i) {
                const int64_t vector = first + warp + i * kWarps;
                next[i] = c < params.d && vector < last
                        ? toFloat(
                                  data[vector * vectors.rowStride +
                                       c * vectors.columnStride])
                        : 0.0f;
            }
        });
#pragma unroll
        for (int i = kVectors / kWarps; i < kRows / kWarps; ++i) {
            const int64_t row = rowOf(warp + i * kWarps - kVectors);
            next[i] = c < params.d && row >= 0
                    ? params.queries[row * params.d + c]
                    : 0.0f;
        }
    }

    __device__ __forceinline__ void store(
            int buffer,
            const float (&next)[kRows / kWarps]) {
        double* row = shared.components[buffer][threadIdx.x % kWarpSize];
#pragma unroll
        for (int i = 0; i < kRows / kWarps; ++i) {
            row[threadIdx.x / kWarpSize + i * kWarps] = double(next[i]);
        }
    }
};

} // namespace faiss_bits

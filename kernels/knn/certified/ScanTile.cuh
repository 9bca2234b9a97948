/// A tile of canonical distances: some queries against some vectors, by one
/// block, in registers.
///
/// A warp has one of the eight slots of the sums: it takes every eighth
/// component, of a tile of pairs so large that reading shared memory is little
/// beside the arithmetic. At the end the slots of a pair meet in shared memory.
///
/// Bound by: float64, three operations a component and pair for L2 (a
/// multiply-add would round once instead of twice).
#pragma once

#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits {

template <Metric kMetric>
struct ScanTile {
    using Terms = canonical::Terms<kMetric>;
    static constexpr int kSums = Terms::kSums;
    static constexpr int kSlots = canonical::kSlots;
    static constexpr int kThreads = kSlots * kWarpSize;
    // Of a warp, 4 lanes along the queries and 8 along the vectors.
    static constexpr int kQueryLanes = 4;
    static constexpr int kVectorLanes = 8;
    // Pairs of a lane, each way.
    // Few enough that the compiler has registers to overlap operations with.
    static constexpr int kQueriesOfLane = 4;
    static constexpr int kVectorsOfLane = kSums == 1 ? 4 : 2;
    static constexpr int kQueries = kQueryLanes * kQueriesOfLane;
    static constexpr int kVectors = kVectorLanes * kVectorsOfLane;
    static constexpr int kDepth = 64; // components at a time
    // Pairs that meet at a time: at most one a thread, as memory allows.
    static constexpr int kMeeting = kSums <= 2 ? kThreads : kThreads / 2;
    static constexpr int kQueriesMeeting = kMeeting / kVectors;
    static constexpr int kLaneQueriesMeeting = kQueriesMeeting / kQueryLanes;
    static_assert(kDepth % kSlots == 0);
    static_assert(kLaneQueriesMeeting * kQueryLanes * kVectors == kMeeting);

    struct SharedStorage {
        union {
            struct {
                // One column more: rows begin in different banks.
                double vectors[kDepth][kVectors + 1];
                double queries[kDepth][kQueries + 1];
            };
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
        const int slot = threadIdx.x / kWarpSize;
        for (int depth = 0; depth < params.d; depth += kDepth) {
            __syncthreads();
            load(depth, first, last, rowOf);
            __syncthreads();
            const int end = min(kDepth, params.d - depth);
            for (int c = slot; c < end; c += kSlots) {
                addComponent(c, sums);
            }
        }
        meet(sums, visit);
    }

   private:
    using Sums = double[kQueriesOfLane][kVectorsOfLane][kSums];

    __device__ __forceinline__ static int queryLane() {
        return threadIdx.x % kWarpSize / kVectorLanes;
    }
    __device__ __forceinline__ static int vectorLane() {
        return threadIdx.x % kVectorLanes;
    }

    __device__ __forceinline__ void addComponent(int c, Sums& sums) {
        double x[kVectorsOfLane];
        double q[kQueriesOfLane];
#pragma unroll
        for (int b = 0; b < kVectorsOfLane; ++b) {
            x[b] = shared.vectors[c][vectorLane() + b * kVectorLanes];
        }
#pragma unroll
        for (int a = 0; a < kQueriesOfLane; ++a) {
            q[a] = shared.queries[c][queryLane() + a * kQueryLanes];
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
                    const int pair =
                            (queryLane() + a * kQueryLanes) * kVectors +
                            vectorLane() + b * kVectorLanes;
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

    /// Components depth and on. All loads are in flight together.
    template <class RowOf>
    __device__ __forceinline__ void load(
            int depth,
            int64_t first,
            int64_t last,
            const RowOf& rowOf) {
        const int lane = threadIdx.x % kWarpSize;
        const int warp = threadIdx.x / kWarpSize;
        constexpr int kWarps = kThreads / kWarpSize;
        const int width = min(kDepth, params.d - depth);
        if (params.vectors.columnStride == 1) {
            // A warp reads components of one vector.
            for (int begin = 0; begin < width; begin += kWarpSize) {
                const int c = begin + lane;
                withVectors(params.vectors, [&](const auto* data) {
                    float x[kVectors / kWarps];
#pragma unroll
                    for (int i = 0; i < kVectors / kWarps; ++i) {
                        const int64_t vector = first + warp + i * kWarps;
                        x[i] = c < width && vector < last
                                ? toFloat(
                                          data[vector *
                                                       params.vectors
                                                               .rowStride +
                                               depth + c])
                                : 0.0f;
                    }
#pragma unroll
                    for (int i = 0; i < kVectors / kWarps; ++i) {
                        shared.vectors[c][warp + i * kWarps] = double(x[i]);
                    }
                });
            }
        } else {
            withVectors(params.vectors, [&](const auto* data) {
                for (int i = threadIdx.x; i < width * kVectors; i += kThreads) {
                    const int c = i / kVectors;
                    const int64_t vector = first + i % kVectors;
                    shared.vectors[c][i % kVectors] = vector < last
                            ? double(toFloat(
                                      data[vector * params.vectors.rowStride +
                                           (depth +
                                            c) * params.vectors.columnStride]))
                            : 0.0;
                }
            });
        }
        for (int begin = 0; begin < width; begin += kWarpSize) {
            const int c = begin + lane;
            float q[kQueries / kWarps];
#pragma unroll
            for (int i = 0; i < kQueries / kWarps; ++i) {
                const int64_t row = rowOf(warp + i * kWarps);
                q[i] = c < width && row >= 0
                        ? params.queries[row * params.d + depth + c]
                        : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < kQueries / kWarps; ++i) {
                shared.queries[c][warp + i * kWarps] = double(q[i]);
            }
        }
    }
};

} // namespace faiss_bits

/// A tile of canonical distances: some queries against some vectors, by one
/// block, in registers.
///
/// Eight lanes side by side hold the eight slots of the sums: a lane takes
/// every eighth component, of a tile of pairs so large that reading shared
/// memory is little beside the arithmetic. At the end the slots of a pair meet
/// by shuffles. While a step of components is computed with, the next is on its
/// way in registers, over the end of a tile too.
///
/// Bound by: float64, of L1 two operations a component and pair.
#pragma once

#include "kernels/knn/certified/HeldComponent.cuh"

namespace faiss_bits {

/// Vectors: where they are found (TileVectors.cuh).
template <Metric kMetric, class Vectors = MatrixOfVectors>
struct ScanTile {
    using Params = typename Vectors::Params;
    using Terms = canonical::Terms<kMetric>;
    static constexpr int kSums = Terms::kSums;
    static constexpr int kSlots = canonical::kSlots;
    static constexpr int kThreads = 256;
    static constexpr int kWarps = kThreads / kWarpSize;
    // Pairs of a lane, each way: the more, the less shared memory is read for
    // each. Products and squares leave the registers for it.
    static constexpr bool kIsLarge =
            kMetric == Metric::L2 || kMetric == Metric::InnerProduct;
    static constexpr int kQueriesOfLane = kIsLarge ? 8 : kSums <= 2 ? 4 : 2;
    static constexpr int kVectorsOfLane = kSums == 1 ? 8 : 4;
    /// Blocks of a multiprocessor.
    static constexpr int kBlocks = kIsLarge ? 1 : 2;
    static constexpr int kPairs = kQueriesOfLane * kVectorsOfLane;
    // Of a warp two groups of lanes each way, of a block 4 x 2 warps.
    static constexpr int kQueries = 8 * kQueriesOfLane;
    static constexpr int kVectors = 4 * kVectorsOfLane;
    static constexpr int kRows = kQueries + kVectors;
    static constexpr int kDepth = kWarpSize;      // components at a time
    static constexpr int kHeld = kPairs / kSlots; // of a lane, at the end
    static_assert(kVectors % kWarps == 0 && kQueries % kWarps == 0);
    static_assert(kHeld * kSlots == kPairs);
    static_assert(kVectorsOfLane % kHeld == 0); // those of a lane: one query's

    struct SharedStorage {
        // Vectors, then queries. One component more: the groups of lanes that
        // read two rows of vectors find them in different banks.
        double components[2][kRows][kDepth + 1];
    };

    SharedStorage& shared;
    const Params& params;
    uint32_t next[kRows / kWarps]; // HeldComponent; of queries, numbers

    __device__ __forceinline__
    ScanTile(SharedStorage& storage, const Params& parameters)
            : shared(storage), params(parameters) {}

    /// Before the first tile.
    __device__ __forceinline__ void begin(const TilePlace& place) {
        fetch(place, 0);
    }

    /// visit(query, vector, distances, mask) for some pairs of this thread, of
    /// a query and vectors side by side, as numbers within the tile: those that
    /// there are, and of which concerns(query, vector, key) is true, have a
    /// bit. All threads of the block call it. `after` is the place of the tile
    /// that comes next, or any.
    template <class Concerns, class Visit>
    __device__ __forceinline__ void run(
            const TilePlace& place,
            const TilePlace& after,
            const Concerns& concerns,
            const Visit& visit) {
        double sums[kSums][kPairs] = {};
        __syncthreads();
        store(0);
        __syncthreads();
        const int steps = (params.d + kDepth - 1) / kDepth;
        for (int step = 0; step < steps; ++step) {
            const bool isLast = step + 1 == steps;
            isLast ? fetch(after, 0) : fetch(place, (step + 1) * kDepth);
            // Those behind the last are zeros, which no sum notices.
#pragma unroll
            for (int c = 0; c < kDepth; c += kSlots) {
                if (step * kDepth + c < params.d) {
                    addComponent(step % 2, c + slot(), sums);
                }
            }
            if (!isLast) {
                store((step + 1) % 2);
                __syncthreads();
            }
        }
#pragma unroll
        for (int j = 0; j < kSums; ++j) {
            meet<kPairs, kSlots / 2>(sums[j]);
        }
        const int q = query(firstHeld() / kVectorsOfLane);
        const int v = vector(firstHeld() % kVectorsOfLane);
        float distances[kHeld];
        uint32_t mask = 0;
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
            double joined[kSums];
#pragma unroll
            for (int j = 0; j < kSums; ++j) {
                joined[j] = sums[j][i];
            }
            distances[i] = canonical::toFloat32(Terms::finish(joined));
            if (q < int(place.numRows) && place.first + v + i < place.last &&
                concerns(
                        q,
                        v + i,
                        kIsSimilarity<kMetric> ? -distances[i]
                                               : distances[i])) {
                mask |= 1u << i;
            }
        }
        if (mask != 0) {
            visit(q, v, distances, mask);
        }
    }

   private:
    __device__ __forceinline__ static int slot() {
        return threadIdx.x % kSlots;
    }
    __device__ __forceinline__ static int query(int a) {
        const int group = threadIdx.x / kWarpSize / 2 * 2 +
                threadIdx.x % kWarpSize / kSlots / 2;
        return group * kQueriesOfLane + a;
    }
    __device__ __forceinline__ static int vector(int b) {
        const int group = threadIdx.x / kWarpSize % 2 * 2 +
                threadIdx.x % kWarpSize / kSlots % 2;
        return group * kVectorsOfLane + b;
    }

    __device__ __forceinline__ void addComponent(
            int buffer,
            int c,
            double (&sums)[kSums][kPairs]) {
        const auto& rows = shared.components[buffer];
        double x[kVectorsOfLane];
        double q[kQueriesOfLane];
#pragma unroll
        for (int b = 0; b < kVectorsOfLane; ++b) {
            x[b] = rows[vector(b)][c];
        }
#pragma unroll
        for (int a = 0; a < kQueriesOfLane; ++a) {
            q[a] = rows[kVectors + query(a)][c];
        }
#pragma unroll
        for (int a = 0; a < kQueriesOfLane; ++a) {
#pragma unroll
            for (int b = 0; b < kVectorsOfLane; ++b) {
                double pair[kSums];
#pragma unroll
                for (int j = 0; j < kSums; ++j) {
                    pair[j] = sums[j][a * kVectorsOfLane + b];
                }
                Terms::add(pair, x[b], q[a], params.power);
#pragma unroll
                for (int j = 0; j < kSums; ++j) {
                    sums[j][a * kVectorsOfLane + b] = pair[j];
                }
            }
        }
    }

    /// Joins slots 0 and 4, then 2 and 6 to them, then the odd ones. Each step
    /// hands half of the pairs to the partner and takes the other half.
    template <int Count, int Distance>
    __device__ __forceinline__ static void meet(double* sums) {
        if constexpr (Distance >= 1) {
            constexpr int kHalf = Count / 2;
            const bool upper = slot() & Distance;
#pragma unroll
            for (int i = 0; i < kHalf; ++i) {
                const double keep = upper ? sums[i + kHalf] : sums[i];
                const double give = upper ? sums[i] : sums[i + kHalf];
                sums[i] = Terms::join(
                        keep, __shfl_xor_sync(kFullWarp, give, Distance));
            }
            meet<kHalf, Distance / 2>(sums);
        }
    }

    /// Of the pairs that this lane holds after meet().
    __device__ __forceinline__ static int firstHeld() {
        const int s = slot();
        return (s & 4 ? kPairs / 2 : 0) + (s & 2 ? kPairs / 4 : 0) +
                (s & 1 ? kPairs / 8 : 0);
    }

    /// Components depth and on of this thread's rows, as store() takes them.
    __device__ __forceinline__ void fetch(const TilePlace& place, int depth) {
        const int warp = threadIdx.x / kWarpSize;
        const int c = depth + threadIdx.x % kWarpSize;
        Vectors::with(params, [&](const auto& vectors) {
            using Held = HeldComponent<std::remove_cvref_t<decltype(vectors)>>;
            const auto column = vectors.column(place, c);
#pragma unroll
            for (int i = 0; i < kVectors / kWarps; ++i) {
                const int64_t vector = warp + i * kWarps;
                next[i] = c < params.d && place.first + vector < place.last
                        ? Held::at(column, vector)
                        : 0;
            }
        });
#pragma unroll
        for (int i = kVectors / kWarps; i < kRows / kWarps; ++i) {
            const uint32_t q = warp + i * kWarps - kVectors;
            next[i] = c < params.d && q < place.numRows
                    ? heldBits(params.queries[place.row(q) * params.d + c])
                    : 0;
        }
    }

    __device__ __forceinline__ void store(int buffer) {
        const auto put = [&](int i, float component) {
            shared.components[buffer][threadIdx.x / kWarpSize + i * kWarps]
                             [threadIdx.x % kWarpSize] = double(component);
        };
        Vectors::with(params, [&](const auto& vectors) {
            using Held = HeldComponent<std::remove_cvref_t<decltype(vectors)>>;
#pragma unroll
            for (int i = 0; i < kVectors / kWarps; ++i) {
                put(i, Held::numberOf(next[i]));
            }
        });
#pragma unroll
        for (int i = kVectors / kWarps; i < kRows / kWarps; ++i) {
            put(i, heldNumber<float>(next[i]));
        }
    }
};

} // namespace faiss_bits

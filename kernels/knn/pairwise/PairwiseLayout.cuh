/// Who of a block's threads does what: the rows that a thread sums up, the
/// components that it brings, and where these lie in shared memory.
#pragma once

namespace faiss_bits {

constexpr int kPairwiseThreads = 256;

/// A type, as nvcc 13.0 cannot launch kernels whose arguments are structs.
template <
        int Queries,
        int Vectors,
        int PerQueries, // of a thread: a multiple of 4, or less than 4
        int PerVectors,
        int Depth, // components of a step: a multiple of 4
        int MinBlocks>
struct PairwisePolicy {
    static constexpr int queries = Queries;
    static constexpr int vectors = Vectors;
    static constexpr int perQueries = PerQueries;
    static constexpr int perVectors = PerVectors;
    static constexpr int depth = Depth;
    static constexpr int minBlocks = MinBlocks;
};

template <class P>
struct PairwiseLayout {
    static constexpr int kPerQ = P::perQueries;
    static constexpr int kPerV = P::perVectors;
    static constexpr int kThreadsV = P::vectors / kPerV;
    static constexpr int kThreadsQ = P::queries / kPerQ;
    static_assert(kThreadsV * kThreadsQ == kPairwiseThreads);
    // Neighbours in memory that a thread has; the next are a round further.
    static constexpr int kGroupV = kPerV < 4 ? kPerV : 4;
    static constexpr int kGroupQ = kPerQ < 4 ? kPerQ : 4;
    static constexpr int kQuads = P::depth / 4;
    static constexpr int kItemsV =
            (P::vectors * kQuads + kPairwiseThreads - 1) / kPairwiseThreads;
    static constexpr int kItemsQ =
            (P::queries * kQuads + kPairwiseThreads - 1) / kPairwiseThreads;
    // A pad of 4 keeps rows aligned, and spreads the banks that a warp's
    // components go to.
    template <int Rows>
    struct alignas(16) Stage {
        float values[2][P::depth][Rows + 4];
    };
    /// Number i of the quads of components that this thread brings: row
    /// item(i) / kQuads, components from item(i) % kQuads * 4 on.
    __device__ __forceinline__ static int item(int i) {
        return threadIdx.x + i * kPairwiseThreads;
    }

    __device__ __forceinline__ static int threadV() {
        return threadIdx.x % kThreadsV;
    }
    __device__ __forceinline__ static int threadQ() {
        return threadIdx.x / kThreadsV;
    }
    /// Row of the block that is this thread's number i.
    __device__ __forceinline__ static int rowV(int i) {
        return i / kGroupV * (kThreadsV * kGroupV) + threadV() * kGroupV +
                i % kGroupV;
    }
    __device__ __forceinline__ static int rowQ(int i) {
        return i / kGroupQ * (kThreadsQ * kGroupQ) + threadQ() * kGroupQ +
                i % kGroupQ;
    }

    /// `Per` of a row of shared memory: groups of `Group`, `Round` apart.
    template <int Per, int Group, int Round, int Step>
    __device__ __forceinline__ static void pick(
            float (&out)[Per][Step],
            int step,
            const float* row,
            int thread) {
#pragma unroll
        for (int g = 0; g < Per / Group; ++g) {
            const float* from = row + g * Round + thread * Group;
            if constexpr (Group == 4) {
                const float4 four = *reinterpret_cast<const float4*>(from);
                out[g * 4][step] = four.x;
                out[g * 4 + 1][step] = four.y;
                out[g * 4 + 2][step] = four.z;
                out[g * 4 + 3][step] = four.w;
            } else {
#pragma unroll
                for (int i = 0; i < Group; ++i) {
                    out[g * Group + i][step] = from[i];
                }
            }
        }
    }

    template <int Step>
    __device__ __forceinline__ static void pickV(
            float (&out)[kPerV][Step],
            int step,
            const float* row) {
        pick<kPerV, kGroupV, kThreadsV * kGroupV>(out, step, row, threadV());
    }
    template <int Step>
    __device__ __forceinline__ static void pickQ(
            float (&out)[kPerQ][Step],
            int step,
            const float* row) {
        pick<kPerQ, kGroupQ, kThreadsQ * kGroupQ>(out, step, row, threadQ());
    }
};

} // namespace faiss_bits

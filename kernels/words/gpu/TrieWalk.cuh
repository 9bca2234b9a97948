#pragma once

#include "kernels/words/gpu/FoundBuffer.cuh"
#include "kernels/words/gpu/WordLaunch.h"

namespace faiss_bits::words {

/// A column of the matrix of edit distances of a lane's query: bit i of
/// errors[e] says that the first i letters of the query are at most e edits
/// from the letters of the trie so far (kernels/words/cpu/TrieWalk-inl.h).
template <class T, int Errors>
struct WalkColumn {
    T errors[Errors + 1];

    __device__ void setFirst() {
#pragma unroll
        for (int e = 0; e <= Errors; ++e) {
            errors[e] = T((T(2) << e) - 1);
        }
    }

    __device__ void step(T same) {
        T before = errors[0];
        errors[0] = (before << 1) & same;
#pragma unroll
        for (int e = 1; e <= Errors; ++e) {
            const T old = errors[e];
            errors[e] = ((old << 1) & same) | before |
                    ((before | errors[e - 1]) << 1);
            before = old;
        }
    }

    /// Errors of the bit that `last` has, which errors[Errors] has.
    __device__ uint32_t distance(T last) const {
        uint32_t value = 0;
#pragma unroll
        for (int e = 0; e < Errors; ++e) {
            value += (errors[e] & last) == 0;
        }
        return value;
    }
};

/// Which letters of the lanes' queries are a letter of the trie.
template <class T, bool HasTable>
class SameLetters {
   public:
    /// Elements of shared memory.
    __host__ __device__ static size_t bytes(uint32_t numLetters) {
        return HasTable ? sizeof(T) * numLetters * 32
                        : sizeof(uint32_t) * 8 * sizeof(T) * 32;
    }

    /// By the whole block, which waits before and behind.
    __device__ SameLetters(
            void* memory,
            const FoundParams& params,
            const uint32_t* query,
            uint32_t length)
            : memory_(memory) {
        const uint32_t lane = threadIdx.x % 32;
        if constexpr (HasTable) {
            auto* table = static_cast<T*>(memory);
            for (uint32_t i = threadIdx.x; i < params.numLetters * 32;
                 i += blockDim.x) {
                table[i] = 0;
            }
            __syncthreads();
            if (threadIdx.x < 32) {
                for (uint32_t i = 0; i < length; ++i) {
                    if (query[i] < params.numLetters) {
                        table[query[i] * 32 + lane] |= T(2) << i;
                    }
                }
            }
        } else {
            auto* letters = static_cast<uint32_t*>(memory);
            if (threadIdx.x < 32) {
                for (uint32_t i = 0; i < 8 * sizeof(T); ++i) {
                    letters[i * 32 + lane] = i < length ? query[i] : ~0u;
                }
            }
            longest_ = __reduce_max_sync(~0u, length);
        }
        __syncthreads();
    }

    __device__ T operator()(uint32_t letter) const {
        const uint32_t lane = threadIdx.x % 32;
        if constexpr (HasTable) {
            return static_cast<const T*>(memory_)[letter * 32 + lane];
        } else {
            const auto* letters = static_cast<const uint32_t*>(memory_);
            T same = 0;
            for (uint32_t i = 0; i < longest_; ++i) {
                same |= letters[i * 32 + lane] == letter ? T(2) << i : T(0);
            }
            return same;
        }
    }

   private:
    const void* memory_;
    uint32_t longest_ = 0;
};

/// 32 queries in the lanes of every warp of a block; each warp takes a part of
/// the nodes, after the columns of the prefix that its first node continues.
/// Shared memory: what SameLetters needs.
template <class T, int Errors, bool HasTable>
__global__ void __launch_bounds__(kWalkWarps * 32)
        walkTrieKernel(const __grid_constant__ TrieParams p) {
    extern __shared__ __align__(16) unsigned char walkShared[];
    __shared__ uint64_t buffers[kWalkWarps][FoundBuffer::kSize];
    // A column is alive up to the depth of 8 sizeof(T) - 1 + Errors.
    constexpr uint32_t kDepth = 8 * sizeof(T) + Errors;
    T columns[kDepth][Errors + 1];

    const uint32_t lane = threadIdx.x % 32;
    const uint32_t warp = threadIdx.x / 32;
    const uint32_t place = p.first + blockIdx.x * 32 + lane;
    const bool isQuery = place < p.end;
    const uint32_t query = isQuery ? p.order[place] : 0;
    const idx_t begin = p.begins[query];
    const uint32_t length = isQuery ? uint32_t(p.begins[query + 1] - begin) : 0;
    const SameLetters<T, HasTable> same(
            walkShared, p, p.letters + begin, length);
    const T last = isQuery ? T(T(1) << length) : T(0);
    const T rows = last | T(last - 1) * T(isQuery);

    const uint64_t part = uint64_t(blockIdx.y) * kWalkWarps + warp;
    const uint64_t inner = p.numNodes - 1; // without the root
    uint32_t i = 1 + uint32_t(inner * part / p.parts);
    const uint32_t end = 1 + uint32_t(inner * (part + 1) / p.parts);
    FoundBuffer buffer(buffers[warp], p);
    Count count = 0;
    const auto take = [&](uint32_t node, const WalkColumn<T, Errors>& column) {
        const bool has = (column.errors[Errors] & last) != 0;
        if (!__any_sync(~0u, has)) {
            return;
        }
        const uint32_t distance = column.distance(last);
        const uint32_t wordsEnd = p.nodes[node + 1].words;
        for (uint32_t word = p.nodes[node].words; word < wordsEnd; ++word) {
            buffer.add(has, makeFound(word, distance, query));
            count += has;
        }
    };

    WalkColumn<T, Errors> column;
    column.setFirst();
    const auto keep = [&](uint32_t depth) {
#pragma unroll
        for (int e = 0; e <= Errors; ++e) {
            columns[depth][e] = column.errors[e];
        }
    };
    keep(0);
    if (part == 0 && (p.nodes[0].state & TrieNode::kEndsWord)) {
        take(0, column);
    }
    if (i < end) {
        // The nodes above the first one.
        uint32_t path[kDepth + 1]; // the last one's column is dead
        uint32_t above = p.parents[i];
        uint32_t depth = p.nodes[i].depth() - 1;
        for (; depth > kDepth; --depth) {
            above = p.parents[above];
        }
        for (uint32_t at = depth; at > 0; --at) {
            path[at] = above;
            above = p.parents[above];
        }
        for (uint32_t at = 1; at <= depth; ++at) {
            const TrieNode node = p.nodes[path[at]];
            column.step(same(node.letter));
            if (!__any_sync(~0u, (column.errors[Errors] & rows) != 0)) {
                i = node.next;
                break;
            }
            keep(at);
        }
    }
    while (i < end) {
        const TrieNode node = p.nodes[i];
        const uint32_t depth = node.depth();
        if (!(node.state & TrieNode::kFirstChild)) {
#pragma unroll
            for (int e = 0; e <= Errors; ++e) {
                column.errors[e] = columns[depth - 1][e];
            }
        }
        column.step(same(node.letter));
        if (!__any_sync(~0u, (column.errors[Errors] & rows) != 0)) {
            i = node.next;
            continue;
        }
        if (node.state & TrieNode::kEndsWord) {
            take(i, column);
        }
        if (node.state & TrieNode::kBranches) {
            keep(depth);
        }
        ++i;
    }
    buffer.flush();
    if (count > 0) {
        atomicAdd(p.counts + query, count);
    }
}

} // namespace faiss_bits::words

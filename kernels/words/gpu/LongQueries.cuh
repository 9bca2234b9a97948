#pragma once

#include "kernels/words/gpu/ScanQueries.cuh"

/// Queries of any length for QueryScan: their letters as bits in blocks of 64
/// (Myers 1999, Hyyro 2003). The table is [letters][blocks].
namespace faiss_bits::words {

/// A difference of two neighbours of a row: 1, 0 or -1.
struct RowStep {
    uint64_t up = 0, down = 0; // 0 or 1
};

/// A block's column of differences: bit i of `more` says that row i is one more
/// than the row above it, of `less` that it is one less.
struct BlockColumn {
    uint64_t more = ~uint64_t(0), less = 0;
    uint64_t right = 0, left = 0; // of the last step, row by row as RowStep

    /// One letter on. `step` is that of the row above the block, and becomes
    /// that of its last row.
    __device__ void move(uint64_t same, RowStep& step) {
        const uint64_t vertical = same | less;
        same |= step.down;
        const uint64_t diagonal = (((same & more) + more) ^ more) | same;
        right = less | ~(diagonal | more);
        left = more & diagonal;
        const uint64_t rights = right << 1 | step.up;
        const uint64_t lefts = left << 1 | step.down;
        step.up = right >> 63;
        step.down = left >> 63;
        more = lefts | ~(vertical | rights);
        less = rights & vertical;
    }
};

/// What both kinds know of the block's query.
class LongQuery {
   public:
    __device__ LongQuery(const uint64_t* table, uint32_t length)
            : table_(table), length_(length), blocks_((length + 63) / 64) {}

    /// Words whose length alone is too far are not compared.
    __device__ bool mayReach(uint32_t wordLength, uint32_t most) const {
        return abs(int(wordLength) - int(length_)) <= int(most);
    }

   protected:
    __device__ static const uint32_t* wordOf(
            const GroupParams& groups,
            uint32_t slot) {
        constexpr uint32_t kSize = WordGroups::kSize;
        return groups.letters + groups.begins[slot / kSize] + slot % kSize;
    }
    __device__ const uint64_t* rowOf(uint32_t letter) const {
        return table_ + size_t(letter) * blocks_;
    }

    const uint64_t* table_;
    uint32_t length_, blocks_;
};

/// Of up to Blocks blocks: a word a thread, the whole column in registers.
template <int Blocks>
class BlockQuery : public LongQuery {
   public:
    using LongQuery::LongQuery;

    __device__ uint32_t
    distance(const GroupParams& groups, uint32_t slot, bool isWanted) const {
        if (!isWanted) {
            return 0;
        }
        const uint32_t* word = wordOf(groups, slot);
        const uint32_t wordLength = groups.lengths[slot];
        BlockColumn column[Blocks];
        for (uint32_t i = 0; i < wordLength; ++i) {
            const uint64_t* same = rowOf(word[i * WordGroups::kSize]);
            RowStep step{1, 0};
#pragma unroll
            for (int b = 0; b < Blocks; ++b) {
                if (b < blocks_) {
                    column[b].move(same[b], step);
                }
            }
        }
        uint32_t value = wordLength;
#pragma unroll
        for (int b = 0; b < Blocks; ++b) {
            const int rows = int(length_) - 64 * b;
            if (rows > 0) {
                const uint64_t mask =
                        ~uint64_t(0) >> (rows < 64 ? 64 - rows : 0);
                value += __popcll(column[b].more & mask);
                value -= __popcll(column[b].less & mask);
            }
        }
        return value;
    }
};

/// Of up to kMostBlocks blocks: a warp takes the words of its lanes one after
/// the other, each lane some blocks of rows, one letter behind the lane above.
class WarpQuery : public LongQuery {
   public:
    static constexpr uint32_t kPerLane = 2;
    static constexpr uint32_t kMostBlocks = 32 * kPerLane;

    using LongQuery::LongQuery;

    __device__ uint32_t
    distance(const GroupParams& groups, uint32_t slot, bool isWanted) const {
        const uint32_t lane = threadIdx.x % 32;
        uint32_t mine = 0;
        for (uint32_t left = __ballot_sync(~0u, isWanted); left != 0;
             left &= left - 1) {
            const uint32_t owner = __ffs(left) - 1;
            const uint32_t one =
                    together(groups, __shfl_sync(~0u, slot, owner));
            if (lane == owner) {
                mine = one;
            }
        }
        return mine;
    }

   private:
    __device__ uint32_t
    together(const GroupParams& groups, uint32_t slot) const {
        const uint32_t lane = threadIdx.x % 32;
        const uint32_t perLane = blocks_ <= 32 ? 1 : kPerLane;
        const uint32_t lanes = (blocks_ + perLane - 1) / perLane;
        const uint32_t lastRow = (length_ - 1) % 64; // of the last block
        const uint32_t* word = wordOf(groups, slot);
        const uint32_t wordLength = groups.lengths[slot];
        BlockColumn column[kPerLane];
        RowStep last{1, 0}; // of this lane's last row
        uint32_t value = length_;
        for (uint32_t i = 0; i < wordLength + lanes - 1; ++i) {
            const uint32_t above = __shfl_up_sync(
                    ~0u, uint32_t(last.up) | uint32_t(last.down) << 1, 1);
            const uint32_t letter = i - lane; // wraps below zero
            if (lane >= lanes || letter >= wordLength) {
                continue;
            }
            RowStep step{1, 0};
            if (lane > 0) {
                step = {above & 1, above >> 1};
            }
            const uint64_t* same = rowOf(word[letter * WordGroups::kSize]);
#pragma unroll
            for (uint32_t k = 0; k < kPerLane; ++k) {
                const uint32_t block = lane * perLane + k;
                if (k >= perLane || block >= blocks_) {
                    continue;
                }
                column[k].move(same[block], step);
                if (block == blocks_ - 1) {
                    value += uint32_t(column[k].right >> lastRow & 1);
                    value -= uint32_t(column[k].left >> lastRow & 1);
                }
            }
            last = step;
        }
        return __shfl_sync(~0u, value, lanes - 1);
    }
};

/// Sets the bits of a query's letters in a table of zeros; by the whole block.
inline __device__ void fillTable(
        const LongScanParams& p,
        uint32_t query,
        uint64_t* table) {
    const idx_t begin = p.begins[query];
    const auto length = uint32_t(p.begins[query + 1] - begin);
    const uint32_t blocks = (length + 63) / 64;
    for (uint32_t i = threadIdx.x; i < length; i += blockDim.x) {
        const uint32_t letter = p.letters[begin + i];
        if (letter < p.numLetters) {
            atomicOr(
                    reinterpret_cast<unsigned long long*>(
                            table + size_t(letter) * blocks + i / 64),
                    1ull << i % 64);
        }
    }
}

/// A block for every query. The tables are zeros.
static __global__ void fillTablesKernel(
        const __grid_constant__ LongScanParams p) {
    fillTable(
            p,
            p.queries[blockIdx.x],
            p.tables + size_t(blockIdx.x) * p.numLetters * p.blocks);
}

/// scanQueriesKernel of long queries. Shared memory: scanSharedBytes, rounded
/// up to 8, then the table where there are none in global memory.
template <class Scanned, ScanMethod Method>
__global__ void __launch_bounds__(kScanThreads)
        scanLongQueriesKernel(const __grid_constant__ LongScanParams p) {
    extern __shared__ __align__(16) unsigned char longShared[];
    __shared__ uint64_t buffers[kScanWarps][FoundBuffer::kSize];
    __shared__ uint32_t end;
    const uint32_t query = p.queries[blockIdx.x];
    const auto length = uint32_t(p.begins[query + 1] - p.begins[query]);
    const size_t size = size_t(p.numLetters) * p.blocks;
    uint64_t* table;
    if (p.tables) {
        table = p.tables + blockIdx.x * size;
    } else {
        table = reinterpret_cast<uint64_t*>(
                longShared + (scanSharedBytes(Method, p) + 7) / 8 * 8);
        for (uint32_t i = threadIdx.x; i < size; i += kScanThreads) {
            table[i] = 0;
        }
        __syncthreads();
        fillTable(p, query, table);
    }
    __syncthreads();
    QueryScan<Scanned> scan(
            p, {table, length}, longShared, buffers[threadIdx.x / 32], query);
    scan.template run<Method>(end);
}

} // namespace faiss_bits::words

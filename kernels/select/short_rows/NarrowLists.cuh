/// The best few of rows of some hundred keys of 16 bits: as LaneLists.cuh, but
/// a key and its column are one number of 32 bits. So the lists hold the
/// entries themselves: no number is equal to another, nothing is looked for
/// once their order is known, and keys come two at a time.
///
/// Bound by: the read, or instructions, some 2 k + 5 a key before lists are
/// merged; few rows by the latency of one row's.
#pragma once

#include "kernels/select/short_rows/LaneGroup.cuh"
#include "kernels/select/short_rows/LaneListsLaunch.h"
#include "kernels/select/short_rows/LeastList.cuh"
#include "kernels/select/short_rows/NarrowPair.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// kLanes lanes a row, kItems keys in each, the kBest >= k best of them.
template <class T, int kLanes, int kItems, int kBest>
class NarrowLists {
    static_assert(sizeof(T) == 2 && kItems % 2 == 0);
    using Group = LaneGroup<kLanes>;
    using List = LeastList<kBest>;
    using Pair = NarrowPair<T>;
    static constexpr int kPairs = kItems / 2;
    /// Rows of more keys are taken part by part.
    static constexpr bool kIsLong = kLanes * kItems == kLongNarrowCols;

   public:
    __device__ __forceinline__
    NarrowLists(const SelectParams& params, uint32_t row)
            : params_(params),
              row_(row),
              keys_(static_cast<const T*>(params.keys) +
                    params.rowStride * int64_t(row)),
              isOdd_(uint32_t(reinterpret_cast<uintptr_t>(keys_)) / 2 % 2),
              pairs_((params.cols - isOdd_) / 2),
              sign_(Pair::signOf(params)) {}

    /// All lanes of the warp call it; `writes`: else they only go along.
    __device__ __forceinline__ void run(bool writes) {
        // On its way with the others.
        const Edge edge = loadEdge();
        int32_t best[kBest];
        take(0, best);
        if constexpr (kIsLong) {
#pragma unroll 1
            for (uint32_t from = kPairs * kLanes; from < pairs_;
                 from += kPairs * kLanes) {
                int32_t some[kBest];
                take(from, some);
                List::merge(best, some);
            }
        }
        List::add(best, numberOf(edge));
        List::template ofLanes<kLanes>(best);
        write(best, writes);
    }

   private:
    /// The list of this lane's keys in a part of the row, from a word on.
    __device__ __forceinline__ void take(uint32_t from, int32_t (&best)[kBest])
            const {
        uint32_t pairs[kPairs];
        load(from + Group::lane(), pairs);
        int32_t numbers[kItems];
        uint32_t upper = 0xFFFF0000u;
        // In a register, one instruction masks and joins.
        asm("" : "+r"(upper));
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
            const uint32_t both = Pair::inOrder(sign_, pairs[i]);
            // Columns from the lane's first one on.
            const uint32_t column = uint32_t(2 * i * kLanes);
            numbers[2 * i] = int32_t((both << 16) + column);
            numbers[2 * i + 1] = int32_t((both & upper) | (column + 1));
        }
        List::ofLane(numbers, best);
        const int32_t first = int32_t(isOdd_ + 2 * (from + Group::lane()));
#pragma unroll
        for (int j = 0; j < kBest && j < kItems; ++j) {
            best[j] += first;
        }
    }

    /// Words of two keys, the lane's first one and so on; NaN behind the last.
    /// All loads in flight before the first use.
    __device__ __forceinline__ void load(
            uint32_t first,
            uint32_t (&pairs)[kPairs]) const {
        const uint32_t* from =
                reinterpret_cast<const uint32_t*>(keys_ + isOdd_) + first;
        // Else it is computed for each load.
        asm("" : "+l"(from));
        const int left = int(pairs_) - int(first);
        if (left > (kPairs - 1) * kLanes) {
#pragma unroll
            for (int i = 0; i < kPairs; ++i) {
                pairs[i] = __ldg(from + i * kLanes);
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
            pairs[i] = kNarrowNan;
            if (i * kLanes < left) {
                pairs[i] = __ldg(from + i * kLanes);
            }
        }
    }

    /// A key that the row has before or behind its words: lane 0 has the first
    /// one, if it does not begin a word, and lane 1 the last, if it ends none.
    struct Edge {
        uint32_t column;
        bool isThere;
        uint32_t key;
    };

    __device__ __forceinline__ Edge loadEdge() const {
        const uint32_t lane = uint32_t(Group::lane());
        const uint32_t isCut = (params_.cols - isOdd_) % 2;
        Edge edge;
        edge.column = lane == 0 ? 0 : params_.cols - 1;
        edge.isThere = lane <= 1 && (lane == 0 ? isOdd_ : isCut) != 0;
        edge.key = kNarrowNan;
        if (edge.isThere) {
            edge.key =
                    __ldg(reinterpret_cast<const unsigned short*>(keys_) +
                          edge.column);
        }
        return edge;
    }

    __device__ __forceinline__ int32_t numberOf(const Edge& edge) const {
        const uint32_t number =
                (Pair::inOrder(sign_, edge.key) << 16) + edge.column;
        return edge.isThere ? int32_t(number) : List::kNone;
    }

    /// Neighbouring lanes write neighbouring places.
    __device__ __forceinline__ void write(
            const int32_t (&best)[kBest],
            bool writes) const {
#pragma unroll
        for (int from = 0; from < kBest; from += kLanes) {
            int32_t mine = best[from];
#pragma unroll
            for (int j = 1; j < kLanes && from + j < kBest; ++j) {
                mine = Group::lane() == j ? best[from + j] : mine;
            }
            const int place = from + Group::lane();
            if (place < params_.k && writes) {
                const uint32_t number = uint32_t(mine);
                writeResult<T>(
                        params_,
                        row_,
                        place,
                        makeEntry(
                                widenKey(Pair::kType, number >> 16 ^ 0x8000u),
                                number & 0xFFFFu));
            }
        }
    }

    const SelectParams& params_;
    const uint32_t row_;
    const T* const keys_;
    const uint32_t isOdd_; // the first key ends a word
    const uint32_t pairs_; // whole words
    const typename Pair::Type sign_;
};

template <class T, int kLanes, int kItems, int kBest>
__global__ void __launch_bounds__(kShortRowsThreads)
        narrowListsKernel(const __grid_constant__ ShortRowsParams params) {
    constexpr uint32_t kRows = kShortRowsThreads / kLanes;
    const uint32_t at = blockIdx.x * kRows + threadIdx.x / kLanes;
    const bool isThere = at < params.rows;
    const uint32_t row = params.select.firstRow + (isThere ? at : 0);
    NarrowLists<T, kLanes, kItems, kBest>(params.select, row).run(isThere);
}

} // namespace faiss_bits

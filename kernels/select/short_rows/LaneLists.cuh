/// The k <= 8 best of rows of some hundred columns: a few lanes have a row in
/// registers, each keeps the k least of its keys in order, and the lanes' lists
/// are merged. So the k-th key is exact, no order misleads it, and what is
/// within it is ranked by counting.
///
/// Bound by: instructions, some 2 k + 10 a key and 250 a row of its warp's; few
/// rows by the latency of one row's.
#pragma once

#include "kernels/select/short_rows/LaneGroup.cuh"
#include "kernels/select/short_rows/LaneListsLaunch.h"
#include "kernels/select/short_rows/LeastList.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// kLanes lanes a row, kItems keys in each, the kBest >= k least of them.
template <class T, int kLanes, int kItems, int kBest>
class LaneLists {
    using Group = LaneGroup<kLanes>;
    /// Results of a lane.
    static constexpr int kEach = kBest > kLanes ? kBest / kLanes : 1;

   public:
    __device__ __forceinline__
    LaneLists(const SelectParams& params, uint32_t row)
            : params_(params), row_(row) {}

    /// room: [kBest], of the row. All lanes of the warp call it; `writes`: else
    /// they only go along.
    __device__ __forceinline__ void run(uint64_t* room, bool writes) {
        load();
        const uint32_t mine = upTo(limit());
        const uint32_t lane = Group::lane();
        const uint32_t k = uint32_t(params_.k);
        uint64_t* to = room + Group::sumBefore(__popc(mine));
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            if (mine >> i & 1) {
                *to++ = makeEntry(
                        uint32_t(keys_[i]) ^ 0x80000000u, lane + i * kLanes);
            }
        }
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            const uint32_t at = lane + e * kLanes;
            if (at >= k && at < kBest) {
                room[at] = kNoEntry;
            }
        }
        __syncwarp();
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            const uint32_t at = lane + e * kLanes;
            const uint64_t entry = room[at < k ? at : 0];
            uint32_t place = 0;
#pragma unroll
            for (int i = 0; i < kBest; ++i) {
                place += room[i] < entry ? 1 : 0;
            }
            if (at < k && writes) {
                writeResult<T>(params_, row_, place, entry);
            }
        }
    }

   private:
    static constexpr int32_t kNan = 0x7FFFFFFF;

    /// In the order of the contract, as signed numbers: NaN, and what is behind
    /// the row's end, last. All loads in flight before the first use.
    __device__ __forceinline__ void load() {
        const T* from = static_cast<const T*>(params_.keys) +
                params_.rowStride * int64_t(row_) + Group::lane();
        // Else it is computed for each load.
        asm("" : "+l"(from));
        const int left = int(params_.cols) - Group::lane();
        T loaded[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            loaded[i] = T(__uint_as_float(0x7FC00000u));
            if (i * kLanes < left) {
                loaded[i] = from[i * kLanes];
            }
        }
        const float sign = params_.signMask ? -1.0f : 1.0f;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            // The product is exact. The sum makes +0 of -0, and of every NaN
            // the same one, positive.
            const int32_t bits =
                    __float_as_int(__fmaf_rn(toFloat(loaded[i]), sign, 0.0f));
            keys_[i] = bits ^ (bits >> 31 & kNan);
        }
    }

    /// The k-th least key of the row.
    __device__ __forceinline__ int32_t limit() const {
        int32_t best[kBest];
        LeastList<kBest>::ofLane(keys_, best);
        LeastList<kBest>::template ofLanes<kLanes>(best);
        int32_t limit = best[0];
#pragma unroll
        for (int j = 1; j < kBest; ++j) {
            limit = j < params_.k ? best[j] : limit;
        }
        return limit;
    }

    /// Bits of this lane's keys that are among the k best of the row.
    __device__ __forceinline__ uint32_t upTo(int32_t limit) const {
        uint32_t mine = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            mine |= keys_[i] <= limit ? 1u << i : 0;
        }
        const uint32_t total = Group::sum(__popc(mine));
        const bool isTied = total > uint32_t(params_.k);
        return __any_sync(kFullWarp, isTied) ? withoutTies(limit, mine, isTied)
                                             : mine;
    }

    /// Of the keys that are equal to the limit the first ones count.
    __device__ __forceinline__ uint32_t
    withoutTies(int32_t limit, uint32_t mine, bool isTied) const {
        uint32_t less = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            less |= keys_[i] < limit ? 1u << i : 0;
        }
        const uint32_t numLess = Group::sum(__popc(less));
        uint32_t wanted = isTied ? uint32_t(params_.k) - numLess : 0;
        uint32_t equal = mine & ~less;
        const uint32_t shift = threadIdx.x % kWarpSize / kLanes * kLanes;
        const uint32_t lower = (1u << Group::lane()) - 1;
        uint32_t taken = less;
        // Columns ascend from item to item, and in an item from lane to lane.
        // Each row goes on to its next item that has such a key.
        while (__any_sync(kFullWarp, wanted > 0)) {
            const uint32_t i = Group::least(
                    equal != 0 ? uint32_t(__ffs(equal)) - 1 : uint32_t(kItems));
            const uint32_t item = 1u << i;
            const bool isEqual = (equal & item) != 0;
            uint32_t lanes = __ballot_sync(kFullWarp, isEqual) >> shift;
            if constexpr (kLanes < kWarpSize) {
                lanes &= (1u << kLanes) - 1;
            }
            if (isEqual && uint32_t(__popc(lanes & lower)) < wanted) {
                taken |= item;
            }
            equal &= ~item;
            wanted -= min(wanted, uint32_t(__popc(lanes)));
        }
        return isTied ? taken : mine;
    }

    const SelectParams& params_;
    const uint32_t row_;
    int32_t keys_[kItems];
};

template <class T, int kLanes, int kItems, int kBest>
__global__ void __launch_bounds__(kShortRowsThreads)
        laneListsKernel(const __grid_constant__ ShortRowsParams params) {
    constexpr uint32_t kRows = kShortRowsThreads / kLanes;
    __shared__ uint64_t room[kRows][kBest];
    const uint32_t inBlock = threadIdx.x / kLanes;
    const uint32_t at = blockIdx.x * kRows + inBlock;
    const bool isThere = at < params.rows;
    const uint32_t row = params.select.firstRow + (isThere ? at : 0);
    LaneLists<T, kLanes, kItems, kBest>(params.select, row)
            .run(room[inBlock], isThere);
}

} // namespace faiss_bits

/// Sorted numbers of a row, each a 16-bit key and its column, to results.
#pragma once

#include "kernels/select/short_rows/LaneGroup.cuh"
#include "kernels/select/short_rows/NarrowPair.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

template <class T, int kLanes>
struct NarrowResult {
    using Group = LaneGroup<kLanes>;

    /// The first `most`, number lane * kCount + i of which is item i of a lane.
    /// Neighbouring lanes write neighbouring places. room: [kLanes * kCount],
    /// of the row, overwritten. writes: else the lanes only go along. kTimes: 1
    /// is little code.
    template <int kTimes = kWarpSize, int kCount>
    __device__ __forceinline__ static void write(
            const SelectParams& params,
            uint32_t row,
            int most,
            const uint32_t (&numbers)[kCount],
            uint32_t* room,
            bool writes) {
        if constexpr (kCount > 1) {
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                room[turned(Group::lane() * kCount + i)] = numbers[i];
            }
            __syncwarp();
        }
#pragma unroll kTimes
        for (int i = 0; i < kCount; ++i) {
            const int place = i * kLanes + Group::lane();
            if (place < most && writes) {
                const uint32_t number =
                        kCount > 1 ? room[turned(place)] : numbers[0];
                writeResult<T>(
                        params,
                        row,
                        place,
                        makeEntry(
                                widenKey(NarrowPair<T>::kType, number >> 16),
                                number & 0xFFFFu));
            }
        }
    }

   private:
    /// Where a number of the result lies in the room: numbers of one lane, and
    /// of neighbours, lie in different banks.
    __device__ __forceinline__ static uint32_t turned(uint32_t place) {
        return place ^ place / 32 % 32;
    }
};

} // namespace faiss_bits

/// The search for a key that k keys are not above, among pairs of 16-bit keys.
#pragma once

#include "kernels/select/short_rows/LaneGroup.cuh"
#include "kernels/select/short_rows/NarrowKeys.cuh"

namespace faiss_bits {

/// A key, and how many are not above it.
struct NarrowLimit {
    uint32_t key;
    uint32_t count;
};

/// All lanes of the warp call everything. A lane has `values` and others that
/// are `kept` of keys before those; NaN counts for nothing.
template <class T>
struct NarrowSearch {
    using Group = LaneGroup<kWarpSize>;
    using Keys = NarrowKeys<T>;
    using Two = typename Keys::Two;
    static constexpr int kEvenSteps = 3;
    static constexpr int kStepsAfterEven = 3;
    static constexpr int kStepsBetweenKeys = 4;

    uint32_t k;

    template <int kCount, int kKept>
    __device__ __forceinline__ static uint32_t count(
            uint32_t most,
            const Two (&values)[kCount],
            const Two (&kept)[kKept]) {
        return Group::sum(Keys::countUpTo(values, kept, Keys::both(most)));
    }

    template <int kCount, int kKept>
    __device__ __forceinline__ static uint32_t least(
            const Two (&values)[kCount],
            const Two (&kept)[kKept]) {
        Two some = values[0];
#pragma unroll
        for (int i = 1; i < kCount; ++i) {
            some = __hmin2(some, values[i]);
        }
#pragma unroll
        for (int i = 0; i < kKept; ++i) {
            some = __hmin2(some, kept[i]);
        }
        const uint32_t bits = Keys::bitsOf(some);
        return Group::least(min(Keys::keyOf(bits), Keys::keyOf(bits >> 16)));
    }

    /// The greatest key that is not above `most`; infinity's with a minus where
    /// there is none.
    template <int kCount, int kKept>
    __device__ __forceinline__ static uint32_t greatestUpTo(
            uint32_t most,
            const Two (&values)[kCount],
            const Two (&kept)[kKept]) {
        const Two both = Keys::both(most);
        const uint32_t lowest = Keys::bitsOf(Keys::both(kLowest));
        Two some[2] = {Keys::both(kLowest), Keys::both(kLowest)};
        const auto take = [&](Two value, Two& one) {
            const uint32_t mask = __hle2_mask(value, both);
            one = __hmax2(
                    one,
                    Keys::asTwo(
                            (Keys::bitsOf(value) & mask) | (lowest & ~mask)));
        };
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            take(values[i], some[i % 2]);
        }
#pragma unroll
        for (int i = 0; i < kKept; ++i) {
            take(kept[i], some[i % 2]);
        }
        const uint32_t bits = Keys::bitsOf(__hmax2(some[0], some[1]));
        return Group::greatest(max(Keys::keyOf(bits), Keys::keyOf(bits >> 16)));
    }

    /// The k-th key, which is none below `low`, or one above it that at most
    /// `enough` keys are not above. high: k or more are not above it. isEven:
    /// the first steps are where the k-th key would be if keys lay evenly.
    template <int kCount, int kKept>
    __device__ __forceinline__ NarrowLimit
    find(uint32_t low,
         NarrowLimit high,
         uint32_t enough,
         bool isEven,
         const Two (&values)[kCount],
         const Two (&kept)[kKept]) const {
        int evenSteps = isEven ? kEvenSteps : 0;
        int untilKey = isEven ? 0 : kStepsAfterEven - 1;
        bool isLimit = !isEven; // of parts, and often the k-th key
        uint32_t before = 0;    // keys that are known to be below low
#pragma unroll 1
        while (low < high.key && high.count > enough) {
            uint32_t middle = low + (high.key - low) / 2;
            if (evenSteps > 0) {
                middle = evenly(low, high, before, (k + enough) / 2);
            } else if (isLimit) {
                isLimit = false;
                middle = high.key - 1;
            } else if (--untilKey < 0) {
                untilKey = kStepsBetweenKeys - 1;
                high.key = greatestUpTo(high.key, values, kept);
                if (low >= high.key) {
                    break;
                }
                middle = high.key - 1;
            }
            const uint32_t range = high.count - before;
            const uint32_t found = count(middle, values, kept);
            if (found < k) {
                low = middle + 1;
                before = found;
            } else {
                high = {middle, found};
            }
            if (evenSteps > 0) {
                --evenSteps;
                if (high.count - before > range - range / 8) {
                    evenSteps = 0; // they do not
                } else if (evenSteps == 0) {
                    untilKey = kStepsAfterEven - 1;
                }
            }
        }
        return high;
    }

   private:
    static constexpr uint32_t kLowest = 0xFFFFu - Keys::kInfinity;

    /// Where `wanted` keys would be within, if those between low and high lay
    /// evenly.
    __device__ __forceinline__ static uint32_t evenly(
            uint32_t low,
            NarrowLimit high,
            uint32_t before,
            uint32_t wanted) {
        const float from = Keys::valueOf(low);
        const float share =
                __fdividef(float(wanted - before), float(high.count - before));
        // Any number does: of NaN it is an end.
        const uint32_t key = Keys::keyNear(
                __fmaf_rn(Keys::valueOf(high.key) - from, share, from));
        return min(max(key, low), high.key - 1);
    }
};

} // namespace faiss_bits

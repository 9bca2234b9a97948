/// The search for a number that k keys are not above, by halving the range of
/// the keys that the lanes of a row hold.
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/select/short_rows/LaneGroup.cuh"

namespace faiss_bits {

/// How a range is halved; ShortRow says which kernel does it how.
enum class Halving {
    /// Until one number is left, or a look at the greatest key of the range, at
    /// the tenth step and every fourth from there on, finds that it is the
    /// k-th.
    Only,
    /// The same, but the first steps are where the k-th key would be if keys
    /// lay evenly: where the lanes count many keys in a step it is worth it.
    Evenly,
    /// Eight times, unrolled, as keys in random order hardly need more; then
    /// between the values that are left.
    ThenValues,
    /// The same from the sixth on, not unrolled: many keys a lane are much
    /// code.
    SoonValues
};

/// Of infinity, the greatest number, and of the least one.
constexpr uint32_t kInfinityKey = 0xFF800000u;
constexpr uint32_t kLeastKey = 0x007FFFFFu;

/// Keys that differ lie so far apart in the order: those of 16 bits were made
/// floats, whose last bits tell nothing.
template <class T>
constexpr uint32_t kKeyStep = 1;
template <>
inline constexpr uint32_t kKeyStep<__half> = 1u << 13;
template <>
inline constexpr uint32_t kKeyStep<__nv_bfloat16> = 1u << 16;

/// Entries of a lane that are kept of keys before those it looks at; 0 of them
/// where a row comes at once.
template <int kKept>
using KeptEntries = uint64_t[kKept > 0 ? kKept : 1];

/// All rows of a warp search together: every lane calls everything. A lane has
/// some keys of type T, and kKept entries that are kept of keys before them.
template <class T, int kLanes, int kKept, Halving kHalving>
struct BoundSearch {
    using Group = LaneGroup<kLanes>;
    /// The bits that tell nothing: ones of negative keys, zeros of others.
    static constexpr uint32_t kIdleBits = kKeyStep<T> - 1;
    static constexpr bool kIsEven = kHalving == Halving::Evenly;
    static_assert(!kIsEven || kLanes == kWarpSize); // no row waits for others
    static constexpr bool kLooksAtValues =
            kHalving != Halving::Only && kHalving != Halving::Evenly;
    static constexpr int kStepsBetweenValues = 6;
    /// So many steps of halving come before keys are asked: in random order the
    /// range hardly takes more.
    static constexpr int kStepsOfRandom = 10;
    static constexpr int kStepsBetweenKeys = 4;
    static constexpr int kEvenSteps = 3;
    static constexpr int kStepsAfterEven = 3;
    static constexpr uint32_t kLeastPart = 128; // 1 / of k

    uint32_t k;

    /// The greatest that is not above `most`; 0 where there is none.
    template <int kCount>
    __device__ __forceinline__ static uint32_t greatestUpTo(
            uint32_t most,
            const uint32_t (&keys)[kCount],
            const KeptEntries<kKept>& kept) {
        uint32_t greatest = 0;
        const auto take = [&](uint32_t key) {
            greatest = max(greatest, key <= most ? key : 0);
        };
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            take(keys[i]);
        }
#pragma unroll
        for (int i = 0; i < kKept; ++i) {
            take(entryKey(kept[i]));
        }
        return Group::greatest(greatest);
    }

    /// The least that is not below `least`; kNanKey where there is none.
    template <int kCount>
    __device__ __forceinline__ static uint32_t leastFrom(
            uint32_t least,
            const uint32_t (&keys)[kCount],
            const KeptEntries<kKept>& kept) {
        uint32_t found = kNanKey;
        const auto take = [&](uint32_t key) {
            found = min(found, key >= least ? key : kNanKey);
        };
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            take(keys[i]);
        }
#pragma unroll
        for (int i = 0; i < kKept; ++i) {
            take(entryKey(kept[i]));
        }
        return Group::least(found);
    }

    /// narrow() for counts of keys, of which `all` are within high; returns a
    /// number that a key may be. Where
    /// it takes long, as few values are left, the range goes on between those.
    template <class Count, int kCount>
    __device__ __forceinline__ uint32_t narrowKeys(
            uint32_t low,
            uint32_t high,
            uint32_t enough,
            const Count& countOf,
            const uint32_t (&keys)[kCount],
            const KeptEntries<kKept>& kept,
            uint32_t all) const {
        if constexpr (!kLooksAtValues) {
            return halveKeys(
                    low,
                    high,
                    enough,
                    countOf,
                    keys,
                    kept,
                    all,
                    kStepsOfRandom);
        } else {
            low |= kIdleBits;
            high |= kIdleBits;
            int steps = kStepsBetweenValues;
            if constexpr (kHalving == Halving::ThenValues) {
#pragma unroll
                for (int i = 0; i < 8 && __any_sync(kFullWarp, low < high);
                     ++i) {
                    halve<kKeyStep<T>>(low, high, enough, countOf);
                }
                steps = 1;
            }
#pragma unroll 1
            while (__any_sync(kFullWarp, low < high)) {
                if (--steps == 0) {
                    steps = kStepsBetweenValues;
                    const uint32_t from =
                            leastFrom(low - kIdleBits, keys, kept);
                    const uint32_t to = greatestUpTo(high, keys, kept);
                    low = low < high ? from | kIdleBits : low;
                    high = low < high ? to | kIdleBits : high;
                }
                halve<kKeyStep<T>>(low, high, enough, countOf);
            }
            return asKey(high);
        }
    }

    /// The same by halving. From step `until` on, now and then the greatest key
    /// of the range is asked whether it is the k-th: if many keys are equal it
    /// soon is, and halving goes on until one number is left.
    template <class Count, int kCount>
    __device__ __forceinline__ uint32_t halveKeys(
            uint32_t low,
            uint32_t high,
            uint32_t enough,
            const Count& countOf,
            const uint32_t (&keys)[kCount],
            const KeptEntries<kKept>& kept,
            uint32_t all,
            int until) const {
        constexpr uint32_t kStep = kKeyStep<T>;
        low |= kIdleBits;
        high |= kIdleBits;
        if constexpr (kIsEven) {
            return splitEvenly(
                    low, high, enough, countOf, keys, kept, all, until);
        } else {
            // From -infinity is far to halve. Where keys are asked at once,
            // high is one of them most often.
            uint32_t middle = until == 1 ? high - kStep
                    : low == kLeastKey   ? low
                                         : middleOf<kStep>(low, high);
            do {
                splitAt<kStep>(middle, low, high, enough, countOf);
                middle = middleOf<kStep>(low, high);
            } while (__any_sync(kFullWarp, low < high) && --until > 1);
            until = 0;
#pragma unroll 1
            while (__any_sync(kFullWarp, low < high)) {
                middle = middleOf<kStep>(low, high);
                if (--until < 0) {
                    until = kStepsBetweenKeys - 1;
                    const uint32_t key =
                            greatestUpTo(high, keys, kept) | kIdleBits;
                    high = low < high ? key : high;
                    middle = low < high ? high - kStep : middle;
                }
                splitAt<kStep>(middle, low, high, enough, countOf);
            }
            return asKey(high);
        }
    }

    /// The least number from low to high whose count is k or more, or a larger
    /// one whose count is at most `enough`. high has a count of k or more, or
    /// low = high. kStep: a power of two that high - low is a multiple of, as
    /// that of two numbers with different counts is.
    template <uint32_t kStep = 1, class Count>
    __device__ __forceinline__ uint32_t
    narrow(uint32_t low,
           uint32_t high,
           uint32_t enough,
           const Count& countOf) const {
        // Rows of a warp go on together.
        if constexpr (!kLooksAtValues) {
            while (__any_sync(kFullWarp, low < high)) {
                halve<kStep>(low, high, enough, countOf);
            }
        } else {
#pragma unroll 1
            while (__any_sync(kFullWarp, low < high)) {
                halve<kStep>(low, high, enough, countOf);
            }
        }
        return high;
    }

   private:
    /// halveKeys, where the first steps are where the k-th key would be if
    /// those between low and high lay evenly, while they do. One loop, as a
    /// count of the keys is much code: what a warp does is in the cache of
    /// instructions then.
    template <class Count, int kCount>
    __device__ __forceinline__ uint32_t splitEvenly(
            uint32_t low,
            uint32_t high,
            uint32_t enough,
            const Count& countOf,
            const uint32_t (&keys)[kCount],
            const KeptEntries<kKept>& kept,
            uint32_t all,
            int until) const {
        constexpr uint32_t kStep = kKeyStep<T>;
        // Not where hardly any number is enough.
        const bool isWide = (enough - k) * kLeastPart >= k;
        int evenSteps = until > 1 && isWide ? kEvenSteps : 0;
        int untilKey = until - 1;
        uint32_t before = 0; // keys that are known to be before low
#pragma unroll 1
        while (low < high) {
            uint32_t middle = middleOf<kStep>(low, high);
            if (evenSteps > 0) {
                middle = evenly(low, high, before, all, (k + enough) / 2);
            } else if (--untilKey < 0) {
                untilKey = kStepsBetweenKeys - 1;
                high = greatestUpTo(high, keys, kept) | kIdleBits;
                if (low >= high) {
                    break;
                }
                middle = high - kStep;
            }
            const uint32_t range = all - before;
            const uint32_t count =
                    splitAt<kStep>(middle, low, high, enough, countOf);
            if (evenSteps > 0) {
                before = count < k ? count : before;
                all = count < k ? all : count;
                --evenSteps;
                if (all - before > range - range / 8) {
                    // They do not, as those of any power of two.
                    evenSteps = 0;
                } else if (evenSteps == 0) {
                    untilKey = kStepsAfterEven - 1;
                }
            }
        }
        return asKey(high);
    }

    /// Where `wanted` keys would be within, if those between low and high lay
    /// evenly.
    __device__ __forceinline__ static uint32_t evenly(
            uint32_t low,
            uint32_t high,
            uint32_t before,
            uint32_t all,
            uint32_t wanted) {
        const float from = keyValue(low);
        const float share =
                __fdividef(float(wanted - before), float(all - before));
        // Any number does: of an infinite difference and NaN it is an end.
        const uint32_t number =
                orderedKey(__fmaf_rn(keyValue(high) - from, share, from));
        return min(max(number | kIdleBits, low), high - kKeyStep<T>);
    }

    __device__ __forceinline__ static uint32_t asKey(uint32_t number) {
        return number & 0x80000000u ? number & ~kIdleBits : number | kIdleBits;
    }

    template <uint32_t kStep>
    __device__ __forceinline__ static uint32_t middleOf(
            uint32_t low,
            uint32_t high) {
        return low + ((high - low) / 2 & ~(kStep - 1));
    }

    template <uint32_t kStep, class Count>
    __device__ __forceinline__ void halve(
            uint32_t& low,
            uint32_t& high,
            uint32_t enough,
            const Count& countOf) const {
        splitAt<kStep>(middleOf<kStep>(low, high), low, high, enough, countOf);
    }

    /// Returns the count of the middle.
    template <uint32_t kStep, class Count>
    __device__ __forceinline__ uint32_t
    splitAt(uint32_t middle,
            uint32_t& low,
            uint32_t& high,
            uint32_t enough,
            const Count& countOf) const {
        const uint32_t count = countOf(middle);
        if (low >= high) {
            return count;
        }
        if (count < k) {
            low = middle + kStep;
        } else {
            high = middle;
            low = count <= enough ? middle : low;
        }
        return count;
    }
};

} // namespace faiss_bits

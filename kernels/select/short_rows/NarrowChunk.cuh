/// Some columns of a row of 16-bit keys in the registers of a warp, two keys in
/// each register.
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/select/short_rows/LaneGroup.cuh"
#include "kernels/select/short_rows/NarrowKeys.cuh"

namespace faiss_bits {

/// A bit for each key of a lane: those of the lower halves of 16 items, then of
/// the upper ones.
struct ChunkBits {
    uint32_t words[2] = {};

    __device__ __forceinline__ uint32_t count() const {
        return __popc(words[0]) + __popc(words[1]);
    }
};

/// The places of a row count from the start of the line of 128 bytes on that it
/// begins in. A chunk is 2,048 places.
template <class T>
class NarrowChunk {
    using Group = LaneGroup<kWarpSize>;
    using Keys = NarrowKeys<T>;
    static_assert(sizeof(T) == 2);

   public:
    using Two = typename Keys::Two;
    static constexpr int kWords = 32; // of a lane
    static constexpr uint32_t kPlaces = 2 * kWords * kWarpSize;

    __device__ __forceinline__
    NarrowChunk(const SelectParams& params, uint32_t row)
            : params_(params),
              keys_(static_cast<const T*>(params.keys) +
                    params.rowStride * int64_t(row)),
              skew_(uint32_t(reinterpret_cast<uintptr_t>(keys_) % kLineBytes) /
                    2) {}

    /// Places up to the row's end.
    __device__ __forceinline__ uint32_t end() const {
        return skew_ + params_.cols;
    }
    __device__ __forceinline__ const Two (&values() const)[kWords] {
        return values_;
    }
    /// The chunk's columns.
    __device__ __forceinline__ uint32_t firstColumn() const {
        return base_ == 0 ? 0 : base_ - skew_;
    }
    __device__ __forceinline__ uint32_t endColumn() const {
        return min(base_ + kPlaces, end()) - skew_;
    }

    /// Before and behind the row there is NaN, which is within no limit. Lanes
    /// turn every four items, so that keys of a period of a power of two do
    /// not meet in one lane.
    __device__ __forceinline__ void load(uint32_t base) {
        base_ = base;
        const uintptr_t from =
                reinterpret_cast<uintptr_t>(keys_) / kLineBytes * kLineBytes +
                base * 2 + Group::lane() * sizeof(uint32_t);
        const uint32_t end = this->end();
        const int left = int(end - base);
        const auto at = [&](int i) {
            const uintptr_t address = from ^ (turnOf(i) * sizeof(uint32_t));
            return __ldg(
                    reinterpret_cast<const uint32_t*>(address) + i * kWarpSize);
        };
        uint32_t loaded[kWords];
        loaded[0] = kNarrowNan;
        const uint32_t first = base + 2 * Group::lane();
        if (first >= skew_ && first + 1 < end) {
            loaded[0] = at(0);
        }
#pragma unroll
        for (int group = 0; group < kWords; group += kGroup) {
            if (left >= (group + kGroup) * kItemPlaces) {
#pragma unroll
                for (int i = max(group, 1); i < group + kGroup; ++i) {
                    loaded[i] = at(i);
                }
            } else {
#pragma unroll
                for (int i = max(group, 1); i < group + kGroup; ++i) {
                    loaded[i] = kNarrowNan;
                    if (placeOf(i) + 1 < left) {
                        loaded[i] = at(i);
                    }
                }
            }
        }
        // Words of which one half is of the row.
        if (base == 0 && first + 1 == skew_) {
            loaded[0] = bitsOf(0) << 16 | (kNarrowNan & 0xFFFFu);
        }
        if (end % 2 != 0 && left <= int(kPlaces)) {
            const uint32_t last =
                    bitsOf(params_.cols - 1) | (kNarrowNan & 0xFFFF0000u);
#pragma unroll
            for (int i = 0; i < kWords; ++i) {
                loaded[i] = placeOf(i) + 1 == left ? last : loaded[i];
            }
        }
        const Two sign = Keys::Pair::signOf(params_);
#pragma unroll
        for (int i = 0; i < kWords; ++i) {
            values_[i] = Keys::inOrder(loaded[i], sign);
        }
    }

    /// The least keys of parts of the lane's: neighbours are in different
    /// parts.
    template <int kParts>
    __device__ __forceinline__ void parts(Two (&parts)[kParts]) const {
#pragma unroll
        for (int i = 0; i < kWords; ++i) {
            const int part = (i + i / kParts) % kParts;
            parts[part] =
                    i < kParts ? values_[i] : __hmin2(parts[part], values_[i]);
        }
    }

    __device__ __forceinline__ ChunkBits upTo(uint32_t key) const {
        const Two most = Keys::both(key);
        ChunkBits bits;
#pragma unroll
        for (int i = 0; i < kWords; ++i) {
            bits.words[i / 16] |=
                    __hle2_mask(values_[i], most) & (0x00010001u << i % 16);
        }
        return bits;
    }

    __device__ __forceinline__ uint32_t
    columnOf(uint32_t item, uint32_t half) const {
        return base_ - skew_ + item * kItemPlaces +
                2 * (Group::lane() ^ turnOf(item)) + half;
    }

    /// The key of a column, in order, and the column.
    __device__ __forceinline__ uint32_t numberAt(uint32_t column) const {
        const Two sign = Keys::Pair::signOf(params_);
        return Keys::numberOf(bitsOf(column), sign) << 16 | column;
    }
    /// All ones behind the chunk.
    __device__ __forceinline__ uint32_t numberOrNone(uint32_t column) const {
        return column < endColumn() ? numberAt(column) : ~uint32_t(0);
    }

   private:
    static constexpr uintptr_t kLineBytes = 128;
    static constexpr int kItemPlaces = 2 * kWarpSize;
    static constexpr int kGroup = 8; // items that are loaded as one

    /// By four items, as each turn has an address in registers.
    __device__ __forceinline__ static constexpr int turnOf(int i) {
        return i & ~3;
    }
    /// Of the lower half of an item, from the chunk's start on.
    __device__ __forceinline__ static int placeOf(int i) {
        return i * kItemPlaces + 2 * (Group::lane() ^ turnOf(i));
    }
    __device__ __forceinline__ uint32_t bitsOf(uint32_t column) const {
        return __ldg(reinterpret_cast<const unsigned short*>(keys_) + column);
    }

    const SelectParams& params_;
    const T* keys_;
    const uint32_t skew_; // the first place of the row
    uint32_t base_ = 0;
    Two values_[kWords]; // in the order of "smallest first"
};

} // namespace faiss_bits

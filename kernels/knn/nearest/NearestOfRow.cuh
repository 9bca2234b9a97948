/// A row of the nearest of few vectors: from strips to the one.
///
/// Bound by: latency of reads of vectors, d / 8 components a lane; where rows
/// are few each has a warp, whose groups of lanes take vectors side by side.
#pragma once

#include "kernels/knn/certified/RowBound.cuh"
#include "kernels/knn/fused/tensor/NearestTiles.h"
#include "kernels/knn/nearest/NearestOfStrips.h"
#include "kernels/knn/nearest/PairDistances.cuh"

namespace faiss_bits {

/// Rows of which strips let go what may be the nearest: a block computes all of
/// their distances, where vectors and rows are so few. The second search has
/// few blocks for few vectors, and a row takes it as long as 64. A warp takes
/// 16 vectors at a time, so that of more than these the others wait too long.
constexpr int64_t kMostAllVectors = 256;
constexpr int64_t kMostAllComponents = int64_t(1) << 15;
constexpr int64_t kMostAllDistances = 1024;
/// Strips of one tile of a row that are met whole. Where more let go what may
/// be nearer, most vectors are as near.
constexpr uint32_t kMostWholeStrips = 8;

/// Of kLanes neighbours.
template <int kLanes>
__device__ __forceinline__ float greatestOfLanes(float value) {
#pragma unroll
    for (int distance = kLanes / 2; distance >= 1; distance /= 2) {
        value = fmaxf(value, __shfl_xor_sync(kFullWarp, value, distance));
    }
    return value;
}

/// At most so large is the value that was numbered in its last bits.
__device__ __forceinline__ double mostOf(float value) {
    return double(value) + fabs(double(value)) * kNearestValueError + 0x1p-146;
}

/// kLanes a query: eight, or a warp. Distances are of eight lanes in any case.
template <Metric kMetric, int kLanes>
class NearestOfRow {
    static constexpr int kGroups = kLanes / kPairLanes;
    static_assert(kGroups == 1 || kLanes == kWarpSize);

   public:
    /// Strips of tiles that lanes have bits for.
    static constexpr uint32_t kMostTileStrips = 32 * kLanes;

    __device__ NearestOfRow(const NearestParams& params, uint32_t row)
            : params_(params.search),
              strips_(params.nearest),
              rows_(params.rows),
              tile_(params.tile),
              row_(row),
              present_(row < params.search.rows) {}

    /// What strips kept. All lanes of the warp call it. Returns whether strips
    /// let vectors go that may be nearer than the best.
    __device__ __forceinline__ bool scoreKept() {
        const RowBound<kMetric> bound =
                imageBound<kMetric>(params_, present_ ? row_ : 0);
        const uint32_t first = findFirst();
        scoreFirst(first);
        // What has a value below `least` is farther than the best.
        const double key = keyValue(entryKey(best_));
        const double limit = bound.limitOf(key);
        const double norm = kMetric != Metric::InnerProduct && present_
                ? double(params_.queryNorms[row_])
                : 0.0;
        least_ = norm - limit - (norm + fabs(limit)) * 0x1p-40;
        const bool known = best_ != kNoEntry && isfinite(limit);
        isNan_ = bound.norm != bound.norm;
        // Else it is searched again, whatever the others are: where thousands
        // are as near, these would be thousands too.
        isEnough_ = known && mostOf(rest_) < least_;
        uint32_t unsure = tile_ && known && !isEnough_ ? unsureStrips() : 0;
        const bool isWhole = isMetWhole(unsure);
        isEnough_ = isEnough_ || isWhole;
        unsure = isWhole ? unsure : 0;
        for (uint32_t i = 0; i < strips_.perRow; i += kLanes) {
            for (int j = 0; j < 2; ++j) {
                uint32_t four = isEnough_ ? fourAt(i + lane(), j) : kNone;
                if (four == first || mostOf(valueAt_) < least_) {
                    four = kNone;
                }
                scoreFours(four, best_, scored_);
            }
        }
        if (tile_) {
            scoreStrips(unsure);
        }
        joinGroups();
        return present_ && known && !isEnough_ && !isNan_;
    }

    /// All vectors of rows of the warp that are unsure, one row after the
    /// other by all of its lanes.
    __device__ __forceinline__ void scoreAll(bool isUnsure) {
        constexpr uint32_t kRows = kWarpSize / kLanes;
        constexpr uint32_t kOfWarp = kWarpSize / kPairLanes;
        const uint32_t mine = threadIdx.x % kWarpSize / kLanes;
        const uint32_t group = threadIdx.x % kWarpSize / kPairLanes;
        for (uint32_t r = 0; r < kRows; ++r) {
            if (!__shfl_sync(kFullWarp, isUnsure, int(r * kLanes))) {
                continue;
            }
            uint64_t best = kNoEntry;
            uint32_t scored = 0;
            const uint32_t row = row_ - mine + r;
            for (uint32_t first = 0; first < params_.n;
                 first += kOfWarp * kFour) {
                scoreVectors<kFour>(
                        row,
                        [&](uint32_t i) {
                            return int64_t(first) + group * kFour + i;
                        },
                        [](uint32_t vector) { return vector; },
                        best,
                        scored);
            }
#pragma unroll
            for (int lanes = kPairLanes; lanes < kWarpSize; lanes *= 2) {
                best = min(best, __shfl_xor_sync(kFullWarp, best, lanes));
                scored += __shfl_xor_sync(kFullWarp, scored, lanes);
            }
            if (r == mine) {
                best_ = best;
                scored_ += scored;
                isEnough_ = true;
            }
        }
    }

    /// Returns the number of distances, to a lane of the row.
    __device__ __forceinline__ uint32_t write() const {
        if (lane() != 0 || !present_) {
            return 0;
        }
        uint8_t* flags = params_.flags + 2 * int64_t(row_);
        flags[0] = !(isNan_ || isEnough_);
        flags[1] = 0;
        writePlace<kMetric>(params_, row_, 0, isNan_ ? kNoEntry : best_);
        return scored_;
    }

   private:
    static constexpr uint32_t kNone = 0xffffffffu;
    static constexpr uint32_t kFour = 4;

    /// Of the row's.
    static __device__ __forceinline__ uint32_t lane() {
        return threadIdx.x % kLanes;
    }

    /// The eight lanes of a distance, of the row's.
    static __device__ __forceinline__ uint32_t group() {
        return lane() / kPairLanes;
    }

    /// The first lane, of kOf neighbours, for which it is true; kNone if it is
    /// for none. All lanes of the warp call it.
    template <int kOf>
    static __device__ __forceinline__ uint32_t firstLane(bool isTrue) {
        const unsigned shift = threadIdx.x % kWarpSize / kOf * kOf;
        const unsigned lanes = __ballot_sync(kFullWarp, isTrue) >> shift &
                (kFullWarp >> (kWarpSize - kOf));
        return lanes ? __ffs(lanes) - 1 : kNone;
    }

    /// The best of what the groups have met, and how many they have. All lanes
    /// of the warp call it.
    __device__ __forceinline__ void joinGroups() {
#pragma unroll
        for (int lanes = kPairLanes; lanes < kLanes; lanes *= 2) {
            best_ = min(best_, __shfl_xor_sync(kFullWarp, best_, lanes));
            scored_ += __shfl_xor_sync(kFullWarp, scored_, lanes);
        }
    }

    /// Of strips of tiles, those that this lane has, and that let go what may
    /// be nearer: bit t is that of strip lane() + kLanes t.
    __device__ __forceinline__ uint32_t unsureStrips() const {
        uint32_t bits = 0;
        for (uint32_t i = lane(), t = 0; i < strips_.perRow; i += kLanes, ++t) {
            const float rest = strips_.rests[size_t(row_) * strips_.perRow + i];
            // There may be no other vector at all.
            const bool isSure =
                    rest == -__builtin_huge_valf() || mostOf(rest) < least_;
            bits |= uint32_t(!isSure) << t;
        }
        return bits;
    }

    /// Whether these are so few that all their vectors are met. All lanes of
    /// the warp call it.
    __device__ __forceinline__ bool isMetWhole(uint32_t unsure) const {
        uint32_t count = __popc(unsure);
#pragma unroll
        for (int distance = kLanes / 2; distance >= 1; distance /= 2) {
            count += __shfl_xor_sync(kFullWarp, count, distance);
        }
        return count > 0 && count <= kMostWholeStrips;
    }

    /// All fours of these strips. All lanes of the warp call it.
    __device__ __forceinline__ void scoreStrips(uint32_t unsure) {
        while (__any_sync(kFullWarp, unsure != 0)) {
            const uint32_t from = firstLane<kLanes>(unsure != 0);
            const uint32_t next = from + kLanes * (__ffs(unsure) - 1);
            const uint32_t strip = __shfl_sync(
                    kFullWarp, next, from == kNone ? 0 : from, kLanes);
            // Fours side by side are of different groups.
            const uint32_t ofLane = lane() % kPairLanes * kGroups + group();
            for (uint32_t i = 0; i < tile_ / 16; i += kLanes) {
                const uint32_t g = i + ofLane;
                const uint32_t four = g < tile_ / 16
                        ? nearestFourOf(tile_, strip, g)
                        : params_.n;
                scoreFours(
                        from == kNone || four >= params_.n ? kNone : four,
                        best_,
                        scored_);
            }
            if (lane() == from) {
                unsure &= unsure - 1;
            }
        }
    }

    /// The four at place j of a strip, and its value to valueAt_.
    __device__ __forceinline__ uint32_t fourAt(uint32_t i, int j) {
        if (!present_ || i >= strips_.perRow) {
            return kNone;
        }
        const NearestStrip& strip =
                strips_.strips[size_t(row_) * strips_.perRow + i];
        valueAt_ = strip.values[j];
        return valueAt_ > -__builtin_huge_valf() && strip.columns[j] < params_.n
                ? strip.columns[j]
                : kNone;
    }

    /// The four of the largest value; the greatest rest to rest_.
    __device__ __forceinline__ uint32_t findFirst() {
        float value = -__builtin_huge_valf();
        uint32_t four = kNone;
        rest_ = value;
        for (uint32_t i = lane(); i < strips_.perRow; i += kLanes) {
            const uint32_t candidate = fourAt(i, 0);
            if (candidate != kNone && valueAt_ > value) {
                value = valueAt_;
                four = candidate;
            }
            if (present_) {
                rest_ =
                        fmaxf(rest_,
                              strips_.rests[size_t(row_) * strips_.perRow + i]);
            }
        }
        rest_ = greatestOfLanes<kLanes>(rest_);
        const float greatest = greatestOfLanes<kLanes>(value);
        const uint32_t from =
                firstLane<kLanes>(four != kNone && value == greatest);
        four = __shfl_sync(kFullWarp, four, from == kNone ? 0 : from, kLanes);
        return from == kNone ? kNone : four;
    }

    /// The first four: each group has some of its vectors.
    __device__ __forceinline__ void scoreFirst(uint32_t four) {
        constexpr uint32_t kOfGroup = kFour / kGroups;
        scoreMembers<kOfGroup>(four, group() * kOfGroup, best_, scored_);
#pragma unroll
        for (int lanes = kPairLanes; lanes < kLanes; lanes *= 2) {
            best_ = min(best_, __shfl_xor_sync(kFullWarp, best_, lanes));
        }
    }

    /// The least of `best` and the entries of members first .. first + kCount
    /// - 1 of a four, by the group.
    template <uint32_t kCount>
    __device__ __forceinline__ void scoreMembers(
            uint32_t four,
            uint32_t first,
            uint64_t& best,
            uint32_t& scored) const {
        scoreVectors<kCount>(
                row_,
                [&](uint32_t i) {
                    return four == kNone
                            ? params_.n
                            : int64_t(nearestColumn(four, first + i));
                },
                [&](uint32_t row) { return rows_.vectorOf(row); },
                best,
                scored);
    }

    /// The same of the vectors numberOf(placeOf(0..kCount - 1)) and a query, if
    /// there is the place.
    template <uint32_t kCount, class PlaceOf, class NumberOf>
    __device__ __forceinline__ void scoreVectors(
            uint32_t query,
            const PlaceOf& placeOf,
            const NumberOf& numberOf,
            uint64_t& best,
            uint32_t& scored) const {
        const float* components = params_.queries +
                int64_t(query < params_.rows ? query : 0) * params_.d;
        withVectors(params_.vectors, [&](const auto* data) {
            using Vector = decltype(data);
            Vector vectors[kCount];
            uint32_t numbers[kCount];
            bool any[kCount];
#pragma unroll
            for (uint32_t i = 0; i < kCount; ++i) {
                const int64_t place = placeOf(i);
                any[i] = place < params_.n;
                numbers[i] = any[i] ? numberOf(uint32_t(place)) : 0;
                vectors[i] =
                        data + int64_t(numbers[i]) * params_.vectors.rowStride;
            }
            // A warp of a row waits for fewer others.
            constexpr int kAhead = kGroups == 1 ? 4 : kCount == 1 ? 16 : 8;
            double distances[kCount];
            pairDistances<kMetric, kAhead>(
                    vectors, components, any[0] ? params_.d : 0, distances);
#pragma unroll
            for (uint32_t i = 0; i < kCount; ++i) {
                if (any[i]) {
                    best = min(
                            best,
                            distanceEntry<kMetric>(distances[i], numbers[i]));
                    ++scored;
                }
            }
        });
    }

    /// The same for the fours of all lanes, each by its own group.
    __device__ __forceinline__ void scoreFours(
            uint32_t four,
            uint64_t& best,
            uint32_t& scored) const {
        while (__any_sync(kFullWarp, four != kNone)) {
            const uint32_t from = firstLane<kPairLanes>(four != kNone);
            const uint32_t next = __shfl_sync(
                    kFullWarp, four, from == kNone ? 0 : from, kPairLanes);
            scoreMembers<kFour>(from == kNone ? kNone : next, 0, best, scored);
            if (lane() % kPairLanes == from) {
                four = kNone;
            }
        }
    }

    const CertifiedParams& params_;
    const NearestStrips& strips_;
    const SpreadRows& rows_;
    const uint32_t tile_;
    const uint32_t row_;
    const bool present_;
    float valueAt_ = 0;
    float rest_ = 0;
    double least_ = 0;
    uint64_t best_ = kNoEntry;
    uint32_t scored_ = 0;
    bool isEnough_ = false;
    bool isNan_ = false;
};

} // namespace faiss_bits

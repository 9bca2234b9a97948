/// A row of the nearest of few vectors: from strips to the one.
#pragma once

#include "kernels/knn/certified/RowBound.cuh"
#include "kernels/knn/fused/tensor/NearestTiles.h"
#include "kernels/knn/nearest/NearestOfStrips.h"

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

/// Of the eight lanes of a group.
__device__ __forceinline__ float greatestOfGroup(float value) {
#pragma unroll
    for (int distance = kPairLanes / 2; distance >= 1; distance /= 2) {
        value = fmaxf(value, __shfl_xor_sync(kFullWarp, value, distance));
    }
    return value;
}

/// At most so large is the value that was numbered in its last bits.
__device__ __forceinline__ double mostOf(float value) {
    return double(value) + fabs(double(value)) * kNearestValueError + 0x1p-146;
}

/// pairDistance of several row-major vectors and one query.
template <Metric kMetric, int kCount, class T>
__device__ __forceinline__ void pairDistances(
        const T* const (&x)[kCount],
        const float* q,
        int d,
        double (&out)[kCount]) {
    using Terms = canonical::Terms<kMetric>;
    constexpr int kAhead = 4; // loads in flight, of each
    const int lane = threadIdx.x % kPairLanes;
    double sums[kCount][Terms::kSums] = {};
    for (int begin = lane; begin < d; begin += kPairLanes * kAhead) {
        float xs[kCount][kAhead];
        float qs[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const int c = begin + i * kPairLanes;
            qs[i] = c < d ? q[c] : 0.0f;
#pragma unroll
            for (int v = 0; v < kCount; ++v) {
                xs[v][i] = c < d ? toFloat(x[v][c]) : 0.0f;
            }
        }
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const double component = qs[i];
#pragma unroll
            for (int v = 0; v < kCount; ++v) {
                Terms::add(
                        sums[v],
                        double(xs[v][i]),
                        component,
                        canonical::Power{});
            }
        }
    }
#pragma unroll
    for (int v = 0; v < kCount; ++v) {
#pragma unroll
        for (int j = 0; j < Terms::kSums; ++j) {
#pragma unroll
            for (int distance = kPairLanes / 2; distance >= 1; distance /= 2) {
                const double other =
                        __shfl_xor_sync(kFullWarp, sums[v][j], distance);
                sums[v][j] = Terms::join(sums[v][j], other);
            }
        }
        out[v] = Terms::finish(sums[v]);
    }
}

/// Eight lanes a query.
template <Metric kMetric>
class NearestOfRow {
   public:
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
        scoreFour(first, best_, scored_);
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
        for (uint32_t i = 0; i < strips_.perRow; i += kPairLanes) {
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
        return present_ && known && !isEnough_ && !isNan_;
    }

    /// All vectors of rows of the warp that are unsure, one row after the
    /// other by all of its lanes.
    __device__ __forceinline__ void scoreAll(bool isUnsure) {
        constexpr uint32_t kGroups = kWarpSize / kPairLanes;
        const uint32_t group = threadIdx.x % kWarpSize / kPairLanes;
        for (uint32_t g = 0; g < kGroups; ++g) {
            if (!__shfl_sync(kFullWarp, isUnsure, int(g * kPairLanes))) {
                continue;
            }
            uint64_t best = kNoEntry;
            uint32_t scored = 0;
            const uint32_t row = row_ - group + g;
            for (uint32_t first = 0; first < params_.n;
                 first += kGroups * kFour) {
                scoreVectors(
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
            if (g == group) {
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

    static __device__ __forceinline__ uint32_t lane() {
        return threadIdx.x % kPairLanes;
    }

    /// The first lane of the group for which it is true; kNone if it is for
    /// none. All lanes of the warp call it.
    static __device__ __forceinline__ uint32_t firstLane(bool isTrue) {
        const unsigned shift =
                threadIdx.x % kWarpSize / kPairLanes * kPairLanes;
        const unsigned lanes =
                __ballot_sync(kFullWarp, isTrue) >> shift & 0xffu;
        return lanes ? __ffs(lanes) - 1 : kNone;
    }

    /// Of strips of tiles, those that this lane has, and that let go what may
    /// be nearer: bit t is that of strip lane() + 8 t.
    __device__ __forceinline__ uint32_t unsureStrips() const {
        uint32_t bits = 0;
        for (uint32_t i = lane(), t = 0; i < strips_.perRow;
             i += kPairLanes, ++t) {
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
        for (int distance = kPairLanes / 2; distance >= 1; distance /= 2) {
            count += __shfl_xor_sync(kFullWarp, count, distance);
        }
        return count > 0 && count <= kMostWholeStrips;
    }

    /// All fours of these strips. All lanes of the warp call it.
    __device__ __forceinline__ void scoreStrips(uint32_t unsure) {
        while (__any_sync(kFullWarp, unsure != 0)) {
            const uint32_t from = firstLane(unsure != 0);
            const uint32_t next = from + kPairLanes * (__ffs(unsure) - 1);
            const uint32_t strip = __shfl_sync(
                    kFullWarp, next, from == kNone ? 0 : from, kPairLanes);
            for (uint32_t g = lane(); g < tile_ / 16; g += kPairLanes) {
                const uint32_t four = nearestFourOf(tile_, strip, g);
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
        for (uint32_t i = lane(); i < strips_.perRow; i += kPairLanes) {
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
        rest_ = greatestOfGroup(rest_);
        const float greatest = greatestOfGroup(value);
        const uint32_t from = firstLane(four != kNone && value == greatest);
        four = __shfl_sync(
                kFullWarp, four, from == kNone ? 0 : from, kPairLanes);
        return from == kNone ? kNone : four;
    }

    /// The least of `best` and the entries of a four, by the group.
    __device__ __forceinline__ void scoreFour(
            uint32_t four,
            uint64_t& best,
            uint32_t& scored) const {
        scoreVectors(
                row_,
                [&](uint32_t i) {
                    return four == kNone ? params_.n
                                         : int64_t(nearestColumn(four, i));
                },
                [&](uint32_t row) { return rows_.vectorOf(row); },
                best,
                scored);
    }

    /// The same of the vectors numberOf(placeOf(0..3)) and a query, if there
    /// is the place.
    template <class PlaceOf, class NumberOf>
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
            Vector vectors[kFour];
            uint32_t numbers[kFour];
            bool any[kFour];
#pragma unroll
            for (uint32_t i = 0; i < kFour; ++i) {
                const int64_t place = placeOf(i);
                any[i] = place < params_.n;
                numbers[i] = any[i] ? numberOf(uint32_t(place)) : 0;
                vectors[i] =
                        data + int64_t(numbers[i]) * params_.vectors.rowStride;
            }
            double distances[kFour];
            pairDistances<kMetric>(
                    vectors, components, any[0] ? params_.d : 0, distances);
#pragma unroll
            for (uint32_t i = 0; i < kFour; ++i) {
                if (any[i]) {
                    best = min(
                            best,
                            distanceEntry<kMetric>(distances[i], numbers[i]));
                    ++scored;
                }
            }
        });
    }

    /// The same for the fours of all lanes of the group.
    __device__ __forceinline__ void scoreFours(
            uint32_t four,
            uint64_t& best,
            uint32_t& scored) const {
        while (__any_sync(kFullWarp, four != kNone)) {
            const uint32_t from = firstLane(four != kNone);
            const uint32_t next = __shfl_sync(
                    kFullWarp, four, from == kNone ? 0 : from, kPairLanes);
            scoreFour(from == kNone ? kNone : next, best, scored);
            if (lane() == from) {
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

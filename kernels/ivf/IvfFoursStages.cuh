/// Four groups of 32 vectors of codes on their way to shared memory while
/// earlier ones are added up, of four vectors a lane.
#pragma once

#include "kernels/ivf/CodesOfFour.cuh"
#include "kernels/ivf/IvfStageRing.cuh"

namespace faiss_bits {

/// A stage has up to kDims components of each group.
///
/// Two warps have a group. A lane has one slot of the sums (CanonicalPair.cuh)
/// of four vectors whose codes lie side by side: step, start, centroid and
/// query are read once for four components, and their codes by one load.
template <ListCoding kCoding>
class IvfFoursStages : public IvfStageRing<kCoding> {
    using Ring = IvfStageRing<kCoding>;

   public:
    static constexpr int kGroups = kIvfFoursVectors / kListGroup;
    static constexpr int kFour = 4; // vectors of a lane
    static constexpr int kGroupThreads = kIvfDirectThreads / kGroups;
    static constexpr int kDims = ivfFoursDims(Ring::kBits);

    using Ring::Ring;

    /// The group that this warp adds up, of a tile.
    __device__ __forceinline__ static uint32_t groupOfWarp() {
        return threadIdx.x / kGroupThreads;
    }

    /// Begins to copy components `begin` and on of a list: of its centroid, and
    /// where the warp wants its group, which is number `group` of the list, of
    /// that. There is one copy for every stage, if only an empty one.
    __device__ __forceinline__ void copy(
            const void* vectors,
            uint32_t list,
            uint32_t group,
            int begin,
            bool isWanted) {
        const int d = this->dims();
        const int count = min(d - begin, kDims);
        if (isWanted) {
            this->template copyCodes<kGroupThreads, 4>(
                    static_cast<const uint8_t*>(vectors) +
                            (int64_t(group) * d + begin) * kRowBytes,
                    count * kRowBytes,
                    groupOfWarp() * groupBytes());
        }
        static_assert(kDims <= kIvfDirectDims);
        this->copyCentroid(
                list, d, begin, count, [&] { return centroidOf(to_); });
        this->copyNothing();
    }

    /// Adds the components that the stage has, `begin` and on, to the sums of
    /// this lane's slot and vectors of some queries, which lie `stride` apart.
    template <Metric kMetric, int kQueries, int kMost>
    __device__ __forceinline__ void add(
            int begin,
            const double* queries,
            int stride,
            double (&sums)[kMost][kFour]) const {
        if (this->centroids()) {
            addAll<kMetric, kQueries, true>(begin, queries, stride, sums);
        } else {
            addAll<kMetric, kQueries, false>(begin, queries, stride, sums);
        }
    }

    /// The keys of this warp's vectors, of the sums of their slots, to those of
    /// a tile.
    template <Metric kMetric>
    __device__ __forceinline__ static void put(
            const double (&sums)[kFour],
            uint32_t (&keys)[kIvfFoursVectors]) {
        using Terms = canonical::Terms<kMetric>;
        // As joinSlots(): slots 0 and 4, then 2 and 6 to them, then the odd
        // ones; a lane goes on with half of its vectors, and with one.
        static_assert(kSlots == 8 && kFour == 4);
        const bool isUpper = threadIdx.x & 4;
        const bool isOdd = threadIdx.x & 2;
        double two[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const double kept = isUpper ? sums[i + 2] : sums[i];
            const double given = isUpper ? sums[i] : sums[i + 2];
            two[i] = Terms::join(kept, __shfl_xor_sync(kFullWarp, given, 4));
        }
        const double kept = isOdd ? two[1] : two[0];
        const double given = isOdd ? two[0] : two[1];
        double sum[] = {
                Terms::join(kept, __shfl_xor_sync(kFullWarp, given, 2))};
        sum[0] = Terms::join(sum[0], __shfl_xor_sync(kFullWarp, sum[0], 1));
        const uint32_t key =
                entryKey(distanceEntry<kMetric>(Terms::finish(sum), 0));
        if (threadIdx.x % 2 == 0) {
            keys[groupOfWarp() * kListGroup + fourOfLane() * kFour +
                 (isUpper ? 2 : 0) + (isOdd ? 1 : 0)] = key;
        }
    }

   private:
    using Ring::from_;
    using Ring::kBits;
    using Ring::kRowBytes;
    using Ring::kSlots;
    using Ring::params_;
    using Ring::placeOf;
    using Ring::starts_;
    using Ring::steps_;
    using Ring::to_;
    static_assert(kGroupThreads == kListGroup / kFour * kSlots);

    /// Of a stage.
    __device__ __forceinline__ uint32_t groupBytes() const {
        return uint32_t(IvfStagedPlan::foursGroupBytes(this->dims(), kBits));
    }
    __device__ __forceinline__ float* centroidOf(int i) const {
        return reinterpret_cast<float*>(
                this->stage(i) + kGroups * groupBytes());
    }
    /// The four of this lane, of its group.
    __device__ __forceinline__ static int fourOfLane() {
        return int(threadIdx.x % kGroupThreads / kSlots);
    }

    template <Metric kMetric, int kQueries, bool kResidual, int kMost>
    __device__ __forceinline__ void addAll(
            int begin,
            const double* queries,
            int stride,
            double (&sums)[kMost][kFour]) const {
        using Terms = canonical::Terms<kMetric>;
        static_assert(Terms::kSums == 1 && kQueries <= kMost);
        const int count = min(this->dims() - begin, kDims);
        const int slot = int(threadIdx.x % kSlots);
        const Codes codes(this->stage(from_) + groupOfWarp() * groupBytes());
        const float* centroid = centroidOf(from_) + slot;
        const int first = begin + slot;
        const auto addOne = [&](int i) {
            const int c = first + i * kSlots;
            float xs[kFour];
            codes.read(i, xs);
            if constexpr (kIsScalar<kCoding>) {
                const float step = steps_[c];
                const float start = starts_[c];
#pragma unroll
                for (int j = 0; j < kFour; ++j) {
                    xs[j] = __fmaf_rn(xs[j], step, start);
                }
            }
            if constexpr (kResidual) {
                const float center = centroid[i * kSlots];
#pragma unroll
                for (int j = 0; j < kFour; ++j) {
                    xs[j] = __fadd_rn(xs[j], center);
                }
            }
            double values[kFour];
#pragma unroll
            for (int j = 0; j < kFour; ++j) {
                values[j] = double(xs[j]);
            }
#pragma unroll
            for (int q = 0; q < kQueries; ++q) {
                const double query = queries[q * stride + c];
#pragma unroll
                for (int j = 0; j < kFour; ++j) {
                    double one[] = {sums[q][j]};
                    Terms::add(
                            one, values[j], query, params_.direct.search.power);
                    sums[q][j] = one[0];
                }
            }
        };
        // Few enough that those of all numbers of queries stay in the cache.
        constexpr int kAtOnce = kQueries <= 2 ? 4 : 2;
#pragma unroll kAtOnce
        for (int i = 0; i < count / kSlots; ++i) {
            addOne(i);
        }
        if (slot < count % kSlots) {
            addOne(count / kSlots);
        }
    }

    /// Components slot, slot + 8... of this lane's vectors.
    struct Codes {
        const uint8_t* from; // of the first one
        int high = 0;        // of six bits: bytes to the second word
        int shift = 0;       // of that, in the first

        __device__ __forceinline__ explicit Codes(const uint8_t* group) {
            const int slot = int(threadIdx.x % kSlots);
            const int four = fourOfLane();
            if constexpr (kBits == 6) {
                // Three bytes, in one word or in two.
                const int word = 3 * four / 4;
                from = group + slot * kRowBytes + word * 4;
                high = word + 1 < kRowBytes / 4 ? 4 : 0;
                shift = 3 * four % 4 * 8;
            } else {
                from = group +
                        placeOf(slot * kRowBytes + four * kFour * kBits / 8);
            }
        }

        __device__ __forceinline__ void read(int i, float (&xs)[kFour]) const {
            const uint8_t* row = from + i * kSlots * kRowBytes;
            if constexpr (kCoding == ListCoding::Float16) {
                const uint2 codes = *reinterpret_cast<const uint2*>(row);
#pragma unroll
                for (int j = 0; j < kFour; ++j) {
                    const uint32_t two = j < 2 ? codes.x : codes.y;
                    xs[j] = __half2float(
                            __ushort_as_half(uint16_t(two >> j % 2 * 16)));
                }
            } else {
                uint32_t codes;
                if constexpr (kBits == 6) {
                    codes = __funnelshift_r(
                            *reinterpret_cast<const uint32_t*>(row),
                            *reinterpret_cast<const uint32_t*>(row + high),
                            shift);
                } else {
                    codes = *reinterpret_cast<
                            const typename CodesOfFour<kBits>::Word*>(row);
                }
#pragma unroll
                for (int j = 0; j < kFour; ++j) {
                    xs[j] = CodesOfFour<kBits>::number(codes, j);
                }
            }
        }
    };
};

} // namespace faiss_bits

/// Groups of 32 vectors of codes on their way to shared memory while earlier
/// ones are added up: reads of bytes, which are too few to wait for one by one,
/// come sixteen bytes at a time.
#pragma once

#include "kernels/ivf/IvfStageRing.cuh"

namespace faiss_bits {

/// A stage has up to kIvfDirectDims components of a group.
///
/// Eight lanes have a vector, one a slot of its sum (CanonicalPair.cuh), and a
/// warp four vectors.
template <ListCoding kCoding>
class IvfGroupStages : public IvfStageRing<kCoding> {
    using Ring = IvfStageRing<kCoding>;

   public:
    using Ring::kSlots;
    using Ring::Ring;

    /// Begins to copy components `begin` and on of a group of a list. There is
    /// one copy for every stage, if only an empty one.
    __device__ __forceinline__ void copy(
            const void* vectors,
            uint32_t list,
            uint32_t group,
            int begin) {
        const int d = this->dims();
        const int count = min(d - begin, kIvfDirectDims);
        this->template copyCodes<kIvfDirectThreads, 2>(
                static_cast<const uint8_t*>(vectors) +
                        (int64_t(group) * d + begin) * kRowBytes,
                count * kRowBytes,
                0);
        this->copyCentroid(
                list, d, begin, count, [&] { return centroidOf(to_); });
        this->copyNothing();
    }

    /// Adds the components that the stage has, `begin` and on, to the sums of
    /// this lane's slot of some queries, which lie `stride` apart, with zeros
    /// behind their last component.
    template <Metric kMetric, int kQueries, int kMost>
    __device__ __forceinline__ void add(
            int begin,
            const double* queries,
            int stride,
            double (&sums)[kMost]) const {
        if (this->dims() - begin >= kIvfDirectDims) {
            addPart<kMetric, kQueries, true>(begin, queries, stride, sums);
        } else {
            addPart<kMetric, kQueries, false>(begin, queries, stride, sums);
        }
    }

    /// The key of this lane's vector, of the sums of its slots.
    template <Metric kMetric>
    __device__ __forceinline__ static uint32_t keyOf(double sum) {
        using Terms = canonical::Terms<kMetric>;
        double sums[] = {sum};
        joinSlots<Terms>(sums);
        return entryKey(distanceEntry<kMetric>(Terms::finish(sums), 0));
    }

    /// This lane's key to those of a group.
    __device__ __forceinline__ static void put(
            uint32_t key,
            uint32_t (&keys)[kListGroup]) {
        if (threadIdx.x % kSlots == 0) {
            keys[threadIdx.x / kSlots] = key;
        }
    }

   private:
    static_assert(kIvfDirectThreads == kListGroup * kSlots);
    using Ring::from_;
    using Ring::kBits;
    using Ring::kRowBytes;
    using Ring::params_;
    using Ring::placeOf;
    using Ring::to_;

    /// At the end of a stage.
    __device__ __forceinline__ float* centroidOf(int i) const {
        return reinterpret_cast<float*>(this->stage(i + 1)) -
                (min(this->dims(), kIvfDirectDims) + 3) / 4 * 4;
    }

    /// kWhole: the stage has kIvfDirectDims components.
    template <Metric kMetric, int kQueries, bool kWhole, int kMost>
    __device__ __forceinline__ void addPart(
            int begin,
            const double* queries,
            int stride,
            double (&sums)[kMost]) const {
        using Terms = canonical::Terms<kMetric>;
        static_assert(Terms::kSums == 1 && kQueries <= kMost);
        const int d = this->dims();
        const int c = begin + int(threadIdx.x % kSlots); // the slot's first
        // What would lie behind the last component is read before it.
        const int there = kWhole ? c : min(c, d - 1);
        const auto stepOf = [&](int i) {
            return (kWhole ? i : min(i, (d - 1 - there) / kSlots)) * kSlots;
        };
        const Codes codes(*this, there - begin);
        float xs[kIvfDirectAhead];
#pragma unroll
        for (int i = 0; i < kIvfDirectAhead; ++i) {
            xs[i] = codes(stepOf(i), there + stepOf(i));
        }
        if (this->centroids()) {
            const float* centroid = centroidOf(from_) + (there - begin);
#pragma unroll
            for (int i = 0; i < kIvfDirectAhead; ++i) {
                xs[i] = __fadd_rn(xs[i], centroid[stepOf(i)]);
            }
        }
#pragma unroll
        for (int i = 0; i < kIvfDirectAhead; ++i) {
            const int at = i * kSlots;
            // Components beyond d are zeros, which no sum notices.
            const double x = kWhole || c + at < d ? double(xs[i]) : 0.0;
#pragma unroll
            for (int q = 0; q < kQueries; ++q) {
                double one[] = {sums[q]};
                Terms::add(
                        one,
                        x,
                        queries[q * stride + c + at],
                        params_.direct.search.power);
                sums[q] = one[0];
            }
        }
    }

    /// Components of this lane's vector.
    struct Codes {
        const IvfGroupStages& stages;
        const uint8_t* from; // of the stage's component `offset`
        int shift;           // of less than eight bits

        __device__ __forceinline__ Codes(const IvfGroupStages& of, int offset)
                : stages(of) {
            const int bit = int(threadIdx.x / kSlots) * kBits;
            shift = bit % 8;
            from = of.stage(of.from_) + placeOf(offset * kRowBytes + bit / 8);
        }

        /// Of component offset + at, which is component c of the vector; at is
        /// a multiple of kSlots.
        __device__ __forceinline__ float operator()(int at, int c) const {
            const uint8_t* code = from + at * kRowBytes;
            if constexpr (kCoding == ListCoding::Float16) {
                return __half2float(*reinterpret_cast<const __half*>(code));
            } else {
                uint32_t number = code[0];
                if constexpr (kBits == 6) {
                    // Behind the last one there is something.
                    number |= uint32_t(code[1]) << 8;
                }
                if constexpr (kBits < 8) {
                    number = number >> shift & ((1u << kBits) - 1);
                }
                return __fmaf_rn(
                        numberOf(number), stages.steps_[c], stages.starts_[c]);
            }
        }
    };
};

} // namespace faiss_bits

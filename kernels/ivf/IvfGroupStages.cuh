/// Groups of 32 vectors of codes on their way to shared memory while earlier
/// ones are added up: reads of bytes, which are too few to wait for one by one,
/// come sixteen bytes at a time.
#pragma once

#include "kernels/ivf/IvfDirectSums.cuh"
#include "kernels/ivf/IvfStagedParams.h"
#include "kernels/knn/certified/JoinSlots.cuh"

namespace faiss_bits {

/// A stage has up to kIvfDirectDims components of a group, as they lie in the
/// list, but that 16 bytes are exchanged so that eight components of four
/// vectors lie in different banks. Behind them are those of the list's
/// centroid, where vectors are residuals.
///
/// Eight lanes have a vector, one a slot of its sum (CanonicalPair.cuh), and a
/// warp four vectors.
template <ListCoding kCoding>
class IvfGroupStages {
   public:
    static constexpr int kSlots = canonical::kSlots;

    /// memory: of all stages, on sixteen bytes. steps, starts: those of a
    /// scalar coding.
    __device__ __forceinline__ IvfGroupStages(
            uint8_t* memory,
            const IvfStagedParams& params,
            const float* steps,
            const float* starts)
            : memory_(memory),
              params_(params),
              steps_(steps),
              starts_(starts) {}

    __device__ __forceinline__ int count() const {
        return params_.stages;
    }

    /// Begins to copy components `begin` and on of a group of a list. There is
    /// one copy for every stage, if only an empty one.
    __device__ __forceinline__ void copy(
            const void* vectors,
            uint32_t list,
            uint32_t group,
            int begin) {
        const int d = dims();
        const int count = min(d - begin, kIvfDirectDims);
        copyCodes(
                static_cast<const uint8_t*>(vectors) +
                        (int64_t(group) * d + begin) * kRowBytes,
                count * kRowBytes);
        static_assert(kIvfDirectDims <= kIvfDirectThreads);
        if (centroids() && int(threadIdx.x) < count) {
            asm volatile(
                    "cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(
                            sharedAddressOf(centroidOf(to_) + threadIdx.x)),
                    "l"(centroids() + int64_t(list) * d + begin + threadIdx.x)
                    : "memory");
        }
        copyNothing();
    }
    __device__ __forceinline__ void copyNothing() {
        asm volatile("cp.async.commit_group;" ::: "memory");
        to_ = after(to_);
    }

    /// Until the stage that is looked at has arrived for all threads, and all
    /// have left the one before, to which the next copy goes.
    __device__ __forceinline__ void wait() const {
        static_assert(IvfStagedPlan::kMostStages == 3);
        if (count() == 3) {
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncthreads();
    }

    __device__ __forceinline__ void next() {
        from_ = after(from_);
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
        if (dims() - begin >= kIvfDirectDims) {
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
    static constexpr int kChunk = 16;
    static constexpr int kBits = codeBitsOf(kCoding, ListLayout::Interleaved);
    static constexpr int kRowBytes = kListGroup * kBits / 8; // of a component
    /// Chunks of a component that are exchanged.
    static constexpr int kChunks =
            kRowBytes % kChunk == 0 ? kRowBytes / kChunk : 1;
    static_assert(isStaged(kCoding) && kSlots % kChunks == 0);

    __device__ __forceinline__ int dims() const {
        return params_.direct.search.d;
    }
    /// nullptr: vectors are no residuals.
    __device__ __forceinline__ const float* centroids() const {
        return params_.direct.search.lists.decoding.centroids;
    }

    __device__ __forceinline__ int after(int stage) const {
        return stage + 1 == count() ? 0 : stage + 1;
    }
    __device__ __forceinline__ uint8_t* stage(int i) const {
        return memory_ + i * params_.stageBytes;
    }
    /// At the end of a stage.
    __device__ __forceinline__ float* centroidOf(int i) const {
        return reinterpret_cast<float*>(stage(i + 1)) -
                (min(dims(), kIvfDirectDims) + 3) / 4 * 4;
    }
    __device__ __forceinline__ static uint32_t sharedAddressOf(const void* at) {
        return uint32_t(__cvta_generic_to_shared(at));
    }

    /// What is exchanged in the places of chunks of a component.
    __device__ __forceinline__ static int exchangeOf(int component) {
        return component / (kSlots / kChunks) % kChunks;
    }
    /// Where a byte of the codes is.
    __device__ __forceinline__ static int placeOf(int byte) {
        return kChunks > 1 ? byte ^ (exchangeOf(byte / kRowBytes) * kChunk)
                           : byte;
    }

    __device__ __forceinline__ void copyCodes(const uint8_t* codes, int bytes)
            const {
        uint8_t* to = stage(to_);
        const int thread = int(threadIdx.x);
        // A list need not begin on sixteen bytes.
        const int whole = reinterpret_cast<uintptr_t>(codes) % kChunk == 0
                ? bytes / kChunk * kChunk
                : 0;
#pragma unroll 2
        for (int i = thread * kChunk; i < whole;
             i += kIvfDirectThreads * kChunk) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                                 sharedAddressOf(to + placeOf(i))),
                         "l"(codes + i)
                         : "memory");
        }
        for (int i = whole + thread; i < bytes; i += kIvfDirectThreads) {
            to[placeOf(i)] = codes[i];
        }
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
        const int d = dims();
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
        if (centroids()) {
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

    uint8_t* memory_;
    const IvfStagedParams& params_;
    const float* steps_;
    const float* starts_;
    int to_ = 0;   // stage of the next copy
    int from_ = 0; // stage that is looked at
};

} // namespace faiss_bits

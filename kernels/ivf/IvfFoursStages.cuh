/// Four groups of 32 vectors of codes on their way to shared memory while
/// earlier ones are added up, of four vectors a lane.
#pragma once

#include "kernels/ivf/CodesOfFour.cuh"
#include "kernels/ivf/IvfDirectSums.cuh"
#include "kernels/ivf/IvfStagedParams.h"
#include "kernels/knn/certified/JoinSlots.cuh"

namespace faiss_bits {

/// A stage has up to kDims components of each group, as they lie in the list,
/// but that 16 bytes are exchanged so that eight components of 16 vectors lie
/// in different banks. Behind them are those of the list's centroid, where
/// vectors are residuals.
///
/// Two warps have a group. A lane has one slot of the sums (CanonicalPair.cuh)
/// of four vectors whose codes lie side by side: step, start, centroid and
/// query are read once for four components, and their codes by one load.
template <ListCoding kCoding>
class IvfFoursStages {
   public:
    static constexpr int kGroups = kIvfFoursVectors / kListGroup;
    static constexpr int kFour = 4; // vectors of a lane
    static constexpr int kGroupThreads = kIvfDirectThreads / kGroups;
    static constexpr int kBits = codeBitsOf(kCoding, ListLayout::Interleaved);
    static constexpr int kDims = ivfFoursDims(kBits);

    /// memory: of all stages, on sixteen bytes. steps, starts: those of a
    /// scalar coding.
    __device__ __forceinline__ IvfFoursStages(
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
        const int d = dims();
        const int count = min(d - begin, kDims);
        if (isWanted) {
            copyCodes(
                    static_cast<const uint8_t*>(vectors) +
                            (int64_t(group) * d + begin) * kRowBytes,
                    count * kRowBytes);
        }
        static_assert(kDims <= kIvfDirectThreads);
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
    /// this lane's slot and vectors of some queries, which lie `stride` apart.
    template <Metric kMetric, int kQueries, int kMost>
    __device__ __forceinline__ void add(
            int begin,
            const double* queries,
            int stride,
            double (&sums)[kMost][kFour]) const {
        if (centroids()) {
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
    static constexpr int kSlots = canonical::kSlots;
    static_assert(kGroupThreads == kListGroup / kFour * kSlots);
    static constexpr int kChunk = 16;
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
    /// Of a stage.
    __device__ __forceinline__ uint32_t groupBytes() const {
        return uint32_t(IvfStagedPlan::foursGroupBytes(dims(), kBits));
    }

    __device__ __forceinline__ int after(int stage) const {
        return stage + 1 == count() ? 0 : stage + 1;
    }
    __device__ __forceinline__ uint8_t* stage(int i) const {
        return memory_ + i * params_.stageBytes;
    }
    __device__ __forceinline__ float* centroidOf(int i) const {
        return reinterpret_cast<float*>(stage(i) + kGroups * groupBytes());
    }
    __device__ __forceinline__ static uint32_t sharedAddressOf(const void* at) {
        return uint32_t(__cvta_generic_to_shared(at));
    }
    /// The four of this lane, of its group.
    __device__ __forceinline__ static int fourOfLane() {
        return int(threadIdx.x % kGroupThreads / kSlots);
    }

    /// Where a byte of a group's codes is.
    __device__ __forceinline__ static int placeOf(int byte) {
        if constexpr (kChunks == 1) {
            return byte;
        }
        const int component = byte / kRowBytes;
        return byte ^ (component / (kSlots / kChunks) % kChunks * kChunk);
    }

    /// By the threads of a group.
    __device__ __forceinline__ void copyCodes(const uint8_t* codes, int bytes)
            const {
        uint8_t* to = stage(to_) + groupOfWarp() * groupBytes();
        const int thread = int(threadIdx.x % kGroupThreads);
        // A list need not begin on sixteen bytes.
        const int whole = reinterpret_cast<uintptr_t>(codes) % kChunk == 0
                ? bytes / kChunk * kChunk
                : 0;
#pragma unroll 4
        for (int i = thread * kChunk; i < whole; i += kGroupThreads * kChunk) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                                 sharedAddressOf(to + placeOf(i))),
                         "l"(codes + i)
                         : "memory");
        }
        for (int i = whole + thread; i < bytes; i += kGroupThreads) {
            to[placeOf(i)] = codes[i];
        }
    }

    template <Metric kMetric, int kQueries, bool kResidual, int kMost>
    __device__ __forceinline__ void addAll(
            int begin,
            const double* queries,
            int stride,
            double (&sums)[kMost][kFour]) const {
        using Terms = canonical::Terms<kMetric>;
        static_assert(Terms::kSums == 1 && kQueries <= kMost);
        const int count = min(dims() - begin, kDims);
        const int slot = int(threadIdx.x % kSlots);
        const Codes codes(stage(from_) + groupOfWarp() * groupBytes());
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

    uint8_t* memory_;
    const IvfStagedParams& params_;
    const float* steps_;
    const float* starts_;
    int to_ = 0;   // stage of the next copy
    int from_ = 0; // stage that is looked at
};

} // namespace faiss_bits

/// A ring of stages in shared memory, to which parts of lists of codes come
/// while earlier ones are added up: what its kinds (IvfGroupStages.cuh,
/// IvfFoursStages.cuh) have in common.
#pragma once

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/ivf/IvfDirectSums.cuh"
#include "kernels/ivf/IvfStagedParams.h"
#include "kernels/knn/certified/JoinSlots.cuh"

namespace faiss_bits {

/// A stage has some components of groups of 32 vectors, as they lie in the
/// list, but that 16 bytes are exchanged so that eight components lie in
/// different banks. Behind them are those of the list's centroid, where vectors
/// are residuals.
template <ListCoding kCoding>
class IvfStageRing {
   public:
    static constexpr int kSlots = canonical::kSlots;
    static constexpr int kBits = codeBitsOf(kCoding, ListLayout::Interleaved);

    /// memory: of all stages, on sixteen bytes. steps, starts: those of a
    /// scalar coding.
    __device__ __forceinline__ IvfStageRing(
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

    /// Ends a copy. There is one for every stage, if only an empty one.
    __device__ __forceinline__ void copyNothing() {
        endCopies();
        to_ = after(to_);
    }

    /// Until the stage that is looked at has arrived for all threads, and all
    /// have left the one before, to which the next copy goes.
    __device__ __forceinline__ void wait() const {
        static_assert(IvfStagedPlan::kMostStages == 3);
        if (count() == 3) {
            waitForCopies<1>();
        } else {
            waitForCopies<0>();
        }
        __syncthreads();
    }

    __device__ __forceinline__ void next() {
        from_ = after(from_);
    }

   protected:
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

    __device__ __forceinline__ int after(int stage) const {
        return stage + 1 == count() ? 0 : stage + 1;
    }
    __device__ __forceinline__ uint8_t* stage(int i) const {
        return memory_ + i * params_.stageBytes;
    }

    /// Where a byte of a group's codes is.
    __device__ __forceinline__ static int placeOf(int byte) {
        if constexpr (kChunks == 1) {
            return byte;
        }
        const int component = byte / kRowBytes;
        return byte ^ (component / (kSlots / kChunks) % kChunks * kChunk);
    }

    /// Codes of a group to `offset` of the next stage, by kThreads threads side
    /// by side, each of which begins kTogether reads at once.
    template <int kThreads, int kTogether>
    __device__ __forceinline__ void copyCodes(
            const uint8_t* codes,
            int bytes,
            uint32_t offset) const {
        uint8_t* to = stage(to_) + offset;
        const int thread = kThreads == kIvfDirectThreads
                ? int(threadIdx.x)
                : int(threadIdx.x % kThreads);
        // A list need not begin on sixteen bytes.
        const int whole = reinterpret_cast<uintptr_t>(codes) % kChunk == 0
                ? bytes / kChunk * kChunk
                : 0;
#pragma unroll kTogether
        for (int i = thread * kChunk; i < whole; i += kThreads * kChunk) {
            copyAsync(sharedAddress(to + placeOf(i)), codes + i);
        }
        for (int i = whole + thread; i < bytes; i += kThreads) {
            to[placeOf(i)] = codes[i];
        }
    }

    /// Of a list's centroid `count` components, `begin` and on, to where
    /// place() says; d: those of a vector.
    template <class Place>
    __device__ __forceinline__ void copyCentroid(
            uint32_t list,
            int d,
            int begin,
            int count,
            const Place& place) const {
        static_assert(kIvfDirectDims <= kIvfDirectThreads);
        if (centroids() && int(threadIdx.x) < count) {
            copyAsyncByL1<4>(
                    sharedAddress(place() + threadIdx.x),
                    centroids() + int64_t(list) * d + begin + threadIdx.x);
        }
    }

    uint8_t* memory_;
    const IvfStagedParams& params_;
    const float* steps_;
    const float* starts_;
    int to_ = 0;   // stage of the next copy
    int from_ = 0; // stage that is looked at
};

} // namespace faiss_bits

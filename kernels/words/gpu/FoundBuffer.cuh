#pragma once

#include "kernels/words/gpu/WordParams.h"

namespace faiss_bits::words {

/// A result before it has its place: a word's place, 12 bits of distance, 20
/// bits of query.
inline __device__ uint64_t
makeFound(uint32_t place, uint32_t distance, uint32_t query) {
    return uint64_t(place) << 32 | uint64_t(distance) << 20 | query;
}
inline __device__ uint32_t placeOf(uint64_t found) {
    return uint32_t(found >> 32);
}
inline __device__ uint32_t distanceOf(uint64_t found) {
    return uint32_t(found >> 20) & 0xFFF;
}
inline __device__ uint32_t queryOf(uint64_t found) {
    return uint32_t(found) & 0xFFFFF;
}

/// Results of a warp, in shared memory until there are many.
class FoundBuffer {
   public:
    static constexpr uint32_t kSize = 128;

    __device__ FoundBuffer(uint64_t* memory, const FoundParams& params)
            : memory_(memory), params_(params) {}

    /// Of every lane that has one.
    __device__ void add(bool has, uint64_t found) {
        const uint32_t lanes = __ballot_sync(~0u, has);
        if (lanes == 0) {
            return;
        }
        if (used_ + 32 > kSize) {
            flush();
        }
        const uint32_t lane = threadIdx.x % 32;
        if (has) {
            memory_[used_ + __popc(lanes & ((1u << lane) - 1))] = found;
        }
        used_ += __popc(lanes);
    }

    __device__ void flush() {
        if (used_ == 0) {
            return;
        }
        const uint32_t lane = threadIdx.x % 32;
        __syncwarp();
        Count first = 0;
        if (lane == 0) {
            first = atomicAdd(params_.total, Count(used_));
        }
        first = __shfl_sync(~0u, first, 0);
        for (uint32_t i = lane; i < used_; i += 32) {
            if (first + i < params_.capacity) {
                params_.found[first + i] = memory_[i];
            }
        }
        __syncwarp();
        used_ = 0;
    }

   private:
    uint64_t* memory_;
    const FoundParams& params_;
    uint32_t used_ = 0;
};

} // namespace faiss_bits::words

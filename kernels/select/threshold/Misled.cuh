/// Whether the sample of a row led to too low or too high a limit.
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

enum class Misled {
    No,
    TooFew, // survivors for a result
    TooMany // for the list
};

__device__ __forceinline__ Misled
misledBy(const ThresholdParams& params, uint32_t count) {
    return count > params.capacity                         ? Misled::TooMany
            : count < min(uint32_t(params.k), params.cols) ? Misled::TooFew
                                                           : Misled::No;
}

/// Steps from the rank that the second sample asks for to one on the other side
/// of what was wrong with the first.
__device__ __forceinline__ int moreSteps(Misled misled) {
    return misled == Misled::No ? 0 : misled == Misled::TooFew ? 2 : -2;
}

} // namespace faiss_bits

#pragma once

#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

/// Places of a thread of the second sample, where it is drawn beside the first
/// one of so many. By as many blocks as may draw: multiprocessors have nothing
/// else to do. Else all rows pay for it, misled or not, and it is smaller.
#if defined(__CUDACC__)
__host__ __device__
#endif
        constexpr int
        placesBeside(int places, uint32_t parts) {
    return int(parts) == kMaxSampleParts || places < 2 ? places : places / 2;
}

} // namespace faiss_bits

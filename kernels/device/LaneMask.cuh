#pragma once

#include <cstdint>

namespace faiss_bits {

/// A bit for each lane of the warp before this one.
__device__ __forceinline__ uint32_t lanesBefore() {
    uint32_t lanes;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lanes));
    return lanes;
}

} // namespace faiss_bits

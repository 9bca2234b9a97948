#pragma once

namespace faiss_bits {

/// A number that is read once: L1 is left to what is read again. Nobody may
/// write it while the kernel runs.
__device__ __forceinline__ float readOnce(const float* from) {
    float value;
    asm("ld.global.nc.L1::no_allocate.f32 %0, [%1];"
        : "=f"(value)
        : "l"(__cvta_generic_to_global(from)));
    return value;
}

} // namespace faiss_bits

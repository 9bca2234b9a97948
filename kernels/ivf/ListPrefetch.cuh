/// Vectors of lists on their way to the second-level cache.
#pragma once

#include "kernels/ivf/ListCodes.h"
#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

/// Asks for `bytes` bytes from `from` on, rounded inwards to multiples of 16,
/// by one instruction of one thread. A hint: nothing before compute capability
/// 9.0.
__device__ __forceinline__ void prefetchToL2(const void* from, int64_t bytes) {
#if __CUDA_ARCH__ >= 900
    constexpr uint64_t kStep = 16;
    const auto address = reinterpret_cast<uint64_t>(from);
    const uint64_t begin = (address + kStep - 1) / kStep * kStep;
    const uint64_t end = (address + bytes) / kStep * kStep;
    if (begin < end) {
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
                             __cvta_generic_to_global(
                                     reinterpret_cast<const void*>(begin))),
                     "r"(uint32_t(end - begin))
                     : "memory");
    }
#endif
}

/// Asks for the codes of vectors first to last - 1 of the list of a place, of
/// the layout and coding of Vectors; interleaved, first is a multiple of 32.
template <class Vectors>
__device__ __forceinline__ void prefetchVectors(
        IvfLists lists,
        const TilePlace& place,
        int64_t first,
        int64_t last) {
    lists.coding = Vectors::kCoding; // known to the compiler
    lists.layout = Vectors::kLayout;
    if (first < last) {
        const int64_t begin = bytesOfVectors(lists, first);
        prefetchToL2(
                static_cast<const uint8_t*>(place.list) + begin,
                bytesOfVectors(lists, last) - begin);
    }
}

} // namespace faiss_bits

/// Copies from global to shared memory that go through no registers: a thread
/// begins some, ends the set of these, and waits until all but its last sets
/// have arrived. What others have copied it sees behind a barrier.
#pragma once

#include <cstdint>

namespace faiss_bits {

__device__ __forceinline__ uint32_t sharedAddress(const void* pointer) {
    return uint32_t(__cvta_generic_to_shared(pointer));
}

/// The same address, of which the compiler knows that it is of global memory:
/// some kernels address theirs by fewer operations then, others by more.
__device__ __forceinline__ const void* globalAddress(const void* pointer) {
    return reinterpret_cast<const void*>(__cvta_generic_to_global(pointer));
}

/// Begins to copy 16 bytes, past L1; both addresses are multiples of as many.
__device__ __forceinline__ void copyAsync(uint32_t shared, const void* global) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared),
                 "l"(global)
                 : "memory");
}

/// So many of the 16 are read, the rest become zeros.
__device__ __forceinline__ void copyAsync(
        uint32_t shared,
        const void* global,
        uint32_t bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared),
                 "l"(global),
                 "r"(bytes)
                 : "memory");
}

/// Of 4, 8 or 16 bytes, which are found in L1 and stay there; only these may
/// be fewer than 16.
template <int kBytes>
__device__ __forceinline__ void copyAsyncByL1(
        uint32_t shared,
        const void* global) {
    static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared),
                 "l"(global),
                 "n"(kBytes)
                 : "memory");
}

template <int kBytes>
__device__ __forceinline__ void copyAsyncByL1(
        uint32_t shared,
        const void* global,
        uint32_t bytes) {
    static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared),
                 "l"(global),
                 "n"(kBytes),
                 "r"(bytes)
                 : "memory");
}

/// What this thread has begun since the last such call is a set, if an empty
/// one.
__device__ __forceinline__ void endCopies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Until all of this thread's sets but the last kLeft have arrived.
template <int kLeft>
__device__ __forceinline__ void waitForCopies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

/// Until all of this thread's copies have arrived, ended or not.
__device__ __forceinline__ void waitForAllCopies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/// Asks for a line that will be read soon: L2 has it then.
__device__ __forceinline__ void prefetchToL2(const void* global) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

} // namespace faiss_bits

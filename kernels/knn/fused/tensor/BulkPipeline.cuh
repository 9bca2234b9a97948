/// Barriers in shared memory, and copies that arrive at them.
#pragma once

#include <cstdint>

#include "kernels/device/AsyncCopy.cuh"

namespace faiss_bits {

__device__ __forceinline__ void initBarrier(uint64_t* barrier, uint32_t count) {
    asm volatile(
            "mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(
                    sharedAddress(barrier)),
            "r"(count));
}

/// What initBarrier wrote is seen by bulk copies of this block.
__device__ __forceinline__ void fenceBarrierInit() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Barriers of a ring's places: one thread's copies fill each, so many warps
/// empty it. One thread calls it, and fenceBarrierInit() when all are made.
__device__ __forceinline__ void initRing(
        uint64_t* full,
        uint64_t* empty,
        int places,
        uint32_t warps) {
    for (int i = 0; i < places; ++i) {
        initBarrier(full + i, 1);
        initBarrier(empty + i, warps);
    }
}

__device__ __forceinline__ void arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(
                         sharedAddress(barrier))
                 : "memory");
}

/// Arrives, and makes the phase wait for so many bytes.
__device__ __forceinline__ void arriveExpecting(
        uint64_t* barrier,
        uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                         sharedAddress(barrier)),
                 "r"(bytes)
                 : "memory");
}

/// Until the phase of this parity has ended.
__device__ __forceinline__ void waitFor(uint64_t* barrier, uint32_t parity) {
    const uint32_t address = sharedAddress(barrier);
    uint32_t done;
    do {
        asm volatile(
                "{\n"
                ".reg .pred p;\n"
                "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                "selp.u32 %0, 1, 0, p;\n"
                "}"
                : "=r"(done)
                : "r"(address), "r"(parity)
                : "memory");
    } while (!done);
}

/// Bytes: a multiple of 16, as are both addresses.
__device__ __forceinline__ void copyBulk(
        void* shared,
        const void* global,
        uint32_t bytes,
        uint64_t* barrier) {
    asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
            "[%0], [%1], %2, [%3];" ::"r"(sharedAddress(shared)),
            "l"(__cvta_generic_to_global(global)),
            "r"(bytes),
            "r"(sharedAddress(barrier))
            : "memory");
}

/// A place in a ring of stages, and the parity of its turn.
struct RingPlace {
    int at = 0;
    uint32_t parity = 0;

    __device__ __forceinline__ void next(int stages) {
        if (++at == stages) {
            at = 0;
            parity ^= 1;
        }
    }
};

} // namespace faiss_bits

/// What blocks of a cluster send one another: words into the shared memory of
/// another block, counted as bytes on a barrier there.
#pragma once

#include "kernels/knn/fused/tensor/BulkPipeline.cuh"

namespace faiss_bits {

__device__ __forceinline__ uint32_t rankInCluster() {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/// All threads of the cluster's blocks.
__device__ __forceinline__ void syncCluster() {
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

/// The address of the same place in the shared memory of another block.
__device__ __forceinline__ uint32_t addressIn(uint32_t block, const void* own) {
    uint32_t address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"(sharedAddress(own)), "r"(block));
    return address;
}

/// Words to another block, counted as bytes on a barrier there.
__device__ __forceinline__ void sendWords(
        uint32_t to,
        uint32_t barrier,
        const uint32_t (&words)[1]) {
    asm volatile(
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 "
            "[%0], %1, [%2];" ::"r"(to),
            "r"(words[0]),
            "r"(barrier)
            : "memory");
}
__device__ __forceinline__ void sendWords(
        uint32_t to,
        uint32_t barrier,
        const uint32_t (&words)[2]) {
    asm volatile(
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 "
            "[%0], {%1, %2}, [%3];" ::"r"(to),
            "r"(words[0]),
            "r"(words[1]),
            "r"(barrier)
            : "memory");
}
__device__ __forceinline__ void sendWords(
        uint32_t to,
        uint32_t barrier,
        const uint32_t (&words)[4]) {
    asm volatile(
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 "
            "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
            "r"(words[0]),
            "r"(words[1]),
            "r"(words[2]),
            "r"(words[3]),
            "r"(barrier)
            : "memory");
}

/// waitFor() of what other blocks sent.
__device__ __forceinline__ void waitForOthers(
        uint64_t* barrier,
        uint32_t parity) {
    const uint32_t address = sharedAddress(barrier);
    uint32_t done;
    do {
        asm volatile(
                "{\n"
                ".reg .pred p;\n"
                "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, "
                "[%1], %2;\n"
                "selp.u32 %0, 1, 0, p;\n"
                "}"
                : "=r"(done)
                : "r"(address), "r"(parity)
                : "memory");
    } while (!done);
}

} // namespace faiss_bits

#include "kernels/knn/certified/CertifiedLaunch.cuh"

#include <map>
#include <numeric>
#include <utility>

#include "kernels/common/PerDevice.h"

namespace faiss_bits {

ScanOrder scatteredOrder(uint32_t chunks) {
    uint32_t scatter = std::max(1u, uint32_t(0.618 * chunks));
    while (std::gcd(scatter, chunks) > 1) {
        ++scatter;
    }
    return {chunks, scatter, 1.0 / chunks};
}

int blocksPerMultiprocessor(
        const void* kernel,
        int threads,
        size_t sharedBytes) {
    int device = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    // Never destroyed: kernels may be launched while a program ends.
    static auto& known =
            *new PerDevice<std::map<std::pair<const void*, int>, int>>;
    return known.with(device, [&](auto& map) {
        return findOrMake(map, {kernel, device}, [&] {
            int blocks = 0;
            BITS_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                    &blocks, kernel, threads, sharedBytes));
            return blocks;
        });
    });
}

} // namespace faiss_bits

#include "kernels/knn/certified/CertifiedLaunch.cuh"

#include <map>
#include <mutex>
#include <numeric>
#include <utility>

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
    static auto& mutex = *new std::mutex;
    static auto& known = *new std::map<std::pair<const void*, int>, int>;
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = known.find({kernel, device});
    if (found != known.end()) {
        return found->second;
    }
    int blocks = 0;
    BITS_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, kernel, threads, sharedBytes));
    return known[{kernel, device}] = blocks;
}

} // namespace faiss_bits

#include "faiss_bits/dropin/CodeTables.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::dropin {

namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 32;
constexpr idx_t kMostBlocks = 1 << 16;
constexpr idx_t kNoPlace = -1;

__device__ idx_t threadOfGrid() {
    return idx_t(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ idx_t threadsOfGrid() {
    return idx_t(gridDim.x) * blockDim.x;
}

/// Any probe of each list.
__global__ void __launch_bounds__(kThreads)
        placesKernel(BasesOfProbes p, idx_t* places) {
    for (idx_t i = threadOfGrid(); i < p.numProbes; i += threadsOfGrid()) {
        const idx_t list = p.probes[i];
        if (list >= 0 && list < p.numLists) {
            // Several write: all of them are right.
            places[list] = i;
        }
    }
}

/// A warp takes a list.
__global__ void __launch_bounds__(kThreads) centroidsOfPlacesKernel(
        BasesOfProbes p,
        const idx_t* places,
        float* centroids) {
    const int lane = threadIdx.x % kLanes;
    for (idx_t list = threadOfGrid() / kLanes; list < p.numLists;
         list += threadsOfGrid() / kLanes) {
        const idx_t place = places[list];
        for (int c = lane; c < p.d; c += kLanes) {
            centroids[list * p.d + c] =
                    place == kNoPlace ? 0.0f : p.bases[place * p.d + c];
        }
    }
}

/// A warp takes a probe; several may write the same.
__global__ void __launch_bounds__(kThreads)
        centroidsOfProbesKernel(BasesOfProbes p, float* centroids) {
    const int lane = threadIdx.x % kLanes;
    for (idx_t i = threadOfGrid() / kLanes; i < p.numProbes;
         i += threadsOfGrid() / kLanes) {
        const idx_t list = p.probes[i];
        if (list < 0 || list >= p.numLists) {
            continue;
        }
        for (int c = lane; c < p.d; c += kLanes) {
            centroids[list * p.d + c] = p.bases[i * p.d + c];
        }
    }
}

__global__ void __launch_bounds__(kThreads) transposeKernel(
        const float* codebook,
        int parts,
        int dims,
        int codes,
        float* result) {
    const idx_t count = idx_t(parts) * dims * codes;
    for (idx_t i = threadOfGrid(); i < count; i += threadsOfGrid()) {
        const idx_t code = i / dims % codes;
        const idx_t part = i / dims / codes;
        result[i] = codebook[(part * dims + i % dims) * codes + code];
    }
}

unsigned blocksFor(idx_t threads) {
    return unsigned(std::clamp<idx_t>(
            (threads + kThreads - 1) / kThreads, 1, kMostBlocks));
}

} // namespace

void gatherCentroids(
        const BasesOfProbes& p,
        float* centroids,
        idx_t* places,
        cudaStream_t stream) {
    if (p.numProbes <= p.numLists) {
        centroidsOfProbesKernel<<<
                blocksFor(p.numProbes * kLanes),
                kThreads,
                0,
                stream>>>(p, centroids);
        BITS_CUDA_CHECK(cudaGetLastError());
        return;
    }
    static_assert(kNoPlace == -1); // of bytes that are all ones
    BITS_CUDA_CHECK(cudaMemsetAsync(
            places, 0xFF, size_t(p.numLists) * sizeof(idx_t), stream));
    placesKernel<<<blocksFor(p.numProbes), kThreads, 0, stream>>>(p, places);
    BITS_CUDA_CHECK(cudaGetLastError());
    centroidsOfPlacesKernel<<<
            blocksFor(p.numLists * kLanes),
            kThreads,
            0,
            stream>>>(p, places, centroids);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void transposeCodebook(
        const float* codebook,
        int parts,
        int dims,
        int codes,
        float* result,
        cudaStream_t stream) {
    transposeKernel<<<
            blocksFor(idx_t(parts) * dims * codes),
            kThreads,
            0,
            stream>>>(codebook, parts, dims, codes, result);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits::dropin

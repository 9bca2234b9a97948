#include "kernels/knn/fused/GatherSample.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/device/Hash.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void gatherKernel(
        const T* vectors,
        idx_t n,
        int d,
        idx_t rowStride,
        idx_t columnStride,
        idx_t samples,
        T* out) {
    const idx_t elements = samples * d;
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < elements;
         i += idx_t(gridDim.x) * kThreads) {
        const idx_t sample = i / d;
        const idx_t begin = sample * n / samples;
        const idx_t end = (sample + 1) * n / samples;
        const idx_t vector =
                begin + mixBits(uint32_t(sample)) % uint32_t(end - begin);
        out[i] = vectors[vector * rowStride + i % d * columnStride];
    }
}

template <class T>
void gather(
        const FlatKnnProblem& p,
        idx_t samples,
        void* out,
        cudaStream_t stream) {
    const idx_t blocks = (samples * p.d + kThreads - 1) / kThreads;
    gatherKernel<<<
            unsigned(std::min<idx_t>(blocks, 1 << 16)),
            kThreads,
            0,
            stream>>>(
            static_cast<const T*>(p.vectors),
            p.numVectors,
            p.d,
            p.vectorsRowMajor ? p.d : 1,
            p.vectorsRowMajor ? 1 : p.numVectors,
            samples,
            static_cast<T*>(out));
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace

void runGatherSample(
        const FlatKnnProblem& problem,
        idx_t samples,
        void* out,
        cudaStream_t stream) {
    // The bits of 16-bit types are copied as they are.
    problem.dataType == DataType::Float32
            ? gather<uint32_t>(problem, samples, out, stream)
            : gather<uint16_t>(problem, samples, out, stream);
}

} // namespace faiss_bits

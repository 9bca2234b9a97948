// Which vectors have NaN or infinities.

#include "kernels/metric_space/gpu/FiniteRows.h"

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::metric_space {

namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 32;

/// A warp a row.
__global__ void __launch_bounds__(kThreads)
        finiteRowsKernel(const float* vectors, idx_t n, int d, uint8_t* flags) {
    const idx_t step = idx_t(gridDim.x) * (kThreads / kLanes);
    for (idx_t i = (idx_t(blockIdx.x) * kThreads + threadIdx.x) / kLanes; i < n;
         i += step) {
        bool fits = true;
        for (int c = threadIdx.x % kLanes; c < d; c += kLanes) {
            fits = fits && isfinite(vectors[i * d + c]);
        }
        fits = __all_sync(~0u, fits);
        if (threadIdx.x % kLanes == 0) {
            flags[i] = fits;
        }
    }
}

} // namespace

void splitFiniteOnGpu(
        const MetricVectors& vectors,
        uint8_t* flags,
        std::vector<idx_t>& finite,
        std::vector<idx_t>& rest,
        cudaStream_t stream) {
    if (vectors.n == 0) {
        return;
    }
    const idx_t blocks =
            (vectors.n + kThreads / kLanes - 1) / (kThreads / kLanes);
    finiteRowsKernel<<<
            unsigned(blocks < 8192 ? blocks : 8192),
            kThreads,
            0,
            stream>>>(vectors.data, vectors.n, vectors.d, flags);
    BITS_CUDA_CHECK(cudaGetLastError());
    std::vector<uint8_t> fits(size_t(vectors.n));
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            fits.data(), flags, fits.size(), cudaMemcpyDeviceToHost, stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    for (idx_t i = 0; i < vectors.n; ++i) {
        (fits[i] ? finite : rest).push_back(i);
    }
}

} // namespace faiss_bits::metric_space

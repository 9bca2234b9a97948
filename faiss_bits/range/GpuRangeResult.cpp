#include "faiss_bits/range/GpuRangeResult.h"

#include "faiss_bits/common/GpuStaging.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu {

GpuRangeResult::Part GpuRangeResult::allocate(idx_t size) {
    const size_t count = size_t(size);
    memory_.push_back(
            detail::allocateOnDevice(count * (sizeof(idx_t) + sizeof(float))));
    Part part;
    part.size = size;
    part.labels = static_cast<idx_t*>(memory_.back().get());
    part.distances = reinterpret_cast<float*>(part.labels + count);
    return part;
}

void GpuRangeResult::copyTo(
        float* distances,
        idx_t* labels,
        cudaStream_t stream) const {
    detail::withFaissErrors([&] {
        for (const Part& part : parts) {
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    distances,
                    part.distances,
                    size_t(part.size) * sizeof(float),
                    cudaMemcpyDefault,
                    stream));
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    labels,
                    part.labels,
                    size_t(part.size) * sizeof(idx_t),
                    cudaMemcpyDefault,
                    stream));
            distances += part.size;
            labels += part.size;
        }
    });
}

} // namespace faiss_bits::gpu

#include "faiss_bits/flat/GpuSearchCounters.h"

#include <faiss/gpu/GpuResources.h>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

GpuSearchCounters::GpuSearchCounters(const GpuContext& context)
        : memory_(context.resources->allocMemoryHandle(faiss::gpu::AllocRequest(
                  faiss::gpu::AllocInfo(
                          faiss::gpu::AllocType::FlatData,
                          context.device,
                          faiss::gpu::MemorySpace::Device,
                          context.stream),
                  2 * sizeof(unsigned long long)))),
          repeated_(static_cast<unsigned long long*>(memory_.get())) {
    reset(context);
}

SearchStats GpuSearchCounters::read(const GpuContext& context) const {
    waitForOthers_();
    unsigned long long counts[2] = {};
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            counts,
            repeated_,
            sizeof(counts),
            cudaMemcpyDeviceToHost,
            context.stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    SearchStats stats;
    stats.repeated = int64_t(counts[0]);
    stats.certified = queries_ - stats.repeated;
    stats.rescored = rescored_ + int64_t(counts[1]);
    return stats;
}

void GpuSearchCounters::waitForOthers_() const {
    if (usesOtherStreams_) {
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
    }
}

void GpuSearchCounters::reset(const GpuContext& context) {
    waitForOthers_();
    BITS_CUDA_CHECK(cudaMemsetAsync(
            repeated_, 0, 2 * sizeof(unsigned long long), context.stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    queries_ = 0;
    rescored_ = 0;
}

} // namespace faiss_bits::gpu::detail

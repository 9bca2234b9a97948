#include "faiss_bits/flat/SearchCounters.h"

#include <faiss/gpu/GpuResources.h>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

SearchCounters::SearchCounters(const GpuContext& context)
        : memory_(context.resources->allocMemoryHandle(faiss::gpu::AllocRequest(
                  faiss::gpu::AllocInfo(
                          faiss::gpu::AllocType::FlatData,
                          context.device,
                          faiss::gpu::MemorySpace::Device,
                          context.stream),
                  sizeof(unsigned long long)))),
          repeated_(static_cast<unsigned long long*>(memory_.get())) {
    reset(context);
}

SearchStats SearchCounters::read(const GpuContext& context) const {
    unsigned long long repeated = 0;
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            &repeated,
            repeated_,
            sizeof(repeated),
            cudaMemcpyDeviceToHost,
            context.stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    SearchStats stats;
    stats.repeated = int64_t(repeated);
    stats.certified = queries_ - stats.repeated;
    stats.rescored = rescored_;
    return stats;
}

void SearchCounters::reset(const GpuContext& context) {
    BITS_CUDA_CHECK(cudaMemsetAsync(
            repeated_, 0, sizeof(unsigned long long), context.stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    queries_ = 0;
    rescored_ = 0;
}

} // namespace faiss_bits::gpu::detail

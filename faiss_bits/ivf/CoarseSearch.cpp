#include "faiss_bits/ivf/CoarseSearch.h"

#include <optional>
#include <vector>

#include <cuda_runtime_api.h>
#include <faiss/gpu/GpuIndex.h>

#include "faiss_bits/common/CallStream.h"
#include "faiss_bits/common/Waiting.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

/// What comes onto `later` follows what is on `earlier`.
void order(cudaStream_t earlier, cudaStream_t later) {
    if (earlier == later) {
        return;
    }
    CudaEvent event;
    event.record(earlier);
    event.holdUp(later);
}

void searchOnHost(
        const GpuContext& context,
        const faiss::Index& quantizer,
        idx_t n,
        const float* x,
        idx_t nprobe,
        idx_t* lists,
        const faiss::SearchParameters* params) {
    std::vector<float> queries(size_t(n) * quantizer.d);
    std::vector<float> distances(size_t(n) * nprobe);
    std::vector<idx_t> found(size_t(n) * nprobe);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            queries.data(),
            x,
            queries.size() * sizeof(float),
            cudaMemcpyDeviceToHost,
            context.stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    quantizer.search(
            n, queries.data(), nprobe, distances.data(), found.data(), params);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            lists,
            found.data(),
            found.size() * sizeof(idx_t),
            cudaMemcpyHostToDevice,
            context.stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
}

} // namespace

void searchCoarse(
        const GpuContext& context,
        const faiss::Index& quantizer,
        idx_t n,
        const float* x,
        idx_t nprobe,
        float* distances,
        idx_t* lists,
        const faiss::SearchParameters* params) {
    const auto* onGpu = dynamic_cast<const faiss::gpu::GpuIndex*>(&quantizer);
    if (!onGpu) {
        return searchOnHost(context, quantizer, n, x, nprobe, lists, params);
    }
    // Ours takes the stream of this call; FAISS's the default one.
    auto* theirs = const_cast<faiss::gpu::GpuIndex*>(onGpu);
    const auto resources = theirs->getResources();
    const bool isOurs = dynamic_cast<const GpuIndexBitsFlat*>(onGpu) != nullptr;
    const cudaStream_t stream = isOurs
            ? contextOf(*resources, context.device).stream
            : resources->getDefaultStream(context.device);
    order(context.stream, stream);
    // Ours need not ask CUDA where the arrays lie. On other streams a call
    // costs more than that.
    std::optional<CallStream> call;
    if (isOurs && stream == resources->getDefaultStream(context.device)) {
        call.emplace(
                resources,
                context.device,
                stream,
                true /* arraysAreOnDevice */);
    }
    quantizer.search(n, x, nprobe, distances, lists, params);
    order(stream, context.stream);
}

} // namespace faiss_bits::gpu::detail

#include "faiss_bits/common/GpuStaging.h"

#include <algorithm>

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/Workspace.h"

namespace faiss_bits::gpu::detail {

namespace {

constexpr size_t kMiB = size_t(1) << 20;

/// What a search may always take, even where the user has set the temporary
/// memory to nothing.
constexpr size_t kLeastScratch = 32 * kMiB;
/// Pageable memory: about 30 ms.
constexpr size_t kCopyAtOnce = 256 * kMiB;

const char* nameOf(faiss::MetricType metric) {
    switch (metric) {
        case faiss::METRIC_INNER_PRODUCT:
            return "METRIC_INNER_PRODUCT";
        case faiss::METRIC_L2:
            return "METRIC_L2";
        case faiss::METRIC_L1:
            return "METRIC_L1";
        case faiss::METRIC_Linf:
            return "METRIC_Linf";
        case faiss::METRIC_Lp:
            return "METRIC_Lp";
        case faiss::METRIC_Canberra:
            return "METRIC_Canberra";
        case faiss::METRIC_BrayCurtis:
            return "METRIC_BrayCurtis";
        case faiss::METRIC_JensenShannon:
            return "METRIC_JensenShannon";
        default:
            return "another metric";
    }
}

} // namespace

void requireDevice(int device) {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) {
        (void)cudaGetLastError();
    }
    FAISS_THROW_IF_NOT_FMT(
            status == cudaSuccess,
            "device = %d cannot be used: no CUDA device was found (%s: %s)",
            device,
            cudaGetErrorName(status),
            cudaGetErrorString(status));
    FAISS_THROW_IF_NOT_FMT(
            device >= 0 && device < count,
            "device = %d is outside 0..%d",
            device,
            count - 1);
}

Metric requireMetric(faiss::MetricType metric) {
    FAISS_THROW_IF_NOT_FMT(
            metric == faiss::METRIC_L2 || metric == faiss::METRIC_INNER_PRODUCT,
            "metric = %d (%s) is not supported: METRIC_L2 (%d) and "
            "METRIC_INNER_PRODUCT (%d) are",
            int(metric),
            nameOf(metric),
            int(faiss::METRIC_L2),
            int(faiss::METRIC_INNER_PRODUCT));
    return metric == faiss::METRIC_L2 ? Metric::L2 : Metric::InnerProduct;
}

size_t scratchBudget(const GpuContext& context) {
    const size_t left =
            context.resources->getTempMemoryAvailable(context.device);
    // FAISS rounds every request up to this: a request for all that is left
    // would otherwise miss the stack and go to cudaMalloc, which waits.
    const size_t fits =
            left / WorkspaceSlices::kAlignment * WorkspaceSlices::kAlignment;
    return std::max(fits, kLeastScratch);
}

faiss::gpu::GpuMemoryReservation allocTemporary(
        const GpuContext& context,
        size_t bytes) {
    return context.resources->allocMemoryHandle(faiss::gpu::AllocRequest(
            faiss::gpu::AllocType::Other,
            context.device,
            faiss::gpu::MemorySpace::Temporary,
            context.stream,
            bytes));
}

Place placeOf(const GpuContext& context, const char* name, const void* data) {
    cudaPointerAttributes attributes;
    const cudaError_t status = cudaPointerGetAttributes(&attributes, data);
    if (status == cudaErrorInvalidValue) {
        (void)cudaGetLastError();
        return {};
    }
    BITS_CUDA_CHECK(status);
    if (attributes.type != cudaMemoryTypeDevice) {
        return {true, attributes.type == cudaMemoryTypeUnregistered};
    }
    FAISS_THROW_IF_NOT_FMT(
            attributes.device == context.device,
            "%s lies on device %d, but the work runs on device %d",
            name,
            attributes.device,
            context.device);
    return {false, false};
}

DeviceArray::DeviceArray(
        const GpuContext& context,
        const char* name,
        const void* data,
        size_t bytes)
        : data_(data), place_(placeOf(context, name, data)) {
    if (!place_.onHost) {
        return;
    }
    copy_ = allocTemporary(context, bytes);
    data_ = copy_.get();
    ScopedWait guard({context.stream});
    for (size_t at = 0; at < bytes; at += kCopyAtOnce) {
        throwIfInterrupted();
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                static_cast<char*>(copy_.get()) + at,
                static_cast<const char*>(data) + at,
                std::min(kCopyAtOnce, bytes - at),
                cudaMemcpyDefault,
                context.stream));
    }
    guard.dismiss();
}

std::shared_ptr<faiss::gpu::GpuResources> resourcesOf(
        faiss::gpu::GpuResourcesProvider* provider) {
    requireNotNull(provider, "provider");
    auto resources = provider->getResources();
    requireNotNull(resources.get(), "provider->getResources()");
    return resources;
}

OwnedContext::OwnedContext(
        faiss::gpu::GpuResourcesProvider* provider,
        int device)
        : resources(resourcesOf(provider)) {
    if (device == -1) {
        requireDevice(0);
        BITS_CUDA_CHECK(cudaGetDevice(&device));
    }
    requireDevice(device);
    resources->initializeForDevice(device);
    context = {resources.get(), device, resources->getDefaultStream(device)};
}

void copyOut(
        const GpuContext& context,
        const void* source,
        const char* name,
        void* out,
        size_t bytes) {
    const bool onHost = placeOf(context, name, out).onHost;
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            out, source, bytes, cudaMemcpyDefault, context.stream));
    if (onHost) {
        waitFor(context.stream);
    }
}

} // namespace faiss_bits::gpu::detail

#include "faiss_bits/common/GpuStaging.h"

#include <algorithm>
#include <cmath>

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/CallStream.h"
#include "faiss_bits/common/FaissMetric.h"
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
    requireWithin(device, 0, count - 1, "device");
}

Metric requireMetric(faiss::MetricType metric) {
    return faiss_bits::detail::knownMetric(metric);
}

bool hasMetric(faiss::MetricType metric) {
    return faiss_bits::detail::findMetric(metric).has_value();
}

float requireMetricArg(Metric metric, const char* name, float value) {
    if (metric != Metric::Lp) {
        return 0;
    }
    FAISS_THROW_IF_NOT_FMT(
            std::isfinite(value) && value > 0,
            "%s = %g: the p of METRIC_Lp is a finite number above 0",
            name,
            double(value));
    return value;
}

GpuContext contextOf(faiss::gpu::GpuResources& resources, int device) {
    CallStream* call = CallStream::find(resources, device);
    const cudaStream_t stream = resources.getDefaultStream(device);
    return {&resources,
            device,
            call ? call->stream() : stream,
            stream,
            call && call->takeArraysAreOnDevice()};
}

ExpectedMemory::ExpectedMemory(const GpuContext& context)
        : left_(context.resources->getTempMemoryAvailable(context.device)) {}

void ExpectedMemory::take(size_t bytes) {
    const size_t rounded = bytes == 0
            ? 0
            : WorkspaceSlices::roundUp(bytes) + TemporaryMemory::kMore;
    left_ -= rounded <= left_ ? rounded : 0;
}

size_t ExpectedMemory::scratchBudget() const {
    // FAISS rounds every request up to this: a request for all that is left
    // would otherwise miss the stack and go to cudaMalloc, which waits.
    const size_t fits =
            left_ / WorkspaceSlices::kAlignment * WorkspaceSlices::kAlignment;
    return std::max(
            fits - std::min(fits, TemporaryMemory::kMore), kLeastScratch);
}

size_t scratchBudget(const GpuContext& context) {
    return ExpectedMemory(context).scratchBudget();
}

TemporaryMemory::TemporaryMemory(faiss::gpu::GpuMemoryReservation memory)
        : memory_(std::move(memory)) {
    const auto begin = reinterpret_cast<uintptr_t>(memory_.get());
    at_ = reinterpret_cast<void*>((begin + kMore - 1) / kMore * kMore);
}

TemporaryMemory allocTemporary(const GpuContext& context, size_t bytes) {
    if (bytes == 0) {
        return {};
    }
    return TemporaryMemory(
            context.resources->allocMemoryHandle(faiss::gpu::AllocRequest(
                    faiss::gpu::AllocType::Other,
                    context.device,
                    faiss::gpu::MemorySpace::Temporary,
                    context.memoryStream,
                    bytes + TemporaryMemory::kMore)));
}

std::shared_ptr<void> allocateOnDevice(size_t bytes) {
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, std::max<size_t>(bytes, 1));
    if (status != cudaSuccess) {
        (void)cudaGetLastError();
    }
    FAISS_THROW_IF_NOT_FMT(
            status == cudaSuccess,
            "cudaMalloc of %zu bytes failed (%s: %s)",
            bytes,
            cudaGetErrorName(status),
            cudaGetErrorString(status));
    return {memory, [](void* p) { (void)cudaFree(p); }};
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
    context = contextOf(*resources, device);
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

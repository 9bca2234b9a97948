#include "faiss_bits/dropin/Device.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "faiss_bits/dropin/Finish.h"
#include "faiss_bits/dropin/Messages.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::dropin {

namespace {

/// Has the pool keep what a call of this size needs.
void keepFor(cudaMemPool_t pool, size_t bytes) {
    uint64_t kept = 0;
    BITS_CUDA_CHECK(cudaMemPoolGetAttribute(
            pool, cudaMemPoolAttrReleaseThreshold, &kept));
    uint64_t wanted = std::min(bytes, Scratch::kMostKeptBytes);
    if (wanted > kept) {
        BITS_CUDA_CHECK(cudaMemPoolSetAttribute(
                pool, cudaMemPoolAttrReleaseThreshold, &wanted));
    }
}

cudaMemPool_t makePool(int device) {
    int supported = 0;
    BITS_CUDA_CHECK(cudaDeviceGetAttribute(
            &supported, cudaDevAttrMemoryPoolsSupported, device));
    if (!supported) {
        return nullptr;
    }
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    cudaMemPool_t pool = nullptr;
    BITS_CUDA_CHECK(cudaMemPoolCreate(&pool, &properties));
    uint64_t kept = Scratch::kKeptBytes;
    BITS_CUDA_CHECK(cudaMemPoolSetAttribute(
            pool, cudaMemPoolAttrReleaseThreshold, &kept));
    return pool;
}

struct Entry {
    Device device;
    std::string problem;
};

Entry lookAt(int device) {
    const RelaxedCapture relaxed;
    Entry entry;
    try {
        checkKernelsLoad();
        entry.device.traits = deviceTraits(device);
        entry.device.pool = makePool(device);
        entry.device.resultPool = makePool(device);
    } catch (const Error& error) {
        entry.problem = "device " + std::to_string(device) +
                " cannot run this build: " + error.what();
    }
    return entry;
}

} // namespace

const Device& currentDevice() {
    int device = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    // Never destroyed: the CUDA driver may be gone by then.
    static auto& mutex = *new std::mutex;
    static auto& entries = *new std::map<int, Entry>;
    const std::lock_guard<std::mutex> lock(mutex);
    auto found = entries.find(device);
    if (found == entries.end()) {
        found = entries.emplace(device, lookAt(device)).first;
    }
    if (!found->second.problem.empty()) {
        throw Error(found->second.problem);
    }
    return found->second.device;
}

RelaxedCapture::RelaxedCapture() {
    (void)cudaThreadExchangeStreamCaptureMode(&mode_);
}

RelaxedCapture::~RelaxedCapture() {
    (void)cudaThreadExchangeStreamCaptureMode(&mode_);
}

Scratch::Scratch(cudaMemPool_t pool, size_t bytes, cudaStream_t stream)
        : stream_(stream) {
    if (bytes == 0) {
        return;
    }
    if (!pool) {
        throw Error("the driver has no memory pools on this device");
    }
    if (bytes > kKeptBytes) {
        keepFor(pool, bytes);
    }
    BITS_CUDA_CHECK(cudaMallocFromPoolAsync(&data_, bytes, pool, stream));
}

Scratch::~Scratch() {
    if (data_ && cudaFreeAsync(data_, stream_) != cudaSuccess) {
        sayOnce(std::string("scratch could not be given back: ") +
                cudaGetErrorString(cudaGetLastError()));
    }
}

} // namespace faiss_bits::dropin

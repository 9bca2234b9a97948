/// FAISS's searches of GPU indexes, whose results take another way to the host.

#include <cuda_runtime.h>

#include <cstring>
#include <memory>
#include <optional>

#include "faiss_bits/dropin/Functions.h"
#include "faiss_bits/dropin/HostResults.h"
#include "faiss_bits/dropin/ListCall.h"
#include "faiss_bits/dropin/Replacement.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::dropin {

namespace {

using faiss::gpu::GpuIndex;
using faiss::gpu::GpuResources;

/// FAISS's own limit of k; above it, it says so itself.
constexpr idx_t kFaissMaxK = 2048;
/// So that the memory on the device is what FAISS takes there, too.
constexpr idx_t kMostResults = (idx_t(1) << 30) / 12;

/// Makes a device the thread's current one, until it goes.
class DeviceScope {
   public:
    explicit DeviceScope(int device) {
        BITS_CUDA_CHECK(cudaGetDevice(&before_));
        BITS_CUDA_CHECK(cudaSetDevice(device));
    }
    ~DeviceScope() {
        (void)cudaSetDevice(before_);
    }
    DeviceScope(const DeviceScope&) = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;

   private:
    int before_ = 0;
};

/// A function of FAISS's that is not replaced.
template <class F>
F* functionBehind(const Original& original, const char* symbol) {
    auto* function = reinterpret_cast<F*>(symbolBehind(original, symbol));
    if (!function) {
        throw Error(std::string("FAISS has no ") + symbol);
    }
    return function;
}

int deviceOf(const Original& original, const GpuIndex* index) {
    return functionBehind<int(const GpuIndex*)>(
            original, "_ZNK5faiss3gpu8GpuIndex9getDeviceEv")(index);
}

std::shared_ptr<GpuResources> resourcesOf(
        const Original& original,
        const GpuIndex* index) {
    return functionBehind<std::shared_ptr<GpuResources>(GpuIndex*)>(
            original, "_ZN5faiss3gpu8GpuIndex12getResourcesEv")(
            const_cast<GpuIndex*>(index));
}

bool isCaptured(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    BITS_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
    return status != cudaStreamCaptureStatusNone;
}

/// Where the results of a search are while it runs.
struct IndexCall {
    std::shared_ptr<GpuResources> resources;
    std::optional<DeviceScope> current;
    std::optional<HostResults> results;

    /// Returns what is left to FAISS, as text, or an empty string.
    std::string begin(
            const Original& original,
            const GpuIndex* index,
            idx_t n,
            idx_t k,
            float* distances,
            idx_t* labels) {
        if (n < 1 || k < 1 || k > kFaissMaxK || n > kMostResults / k) {
            return "searches with no results, or more than 1 GiB of them";
        }
        // First: CUDA may make a context on the current device to answer.
        current.emplace(deviceOf(original, index));
        if (!isPageable(distances) || !isPageable(labels)) {
            return "searches whose results are not in pageable memory of the "
                   "host";
        }
        resources = resourcesOf(original, index);
        const Device& device = currentDevice();
        const cudaStream_t stream = streamOf(original, resources.get());
        if (isCaptured(stream)) {
            return "searches under graph capture";
        }
        results.emplace(device, size_t(n * k), distances, labels, stream);
        return "";
    }
};

} // namespace

} // namespace faiss_bits::dropin

// ---- the function itself ---------------------------------------------------

namespace faiss::gpu {

using namespace faiss_bits::dropin;

void GpuIndex::search(
        int64_t n,
        const float* x,
        int64_t k,
        float* distances,
        int64_t* labels,
        const SearchParameters* params) const {
    static auto& own = *new Replacement(describeIndexSearch());
    auto* const search = own.function<IndexSearchFunction>();
    IndexCall call;
    const bool begun = own.runs("", [&](const Original& original) {
        return call.begin(original, this, n, k, distances, labels);
    });
    if (!begun) {
        search(this, n, x, k, distances, labels, params);
        return;
    }
    const HostResults& results = *call.results;
    search(this, n, x, k, results.distances(), results.ids(), params);
    const bool ended = own.runs("", [&](const Original&) {
        call.results->goHome();
        return "";
    });
    if (!ended) {
        call.results.reset(); // nobody copies any more, and its memory is free
        search(this, n, x, k, distances, labels, params);
    }
}

} // namespace faiss::gpu

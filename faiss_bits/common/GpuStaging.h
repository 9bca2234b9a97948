#pragma once

#include <cstddef>
#include <memory>

#include <cuda_runtime_api.h>
#include <faiss/MetricType.h>
#include <faiss/gpu/GpuResources.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/common/FaissErrors.h"
#include "faiss_bits/common/Waiting.h"
#include "kernels/common/Types.h"

/// Helpers shared by the GPU classes: errors, device checks, temporary memory,
/// and where arrays lie. Not part of the API.
namespace faiss_bits::gpu::detail {

using faiss_bits::detail::requireCount;
using faiss_bits::detail::requireNotNull;
using faiss_bits::detail::requirePositive;
using faiss_bits::detail::requireWithin;
using faiss_bits::detail::withFaissErrors;

/// Throws FaissException unless `device` is a CUDA device of this machine.
/// Asked before FAISS is, which ends the process where there is no driver.
void requireDevice(int device);

/// Throws FaissException if a config or parameters ask for cuVS, which this
/// FAISS has not.
template <class Params>
void requireNoMissingCuvs(const Params& params, const char* name) {
    FAISS_THROW_IF_NOT_FMT(
            !asksForMissingCuvs(params),
            "%s = true, but this FAISS has no cuVS",
            name);
}

/// The metric of FAISS's number for it; throws FaissException naming one that
/// we do not have.
Metric requireMetric(faiss::MetricType metric);

/// True if requireMetric does not throw.
bool hasMetric(faiss::MetricType metric);

/// FlatKnnProblem::metricArg: the argument `name` of METRIC_Lp, which must be
/// finite and above 0; of other metrics 0, whatever it is.
float requireMetricArg(Metric metric, const char* name, float value);

/// Where the work of one call runs.
struct GpuContext {
    faiss::gpu::GpuResources* resources = nullptr;
    int device = 0;
    cudaStream_t stream = nullptr;
    /// Whose order temporary memory is taken and released in (CallStream.h).
    cudaStream_t memoryStream = nullptr;
    /// Those that the caller has given, by the word of a CallStream.
    bool arraysAreOnDevice = false;
};

/// Of a call of this thread: the resources' default stream, or CallStream's.
GpuContext contextOf(faiss::gpu::GpuResources& resources, int device);

/// What a call will find of the resources' temporary memory, after what it will
/// take before: for plans. Takes nothing.
class ExpectedMemory {
   public:
    explicit ExpectedMemory(size_t left) : left_(left) {}

    /// Of what is there now.
    explicit ExpectedMemory(const GpuContext& context);

    /// As allocTemporary: what does not fit comes from elsewhere.
    void take(size_t bytes);

    /// scratchBudget, then.
    size_t scratchBudget() const;

   private:
    size_t left_;
};

/// Scratch that a kernel may use: what is left of the resources' temporary
/// memory, and at least 32 MiB, which then come from cudaMalloc: that and its
/// release wait for the device.
size_t scratchBudget(const GpuContext& context);

/// Temporary memory. It begins at a multiple of 256 bytes, as cudaMalloc's:
/// FAISS's begins 16 bytes behind one, and rows that lie there take a line of
/// the L2 more (lists on an H200, 10,240 queries of 128 components: 5% longer
/// for queries there, 1 to 2% for all else).
class TemporaryMemory {
   public:
    /// Bytes of FAISS's memory beyond those that are asked for, at most.
    static constexpr size_t kMore = 256;

    TemporaryMemory() = default;
    /// Of FAISS's memory that has kMore bytes to spare.
    explicit TemporaryMemory(faiss::gpu::GpuMemoryReservation memory);

    void* get() const {
        return at_;
    }
    void release() {
        at_ = nullptr;
        memory_.release();
    }

   private:
    faiss::gpu::GpuMemoryReservation memory_;
    void* at_ = nullptr;
};

/// Temporary memory of the current device, free again in stream order.
/// FAISS's allocator is a stack: release in the reverse order. Of no bytes:
/// nullptr, as FAISS's. Throws FaissException when there is none left.
TemporaryMemory allocTemporary(const GpuContext& context, size_t bytes);

/// Memory of the current device from CUDA itself, for what may outlive the
/// resources of the call that makes it, or be released by another thread.
/// Throws FaissException when there is none left. The release waits for the
/// device.
std::shared_ptr<void> allocateOnDevice(size_t bytes);

/// Where an array lies. Managed memory counts as the host's, as in FAISS.
struct Place {
    bool onHost = true;
    bool pageable = true; ///< neither pinned, managed nor on the device
};

/// Throws FaissException naming the array if it lies on another device.
Place placeOf(const GpuContext& context, const char* name, const void* data);

/// A whole array that kernels read: where it lies on the device, or a copy in
/// temporary memory, made in the order of the context's stream. The copy can be
/// interrupted, as PagedCall.
class DeviceArray {
   public:
    /// Throws FaissException naming the array if it lies on another device.
    DeviceArray(
            const GpuContext& context,
            const char* name,
            const void* data,
            size_t bytes);

    /// Of an array that lies on the device.
    explicit DeviceArray(const void* data)
            : data_(data), place_{false, false} {}

    const void* data() const {
        return data_;
    }

    bool isOnHost() const {
        return place_.onHost;
    }

    /// True if host memory may still be read after the constructor has
    /// returned: the caller waits for the stream.
    bool readsOn() const {
        return place_.onHost && !place_.pageable;
    }

   private:
    const void* data_;
    Place place_;
    TemporaryMemory copy_;
};

/// Resources of the provider for a device, -1 being the current one. The
/// shared pointer keeps them alive.
struct OwnedContext {
    OwnedContext(faiss::gpu::GpuResourcesProvider* provider, int device);

    std::shared_ptr<faiss::gpu::GpuResources> resources;
    GpuContext context;
};

/// The resources of a provider; throws FaissException if there are none.
std::shared_ptr<faiss::gpu::GpuResources> resourcesOf(
        faiss::gpu::GpuResourcesProvider* provider);

/// Copies bytes from the device to `out`, on the host or on the device. Waits
/// if `out` is on the host. Throws FaissException naming `out` if it lies on
/// another device.
void copyOut(
        const GpuContext& context,
        const void* source,
        const char* name,
        void* out,
        size_t bytes);

} // namespace faiss_bits::gpu::detail

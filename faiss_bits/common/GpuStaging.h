#pragma once

#include <cstddef>
#include <memory>

#include <cuda_runtime_api.h>
#include <faiss/MetricType.h>
#include <faiss/gpu/GpuResources.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/common/FaissErrors.h"
#include "kernels/common/Types.h"

/// Helpers shared by the GPU classes: errors, device checks, temporary memory,
/// and arrays that may lie on the host or on the device. Not part of the API.
namespace faiss_bits::gpu::detail {

using faiss_bits::detail::requireNotNull;
using faiss_bits::detail::withFaissErrors;

/// Throws FaissException unless `device` is a CUDA device of this machine.
/// Asked before FAISS is, which ends the process where there is no driver.
void requireDevice(int device);

/// METRIC_L2 or METRIC_INNER_PRODUCT; throws FaissException naming any other.
Metric requireMetric(faiss::MetricType metric);

int multiprocessorsOf(int device);

/// Where the work of one call runs.
struct GpuContext {
    faiss::gpu::GpuResources* resources = nullptr;
    int device = 0;
    cudaStream_t stream = nullptr;
};

/// Scratch that a kernel may use: what is left of the resources' temporary
/// memory, and at least 32 MiB, which then come from cudaMalloc.
size_t scratchBudget(const GpuContext& context);

/// Temporary memory of the current device, free again in stream order.
/// FAISS's allocator is a stack: release in the reverse order. Memory starts
/// at multiples of 16 bytes. Throws FaissException when there is none left.
faiss::gpu::GpuMemoryReservation allocTemporary(
        const GpuContext& context,
        size_t bytes);

/// Rows per page such that staging takes a fair share of the temporary memory,
/// and no more than `pageLimit` bytes (at least 1 MiB) where all rows together
/// would take more. At least 1, at most `rows`; `rows` if nothing is staged.
idx_t rowsPerPage(
        const GpuContext& context,
        idx_t rows,
        size_t stagedBytesPerRow,
        size_t pageLimit);

/// Rows that a kernel reads. Host rows are copied to the device page by page;
/// rows on the device are used in place.
class StagedInput {
   public:
    /// Throws FaissException naming the array if it lies on another device.
    StagedInput(
            const GpuContext& context,
            const char* name,
            const void* data,
            size_t rowBytes);

    /// Bytes of staging per row: 0 if the rows are on the device.
    size_t stagedRowBytes() const {
        return onHost_ ? rowBytes_ : 0;
    }

    /// Takes staging memory for pages of up to `rows` rows.
    void allocate(idx_t rows);

    /// Rows [first, first + rows) on the device, in stream order.
    const void* page(idx_t first, idx_t rows);

    /// True if copies may still read host memory after page() has returned.
    bool readsAfterReturn() const {
        return onHost_ && !pageable_;
    }

   private:
    const GpuContext& context_;
    const char* data_;
    size_t rowBytes_;
    bool onHost_ = false;
    bool pageable_ = true;
    faiss::gpu::GpuMemoryReservation staging_;
};

/// Rows that a kernel writes. A null `data` is staged and thrown away.
class StagedOutput {
   public:
    /// Throws FaissException naming the array if it lies on another device.
    StagedOutput(
            const GpuContext& context,
            const char* name,
            void* data,
            size_t rowBytes);

    size_t stagedRowBytes() const {
        return staged_ ? rowBytes_ : 0;
    }
    void allocate(idx_t rows);

    /// Where to write the row `first` and those behind it.
    void* page(idx_t first);

    /// Copies the page to the host, if that is where it goes.
    void finish(idx_t first, idx_t rows);

    /// Keeps the rows from being copied to the host.
    void discard() {
        data_ = nullptr;
        staged_ = true;
    }

    /// True if the caller must wait for the stream before reading the rows.
    bool isOnHost() const {
        return staged_ && data_;
    }

   private:
    const GpuContext& context_;
    char* data_;
    size_t rowBytes_;
    bool staged_ = true;
    faiss::gpu::GpuMemoryReservation staging_;
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

void waitFor(cudaStream_t stream);

} // namespace faiss_bits::gpu::detail

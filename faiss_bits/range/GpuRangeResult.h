#pragma once

#include <memory>
#include <vector>

#include <cuda_runtime_api.h>
#include <faiss/Index.h>

#include "kernels/common/Types.h"

namespace faiss_bits::gpu {

/// The results of a range search on the device, as rows of a sparse matrix: of
/// query i those from lims[i] to lims[i + 1] - 1, in ascending labels.
///
/// They lie in parts, one behind the other: mostly one, and several where the
/// search went through its queries in tiles. copyTo() puts them together.
class GpuRangeResult {
   public:
    /// Some of the results, on the device.
    struct Part {
        idx_t size = 0;             ///< results
        float* distances = nullptr; ///< [size]
        idx_t* labels = nullptr;    ///< [size]
    };

    GpuRangeResult() = default;
    virtual ~GpuRangeResult() = default;
    GpuRangeResult(const GpuRangeResult&) = delete;
    GpuRangeResult& operator=(const GpuRangeResult&) = delete;

    std::vector<idx_t> lims; ///< [queries + 1], on the host
    std::vector<Part> parts; ///< in their order

    /// All results, to arrays of lims.back() elements on the device or on the
    /// host. Enqueues, and waits where they are on the host.
    void copyTo(float* distances, idx_t* labels, cudaStream_t stream) const;

    /// Memory of the current device for the next `size` >= 1 results: from
    /// cudaMalloc, until this object goes. Derived classes may bring their own.
    virtual Part allocate(idx_t size);

   private:
    std::vector<std::shared_ptr<void>> memory_;
};

} // namespace faiss_bits::gpu

#pragma once

#include <faiss/Index.h>

#include "faiss_bits/common/GpuStaging.h"
#include "kernels/common/Types.h"

/// A flat index as the quantizer of inverted lists. Not part of the API.
namespace faiss_bits::gpu::detail {

class GpuSearchCounters;

/// Centroids of lists, whose nearest ones a search of lists can find itself.
struct Centroids {
    const float* vectors = nullptr; ///< [lists, d], on the device; or nullptr
    Metric metric = Metric::L2;     ///< L2 or InnerProduct
    /// Of the quantizer, for the queries whose lists were found so.
    GpuSearchCounters* counters = nullptr;
};

/// Those of a quantizer of our own that searches just so: a GpuIndexBitsFlat,
/// by L2 or inner product and certified, of float32 with the context's
/// resources and device, and no class that derives from it. Null vectors of any
/// other.
Centroids centroidsFor(
        const GpuContext& context,
        const faiss::Index& quantizer);

} // namespace faiss_bits::gpu::detail

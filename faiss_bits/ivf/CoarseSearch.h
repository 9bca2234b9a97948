#pragma once

#include <faiss/Index.h>

#include "faiss_bits/common/GpuStaging.h"
#include "kernels/common/Types.h"

/// The coarse step of an IVF search. Not part of the API.
namespace faiss_bits::gpu::detail {

class GpuSearchCounters;

/// The nprobe nearest centroids of n queries x [n, d] to lists [n, nprobe], -1
/// where there are no more; distances [n, nprobe] are scratch. All on the
/// context's device.
///
/// quantizer  on the CPU, which waits for the device, or on the same GPU; in
///            the order of the context's stream, whatever its resources are
/// Errors     whatever the quantizer throws
void searchCoarse(
        const GpuContext& context,
        const faiss::Index& quantizer,
        idx_t n,
        const float* x,
        idx_t nprobe,
        float* distances,
        idx_t* lists,
        const faiss::SearchParameters* params);

/// Centroids of lists, whose nearest ones a search of lists can find itself.
struct Centroids {
    const float* vectors = nullptr; ///< [lists, d], on the device; or nullptr
    Metric metric = Metric::L2;     ///< L2 or InnerProduct
    /// Of the quantizer, for the queries whose lists were found so.
    GpuSearchCounters* counters = nullptr;
};

/// Those of a quantizer of our own that searches just so: a GpuIndexBitsFlat of
/// float32 with the context's resources, and no class that derives from it.
Centroids centroidsFor(
        const GpuContext& context,
        const faiss::Index& quantizer);

} // namespace faiss_bits::gpu::detail

#pragma once

#include <faiss/Index.h>

#include "faiss_bits/common/GpuStaging.h"

/// The coarse step of an IVF search. Not part of the API.
namespace faiss_bits::gpu::detail {

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

} // namespace faiss_bits::gpu::detail

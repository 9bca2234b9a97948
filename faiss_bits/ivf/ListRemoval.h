#pragma once

#include <faiss/impl/IDSelector.h>

#include "faiss_bits/common/GpuStaging.h"
#include "kernels/ivf/IvfLists.h"

namespace faiss::gpu {
class IVFBase;
} // namespace faiss::gpu

/// Vectors that leave the lists of FAISS's GPU indexes. Not part of the API.
namespace faiss_bits::gpu::detail {

/// Removes the vectors of float32 lists whose ids are selected, and returns how
/// many. As in FAISS their places go to the last of the vectors that stay.
///
/// Stream   waits for the device
/// Memory   that of ListFilter, 4 bytes for 32 vectors and for each that is
///          removed, temporary. What the lists have taken stays theirs, until
///          FAISS's reclaimMemory
/// Errors   FaissException, and what is_member throws: nothing has changed
/// then.
///          2^32 vectors or more are refused
idx_t removeFromLists(
        const GpuContext& context,
        const faiss::IDSelector& selector,
        const IvfLists& lists,
        faiss::gpu::IVFBase& index);

} // namespace faiss_bits::gpu::detail

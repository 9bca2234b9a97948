#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/knn/fused/FusedParams.h"

namespace faiss_bits {

/// Where the vectors are while lists are scored.
enum class SlotPlace {
    Auto,
    Shared, ///< divided among the shared memories; throws Error if too many
    Memory,
};

/// Parts that the vectors are divided into to fit shared memory: vector v is in
/// part v % parts. 0: they do not fit a few.
uint32_t slotParts(int64_t n, int d, const DeviceTraits& device);

/// Enqueues the canonical distances of what passed, by L2, inner product or
/// cosine: search.entries [rows, numCandidates] get the entry of each column of
/// a list. slotRows: the vectors (SlotRows.h). There is no list of ids.
void launchScoreSlots(
        Metric metric,
        const PassedParams& passed,
        const float* slotRows,
        SlotPlace place,
        const DeviceTraits& device,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/PassedWords.h"

namespace faiss_bits {

/// Where the vectors are while lists are scored.
enum class SlotPlace {
    Auto,
    Shared, ///< divided among the shared memories; throws Error if too many
    Memory,
};

/// Parts that the vectors are divided into to fit shared memory, 32 at a time
/// in turn, so that no order of them gives one part more to do. 0: they do not
/// fit a few parts.
uint32_t slotParts(int64_t n, int d, const DeviceTraits& device);

/// Enqueues the canonical distances of what passed, by L2, inner product or
/// cosine: search.entries [rows, numCandidates] get the entry of each column of
/// a list, or of the bits in order. slotRows: the vectors (SlotRows.h), at most
/// 2^18. Columns are vectors, no places in a list of ids; numCandidates is 2^14
/// at most.
void launchScoreSlots(
        Metric metric,
        const PassedParams& passed,
        const PassedWords& words,
        const float* slotRows,
        SlotPlace place,
        const DeviceTraits& device,
        cudaStream_t stream);

} // namespace faiss_bits

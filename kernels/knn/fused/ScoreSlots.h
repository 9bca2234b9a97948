#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/PassedWords.h"
#include "kernels/knn/fused/SlotRows.h"

namespace faiss_bits {

/// Enqueues the canonical distances of what passed, by L2, inner product or
/// cosine: search.entries [rows, numCandidates] get the entry of each column of
/// a list, or of the bits in order, whose counts are written. slotRows: of the
/// vectors, at most 2^18. Columns are vectors, no places in a list of ids;
/// numCandidates is 2^14 at most.
void launchScoreSlots(
        Metric metric,
        const PassedParams& passed,
        const PassedWords& words,
        const float* slotRows,
        const DeviceTraits& device,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/PassedWords.h"
#include "kernels/knn/fused/SlotRows.h"

namespace faiss_bits {

/// Largest k whose results are written by the kernel that scores.
constexpr int kMostSlotK = 32;

/// Lists, or rows of bits, of what passed.
struct ScoreSlotsParams {
    PassedParams passed;
    PassedWords words;
    const float4* slotRows = nullptr; // a copy of the vectors: SlotRows.h
    const float* complete = nullptr;  // [rows], SurvivorOutput::complete
};

/// Enqueues the canonical distances of what passed, by L2, inner product or
/// cosine, of each column of a list, or of the bits in order, whose counts are
/// written. For k <= kMostSlotK it writes the results too, and flags of rows
/// that are not proved; for more, search.entries [rows, numCandidates].
/// slotRows: of at most 2^18 vectors. Columns are vectors, no places in a list
/// of ids; numCandidates is 2^14 at most.
void launchScoreSlots(
        Metric metric,
        const ScoreSlotsParams& params,
        const DeviceTraits& device,
        cudaStream_t stream);

} // namespace faiss_bits

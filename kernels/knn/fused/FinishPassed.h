#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/ScoreSlots.h"

namespace faiss_bits {

/// Largest k that a warp finishes.
constexpr int kMostWarpK = 128;

/// What becomes results: the lists, and what is known of them.
struct FinishPassedParams {
    PassedParams passed;
    const float* complete = nullptr; // [rows], SurvivorOutput::complete
    /// A copy of the vectors, for k > kMostSlotK with search.entries to write
    /// to; none: they are read where they lie. And bits in place of the lists.
    const float* slotRows = nullptr;
    PassedWords words;
};

/// Enqueues all that follows a fused scan by L2, inner product or cosine, for
/// k <= kMostWarpK: canonical distances of what passed, the k best in order,
/// and the flags of rows that are not proved. A warp a row, with its k best in
/// registers; rows of more entries have a block each. Without slotRows no entry
/// is written to memory. finishesByWarps() says where it pays.
void launchFinishPassed(
        Metric metric,
        const FinishPassedParams& params,
        const DeviceTraits& device,
        cudaStream_t stream);

} // namespace faiss_bits

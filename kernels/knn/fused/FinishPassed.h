#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/knn/fused/FusedParams.h"

namespace faiss_bits {

/// Largest k that a warp finishes.
constexpr int kMostWarpK = 128;

/// What becomes results: the lists, and what is known of them.
struct FinishPassedParams {
    PassedParams passed;
    const float* complete = nullptr; // [rows], SurvivorOutput::complete
};

/// Whether most lists are short, and so many that a warp for each fills the
/// GPU: launchFinishPassed serves them then. usual: entries that most lists
/// have no more than. L2, inner product and cosine.
bool warpsFinish(Metric metric, int k, idx_t rows, double usual);

/// Enqueues all that follows a fused scan, for k <= kMostWarpK: canonical
/// distances of what passed, the k best in order, and the flags of rows that
/// are not proved. A warp a row, with its list in registers; rows of more
/// entries have a block each. Writes no entries to memory.
void launchFinishPassed(
        Metric metric,
        const FinishPassedParams& params,
        const DeviceTraits& device,
        cudaStream_t stream);

} // namespace faiss_bits

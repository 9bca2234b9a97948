#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/common/Types.h"
#include "kernels/knn/fused/ScoreSlots.h"

namespace faiss_bits {

/// Whether there is such a kernel: L2, bits, k <= kMostSlotK, 33 to 128
/// components.
bool canScoreRows(Metric metric, const ScoreSlotsParams& params);

/// Whether it takes less time than a warp a row: of so many rows that their
/// warps fill the GPU, as a row takes longer.
bool scoreRowsPays(const ScoreSlotsParams& params, const DeviceTraits& device);

/// launchScoreSlots() of bits: the same results, flags and counts. A row with
/// more than numCandidates is flagged, and none of its distances are computed.
void launchScoreRows(
        Metric metric,
        const ScoreSlotsParams& params,
        const DeviceTraits& device,
        cudaStream_t stream);

} // namespace faiss_bits

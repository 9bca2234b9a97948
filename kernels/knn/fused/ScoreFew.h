#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"
#include "kernels/knn/fused/ScoreSlots.h"

namespace faiss_bits {

/// Places of the result that eight lanes hold, one each.
constexpr int kMostFewK = 8;
/// Words of a row that they hold: of 4,096 vectors.
constexpr uint32_t kMostFewWords = 128;

/// Whether there is such a kernel: L2, bits, 33 to 128 components.
bool canScoreFew(Metric metric, const ScoreSlotsParams& params);

/// Whether it takes less time than a warp a row, which has a row of some places
/// sooner: of many rows, or where one or two pass.
bool scoreFewPays(const ScoreSlotsParams& params);

/// launchScoreSlots() where few bits of a row are set: the same results, flags
/// and counts. A row with more than numCandidates is flagged, and none of its
/// distances are computed.
void launchScoreFew(
        Metric metric,
        const ScoreSlotsParams& params,
        cudaStream_t stream);

} // namespace faiss_bits

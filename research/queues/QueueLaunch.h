#pragma once

#include <cuda_runtime_api.h>

#include "research/queues/QueueParams.h"
#include "research/queues/QueueSelect.h"

namespace faiss_bits {

/// Fills outQueues: by a scan, or by a descent where there is a partition,
/// whose levels must have been built. One block a warp.
template <QueueKind Kind, bool Aligned>
void launchQueueSearch(
        const QueueParams& params,
        unsigned warps,
        int sharedBytes,
        cudaStream_t stream);

/// Builds the levels of the partition (Tang 2015, Algorithm 4).
void buildQueueLevels(const QueueParams& params, cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/select/threshold/RowsAgainParams.h"

namespace faiss_bits {

/// Enqueue one launch. `Keys` as in kernels/select/bits/BitsLaunch.h; `blocks`
/// is the rows, times splits or parts where rows are split.

template <class Keys, int Threads, int Room>
void launchWholeRows(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream);

/// params.sampleParts blocks a row. Not for BiasedKeys.
template <class Keys, int Threads, int Room>
void launchClusterRows(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream);

template <class Keys>
void launchSampleLimit(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream);

template <class Keys>
void launchSplitRows(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream);

/// `blocks`: clusters of params.clusterBlocks.
template <class Keys>
void launchRowsAgain(
        const RowsAgainParams& params,
        unsigned blocks,
        cudaStream_t stream);

/// Lowers params.staged to what the shared memory has room for.
template <class Keys, int Threads, int Room>
void launchFinishRows(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream);

} // namespace faiss_bits

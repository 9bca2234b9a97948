#pragma once

#include <cuda_runtime_api.h>

#include "kernels/select/filter/FilterParams.h"

namespace faiss_bits {

/// Enqueue one launch. `Keys` as in kernels/select/SelectLaunch.h; `blocks` is
/// the rows, times splits or parts where rows are split.

template <class Keys, int Threads, int Room>
void launchFusedFilter(
        const FilterParams& params,
        unsigned blocks,
        cudaStream_t stream);

template <class Keys>
void launchSampleLimit(
        const FilterParams& params,
        unsigned blocks,
        cudaStream_t stream);

template <class Keys>
void launchSplitFilter(
        const FilterParams& params,
        unsigned blocks,
        cudaStream_t stream);

template <class Keys>
void launchFilterAgain(
        const FilterParams& params,
        unsigned blocks,
        cudaStream_t stream);

/// Lowers params.staged to what the shared memory has room for.
template <class Keys, int Threads, int Room>
void launchFinishRows(
        const FilterParams& params,
        unsigned blocks,
        cudaStream_t stream);

} // namespace faiss_bits

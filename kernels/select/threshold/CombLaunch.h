#pragma once

#include <cuda_runtime_api.h>

#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

/// Enqueues one launch of a block for each row. `Keys` as in
/// kernels/select/bits/BitsLaunch.h, but not BiasedKeys.
template <class Keys, int Threads, int Room>
void launchCombRows(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream);

} // namespace faiss_bits

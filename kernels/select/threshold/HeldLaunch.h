#pragma once

#include <cuda_runtime_api.h>

#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

/// Enqueues one launch of rows * params.sampleParts blocks, of params.segment
/// columns each. `Keys` as in kernels/select/bits/BitsLaunch.h, but not
/// BiasedKeys.
template <class Keys, int Threads, int Room>
void launchHeldRows(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream);

} // namespace faiss_bits

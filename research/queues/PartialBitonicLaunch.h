#pragma once

#include <cuda_runtime_api.h>

#include "research/queues/PartialBitonicParams.h"

namespace faiss_bits {

/// Threads * Items is the size of the list.
template <int Threads, int Items>
void launchPartialBitonic(
        const PartialBitonicParams& params,
        unsigned blocks,
        cudaStream_t stream);

/// The list in shared memory; no buffer.
void launchPartialBitonicShared(
        const PartialBitonicParams& params,
        bool shuffles,
        int threads,
        unsigned blocks,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/metric_space/MetricSpace.h"

namespace faiss_bits::metric_space {

/// splitFinite of vectors on the device; flags is [n] on the device. Waits.
void splitFiniteOnGpu(
        const MetricVectors& vectors,
        uint8_t* flags,
        std::vector<idx_t>& finite,
        std::vector<idx_t>& rest,
        cudaStream_t stream);

} // namespace faiss_bits::metric_space

#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "faiss_bits/common/FaissCompat.h"

namespace faiss_bits::bench {

/// FAISS's own k-selections, on plain pointers: the k smallest keys of every
/// row of keys [rows, cols] to outKeys and outIds [rows, k], all contiguous.
/// ids have the type that this FAISS uses. Enqueues. Float keys only: FAISS
/// declares these functions for half keys too, but does not define them.
void runFaissBlockSelect(
        const float* keys,
        int64_t rows,
        int64_t cols,
        int k,
        float* outKeys,
        gpu::ImplSize* outIds,
        cudaStream_t stream);

void runFaissWarpSelect(
        const float* keys,
        int64_t rows,
        int64_t cols,
        int k,
        float* outKeys,
        gpu::ImplSize* outIds,
        cudaStream_t stream);

} // namespace faiss_bits::bench

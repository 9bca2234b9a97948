#pragma once

#include <vector>

#include "benchs/FaissSelect.h"

namespace faiss_bits::bench {

/// Sizes of the thread queue that WarpSelect can be asked for at this k.
std::vector<int> faissThreadQueues(int k);

/// FAISS's WarpSelect with a thread queue of this size where runWarpSelect has
/// its own choice (thesis, 5.3). Throws Error if there is no such kernel.
void runFaissWarpSelectWith(
        int threadQueue,
        const float* keys,
        int64_t rows,
        int64_t cols,
        int k,
        float* outKeys,
        gpu::ImplSize* outIds,
        cudaStream_t stream);

} // namespace faiss_bits::bench

#pragma once

#include "kernels/knn/FlatKnn.h"

namespace faiss_bits {

/// Enqueues the copy of a random sample of a problem's vectors to
/// out [samples, d] of its type, row-major: one from each of as many even
/// parts, the same ones in every run. Single vectors, as neighbours in memory
/// are often alike. samples <= n.
void runGatherSample(
        const FlatKnnProblem& problem,
        idx_t samples,
        void* out,
        cudaStream_t stream);

} // namespace faiss_bits

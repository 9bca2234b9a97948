#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/fused/FusedParams.h"

namespace faiss_bits {

/// Whether launchScoreStreamed takes these: L2, inner product or cosine, and
/// rows of vectors that can be copied 16 bytes at a time, long enough that
/// their way through shared memory pays.
bool canScoreStreamed(Metric metric, const CertifiedParams& search);

/// Enqueues the canonical distances of what passed, as launchScorePassed does,
/// for vectors that mostly come from memory: they are on their way to shared
/// memory while earlier ones are computed.
///
/// Cost  a read of the vectors that passed
void launchScoreStreamed(
        Metric metric,
        const PassedParams& params,
        int multiprocessors,
        cudaStream_t stream);

} // namespace faiss_bits

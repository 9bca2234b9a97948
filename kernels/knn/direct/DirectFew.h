#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/direct/DirectParams.h"

/// Finishes of few keys: one block has all of a query's in registers, and
/// needs no least of groups. What takes its time is how often it waits, for
/// memory and for its threads, and not how much it reads.
namespace faiss_bits {

/// Keys of a query at most, whole groups.
constexpr idx_t kMostFewKeys = 32768;
/// Each of the best is compared with all of them.
constexpr int kMostFewK = 128;

/// Makes the results that launchDirectFinish makes of the same parameters,
/// params.direct.least aside. Throws Error unless params.k <= kMostFewK and
/// params.direct.stride <= kMostFewKeys.
void launchDirectFew(
        const DirectFinishParams& params,
        unsigned rows,
        cudaStream_t stream);

} // namespace faiss_bits

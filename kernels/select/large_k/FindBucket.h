#pragma once

#include <cuda_runtime_api.h>

#include "kernels/select/large_k/MultiPassParams.h"

namespace faiss_bits {

/// Writes states[0] of the batch: every column is a candidate.
void launchBeginRows(const MultiPassParams& params, cudaStream_t stream);

/// From the prefixes that this pass counted to the rows' next states and to
/// the offsets of their splits. Rows with few candidates stay as they are.
void launchFindBucket(
        const MultiPassParams& params,
        bool bySplitters,
        cudaStream_t stream);

} // namespace faiss_bits

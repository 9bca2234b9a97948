#pragma once

#include "kernels/common/Workspace.h"
#include "kernels/ivf/IvfScratch.h"

/// The queries of a search by estimates that are not proved.
namespace faiss_bits {

/// Keys of limits, of the rows that were not proved.
void launchIvfAgainLimits(const IvfAgainLimits& params, cudaStream_t stream);

/// Waits for their number, and searches them again: with room for all that is
/// within their limits, and what is not proved then, as few queries at once,
/// with all distances kept. Whether there were any.
bool searchIvfAgain(
        const IvfKnnProblem& problem,
        const IvfAgainScratch& again,
        Workspace workspace,
        cudaStream_t stream);

} // namespace faiss_bits

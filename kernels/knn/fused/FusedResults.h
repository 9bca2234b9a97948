#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/certified/CertifiedParams.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedScratch.h"

namespace faiss_bits {

/// Enqueues the selection of the k best of every list's entries, and flags
/// queries whose list is not proved to have them (SurvivorOutput).
void writeFusedResults(
        const FusedPlan& plan,
        const FlatKnnProblem& problem,
        const FusedScratch& scratch,
        const CertifiedParams& params,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/certified/VectorGroups.h"

namespace faiss_bits {

/// Ranks the candidates of every row by canonical distance, writes results and
/// flags. Instantiated for every Metric.
template <Metric kMetric>
void launchRescore(const CertifiedParams& params, cudaStream_t stream);

/// Searches the flagged rows again. Ends at once where there are none.
template <Metric kMetric>
void launchScanAgain(
        const ScanAgainParams& params,
        int multiprocessors,
        cudaStream_t stream);

} // namespace faiss_bits

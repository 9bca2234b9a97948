#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/direct/DirectParams.h"

namespace faiss_bits {

/// Enqueues the scan: kDirectQueries queries a block if severalQueries, else
/// one. kernels/CMakeLists.txt lists the instances.
template <Metric kMetric>
void launchDirectScan(
        const DirectScanParams& params,
        bool severalQueries,
        int multiprocessors,
        cudaStream_t stream);

/// Enqueues what makes results of keys, for params.k <= kMaxFinishK: one block
/// a query.
void launchDirectFinish(
        const DirectFinishParams& params,
        unsigned rows,
        cudaStream_t stream);

} // namespace faiss_bits

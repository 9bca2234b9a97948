#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/direct/DirectParams.h"

namespace faiss_bits {

/// How a scan shares its pairs out: eight lanes a pair, a lane a vector and one
/// query a block, or kDirectQueries; or eight lanes a pair, four vectors and
/// several queries (DirectProducts.cuh).
enum class DirectShape { Slots, OneQuery, SeveralQueries, Products };

/// Enqueues the scan. kernels/CMakeLists.txt lists the instances.
template <Metric kMetric>
void launchDirectScan(
        const DirectScanParams& params,
        DirectShape shape,
        int multiprocessors,
        cudaStream_t stream);

/// Enqueues what makes results of keys, for params.k <= kMaxFinishK: one block
/// a query.
void launchDirectFinish(
        const DirectFinishParams& params,
        unsigned rows,
        cudaStream_t stream);

} // namespace faiss_bits

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/few_queries/FewQueriesParams.h"

namespace faiss_bits {

/// Names of the compiled instances (kernels/CMakeLists.txt lists them).
struct FloatVectors;
struct HalfVectors;

/// Enqueues one launch. `queries` is 1, 4 or 16; `vectorLoads` says that every
/// vector starts at a multiple of four components' size. Filtered: params has
/// `allowed` or `ids`; else neither.
template <class Vectors, int Lanes, bool Filtered>
void launchFewQueries(
        const FewQueriesParams& params,
        int queries,
        bool isL2,
        bool vectorLoads,
        int multiprocessors,
        cudaStream_t stream);

} // namespace faiss_bits

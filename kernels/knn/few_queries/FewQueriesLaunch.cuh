/// The launches of fewQueriesKernel; included by the generated sources only.
#pragma once

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/knn/few_queries/FewQueries.cuh"
#include "kernels/knn/few_queries/FewQueriesLaunch.h"

namespace faiss_bits {

struct FloatVectors {
    using Type = float;
};

struct HalfVectors {
    using Type = __half;
};

template <class T, int Lanes, int Queries, bool IsL2, bool VectorLoads>
void launchFewQueriesKernel(
        const FewQueriesParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    using Body = FewQueriesBody<T, Lanes, Queries, IsL2, VectorLoads>;
    const auto kernel = fewQueriesKernel<T, Lanes, Queries, IsL2, VectorLoads>;
    const size_t shared = fewQueriesSharedBytes(Queries, params.d);
    if (shared > 48 * 1024) {
        BITS_CUDA_CHECK(cudaFuncSetAttribute(
                kernel,
                cudaFuncAttributeMaxDynamicSharedMemorySize,
                int(shared)));
    }
    const idx_t perBlock =
            idx_t(Body::kVectorsPerWarp) * (kFewQueriesThreads / kWarpSize);
    const idx_t needed = (params.numVectors + perBlock - 1) / perBlock;
    // Two rounds of blocks: the queries are loaded seldom, and a slow block
    // does little harm.
    const idx_t most = idx_t(multiprocessors) * (Queries >= 16 ? 4 : 8);
    kernel<<<
            unsigned(std::min(needed, most)),
            kFewQueriesThreads,
            shared,
            stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class T, int Lanes, int Queries>
void launchFewQueriesOf(
        const FewQueriesParams& params,
        bool isL2,
        bool vectorLoads,
        int multiprocessors,
        cudaStream_t stream) {
    const auto launch = isL2
            ? (vectorLoads
                       ? launchFewQueriesKernel<T, Lanes, Queries, true, true>
                       : launchFewQueriesKernel<T, Lanes, Queries, true, false>)
            : (vectorLoads
                       ? launchFewQueriesKernel<T, Lanes, Queries, false, true>
                       : launchFewQueriesKernel<
                                 T,
                                 Lanes,
                                 Queries,
                                 false,
                                 false>);
    launch(params, multiprocessors, stream);
}

template <class Vectors, int Lanes>
void launchFewQueries(
        const FewQueriesParams& params,
        int queries,
        bool isL2,
        bool vectorLoads,
        int multiprocessors,
        cudaStream_t stream) {
    using T = typename Vectors::Type;
    const auto launch = queries == 1 ? launchFewQueriesOf<T, Lanes, 1>
            : queries == 4           ? launchFewQueriesOf<T, Lanes, 4>
                                     : launchFewQueriesOf<T, Lanes, 16>;
    launch(params, isL2, vectorLoads, multiprocessors, stream);
}

} // namespace faiss_bits

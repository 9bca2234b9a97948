/// The launches of fewQueriesKernel; included by the generated sources only.
#pragma once

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/knn/few_queries/FewQueries.cuh"
#include "kernels/knn/few_queries/FewQueriesLaunch.h"

namespace faiss_bits {

struct FloatVectors {
    using Type = float;
};

struct HalfVectors {
    using Type = __half;
};

template <
        class T,
        int Lanes,
        int Queries,
        bool IsL2,
        bool VectorLoads,
        bool Filtered>
void launchFewQueriesKernel(
        const FewQueriesParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    using Body = FewQueriesBody<T, Lanes, Queries, IsL2, VectorLoads, Filtered>;
    const auto kernel =
            fewQueriesKernel<T, Lanes, Queries, IsL2, VectorLoads, Filtered>;
    const size_t shared = fewQueriesSharedBytes(Queries, params.d);
    allowSharedBytes(kernel, shared);
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

template <class T, int Lanes, int Queries, bool Filtered>
void launchFewQueriesOf(
        const FewQueriesParams& params,
        bool isL2,
        bool vectorLoads,
        int multiprocessors,
        cudaStream_t stream) {
    const auto choose = [&]<bool IsL2>() {
        return vectorLoads ? launchFewQueriesKernel<
                                     T,
                                     Lanes,
                                     Queries,
                                     IsL2,
                                     true,
                                     Filtered>
                           : launchFewQueriesKernel<
                                     T,
                                     Lanes,
                                     Queries,
                                     IsL2,
                                     false,
                                     Filtered>;
    };
    const auto launch = isL2 ? choose.template operator()<true>()
                             : choose.template operator()<false>();
    launch(params, multiprocessors, stream);
}

template <class Vectors, int Lanes, bool Filtered>
void launchFewQueries(
        const FewQueriesParams& params,
        int queries,
        bool isL2,
        bool vectorLoads,
        int multiprocessors,
        cudaStream_t stream) {
    using T = typename Vectors::Type;
    const auto launch = queries == 1 ? launchFewQueriesOf<T, Lanes, 1, Filtered>
            : queries == 4           ? launchFewQueriesOf<T, Lanes, 4, Filtered>
                           : launchFewQueriesOf<T, Lanes, 16, Filtered>;
    launch(params, isL2, vectorLoads, multiprocessors, stream);
}

} // namespace faiss_bits

/// The launches of fewQueriesScanKernel; included by the generated sources
/// only.
#pragma once

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/knn/fused/few_queries/FewQueriesScan.cuh"
#include "kernels/knn/fused/pairwise/FusedPairwiseLaunch.h"

namespace faiss_bits {

template <class Term, int Lanes, int Queries>
void launchFewQueriesScanKernel(
        const FusedPairwiseParams& params,
        cudaStream_t stream) {
    using Body = FewQueriesScanBody<Term, Lanes, Queries>;
    const auto kernel = fewQueriesScanKernel<Term, Lanes, Queries>;
    const size_t shared =
            fewQueriesScanBytes(Queries, params.pairs.d, Term::kLogs);
    allowSharedBytes(kernel, shared);
    const idx_t perBlock =
            idx_t(Body::kVectorsPerWarp) * (kFewQueriesScanThreads / 32);
    const idx_t needed = (params.pairs.vectors.count + perBlock - 1) / perBlock;
    // Some rounds of blocks: the queries are loaded seldom, and a slow block
    // does little harm.
    const idx_t most = idx_t(params.multiprocessors) * (Queries >= 16 ? 4 : 6);
    launchAfterPrevious(
            kernel,
            unsigned(std::min(needed, most)),
            kFewQueriesScanThreads,
            shared,
            stream,
            params);
}

template <class Term, int Lanes>
void launchFewQueriesScanOf(
        const FusedPairwiseParams& params,
        cudaStream_t stream) {
    switch (fewQueriesScanInstance(int(params.pairs.queries.count))) {
        case 1:
            return launchFewQueriesScanKernel<Term, Lanes, 1>(params, stream);
        case 4:
            return launchFewQueriesScanKernel<Term, Lanes, 4>(params, stream);
        default:
            return launchFewQueriesScanKernel<Term, Lanes, 16>(params, stream);
    }
}

template <class Term>
void launchFewQueriesScan(
        const FusedPairwiseParams& params,
        cudaStream_t stream) {
    const auto launch = fewQueriesScanChunk(params.pairs.d) == 16
            ? launchFewQueriesScanOf<Term, 4>
            : launchFewQueriesScanOf<Term, 8>;
    launch(params, stream);
}

} // namespace faiss_bits

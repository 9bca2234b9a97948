/// The launches of the kernels for small d; included by the generated sources
/// only.
#pragma once

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/knn/fused/pairwise/FusedPairwiseLaunch.h"
#include "kernels/knn/fused/pairwise/QueriesInLanes.cuh"
#include "kernels/knn/fused/pairwise/VectorsInLanes.cuh"

namespace faiss_bits {

template <class Term, int Dims, int PerQ>
void launchQueriesInLanes(FusedPairwiseParams params, cudaStream_t stream) {
    using Body = QueriesInLanes<Term, Dims, PerQ>;
    const auto tiles = [](idx_t rows, int size) {
        return (rows + size - 1) / size;
    };
    const idx_t queryTiles = tiles(params.pairs.queries.count, Body::kQueries);
    params.pairs.queryTiles = unsigned(queryTiles);
    const idx_t units =
            queryTiles * tiles(params.pairs.vectors.count, Body::kUnit);
    // Two fit on a multiprocessor, and end together.
    const idx_t blocks = std::min<idx_t>(units, 2 * params.multiprocessors);
    queriesInLanesKernel<Term, Dims, PerQ>
            <<<unsigned(blocks), kSmallDimsThreads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class Term, int Dims>
void launchVectorsInLanes(
        const FusedPairwiseParams& params,
        cudaStream_t stream) {
    const idx_t perBlock = VectorsInLanes<Term, Dims>::kVectors;
    const idx_t blocks = (params.pairs.vectors.count + perBlock - 1) / perBlock;
    vectorsInLanesKernel<Term, Dims>
            <<<unsigned(blocks), kSmallDimsThreads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class Term, int Dims>
void launchSmallDimsOf(
        const FusedPairwiseParams& params,
        SmallDimsShape shape,
        cudaStream_t stream) {
    // What fits into registers.
    constexpr int kMany =
            (Dims <= 8 ? 8 : 4) / (Term::kLogs && Dims > 4 ? 2 : 1);
    switch (shape) {
        case SmallDimsShape::VectorsInLanes:
            return launchVectorsInLanes<Term, Dims>(params, stream);
        case SmallDimsShape::SomeQueries:
            return launchQueriesInLanes<Term, Dims, 2>(params, stream);
        case SmallDimsShape::ManyQueries:
            return launchQueriesInLanes<Term, Dims, kMany>(params, stream);
    }
}

template <class Term>
void launchSmallDims(
        const FusedPairwiseParams& params,
        SmallDimsShape shape,
        cudaStream_t stream) {
    const int d = params.pairs.d;
    const auto launch = d <= 2 ? launchSmallDimsOf<Term, 2>
            : d == 3           ? launchSmallDimsOf<Term, 3>
            : d == 4           ? launchSmallDimsOf<Term, 4>
            : d <= 8           ? launchSmallDimsOf<Term, 8>
                               : launchSmallDimsOf<Term, 16>;
    launch(params, shape, stream);
}

} // namespace faiss_bits

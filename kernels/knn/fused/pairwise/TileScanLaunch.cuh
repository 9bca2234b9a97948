/// The launches of tileScanKernel; included by the generated sources only.
#pragma once

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/knn/fused/pairwise/FusedPairwiseLaunch.h"
#include "kernels/knn/fused/pairwise/TileScan.cuh"

namespace faiss_bits {

/// The queries from `first` on, `count` of them.
inline FusedPairwiseParams queriesFrom(
        FusedPairwiseParams params,
        idx_t first,
        idx_t count) {
    PairwiseRows& queries = params.pairs.queries;
    queries.data = static_cast<const uint8_t*>(queries.data) +
            first * queries.rowStride * idx_t(sizeOf(queries.type));
    queries.facts = queries.facts ? queries.facts + first : nullptr;
    queries.count = count;
    params.passed.limits += first;
    if (params.passed.bits) {
        params.passed.bits += first * params.passed.words;
        return params;
    }
    params.passed.counts += first;
    params.passed.columns += first * params.passed.capacity;
    return params;
}

template <class Term, class P>
void launchTileScanKernel(
        const FusedPairwiseParams& params,
        cudaStream_t stream) {
    const auto tiles = [](idx_t rows, int size) {
        return (rows + size - 1) / size;
    };
    const idx_t queries = params.pairs.queries.count;
    const idx_t vectorTiles = tiles(params.pairs.vectors.count, P::vectors);
    // A grid has less than 2^31 blocks.
    const idx_t most = INT32_MAX / vectorTiles * P::queries;
    for (idx_t first = 0; first < queries; first += most) {
        FusedPairwiseParams part =
                queriesFrom(params, first, std::min(most, queries - first));
        const idx_t queryTiles = tiles(part.pairs.queries.count, P::queries);
        // Blocks beside each other share vectors, which are read once that
        // way.
        part.pairs.queryTiles = unsigned(queryTiles);
        tileScanKernel<Term, P>
                <<<unsigned(queryTiles * vectorTiles),
                   kPairwiseThreads,
                   0,
                   stream>>>(part);
        BITS_CUDA_CHECK(cudaGetLastError());
    }
}

template <class Term>
void launchTileScan(
        const FusedPairwiseParams& params,
        bool manyQueries,
        cudaStream_t stream) {
    if (manyQueries) {
        launchTileScanKernel<Term, PairwisePolicy<128, 128, 8, 8, 8, 2>>(
                params, stream);
    } else {
        launchTileScanKernel<Term, PairwisePolicy<16, 256, 4, 4, 8, 2>>(
                params, stream);
    }
}

} // namespace faiss_bits

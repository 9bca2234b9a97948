/// The launches of pairwiseKernel; included by the generated sources only.
#pragma once

#include "kernels/common/CudaCheck.h"
#include "kernels/knn/pairwise/Pairwise.cuh"
#include "kernels/knn/pairwise/PairwiseLaunch.h"

namespace faiss_bits {

template <class Term, class P>
void launchPairwiseKernel(PairwiseParams params, cudaStream_t stream) {
    const auto tiles = [](idx_t rows, int size) {
        return (rows + size - 1) / size;
    };
    const idx_t queryTiles = tiles(params.queries.count, P::queries);
    const idx_t blocks = queryTiles * tiles(params.vectors.count, P::vectors);
    BITS_THROW_IF_NOT_FMT(
            blocks <= INT32_MAX,
            "%lld x %lld distances are too many for one launch",
            (long long)params.queries.count,
            (long long)params.vectors.count);
    // Blocks beside each other share vectors, which are read once that way.
    params.queryTiles = unsigned(queryTiles);
    pairwiseKernel<Term, P>
            <<<unsigned(blocks), kPairwiseThreads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class Term>
void launchPairwise(
        const PairwiseParams& params,
        PairwiseShape shape,
        cudaStream_t stream) {
    // Logarithms take as much shared memory again.
    constexpr int kDepth = Term::kLogs ? 8 : 16;
    switch (shape) {
        case PairwiseShape::FourQueries:
            return launchPairwiseKernel<
                    Term,
                    PairwisePolicy<4, 256, 4, 1, kDepth, 3>>(params, stream);
        case PairwiseShape::SixteenQueries:
            return launchPairwiseKernel<
                    Term,
                    PairwisePolicy<16, 256, 4, 4, 8, 2>>(params, stream);
        case PairwiseShape::ManyQueries:
            return launchPairwiseKernel<
                    Term,
                    PairwisePolicy<128, 128, 8, 8, 8, 2>>(params, stream);
    }
}

} // namespace faiss_bits

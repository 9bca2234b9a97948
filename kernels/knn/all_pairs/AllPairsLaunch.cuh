/// The launch; included by the generated sources only.
#pragma once

#include <algorithm>

#include "kernels/common/DynamicShared.h"
#include "kernels/knn/all_pairs/AllPairs.cuh"

namespace faiss_bits {

template <Metric kMetric>
void launchAllPairs(
        const AllPairsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    using Tile = DistanceTile<kMetric>;
    const int64_t rows = params.search.rows;
    const int64_t tiles = (rows + Tile::kQueries - 1) / Tile::kQueries *
            ((params.search.n + Tile::kVectors - 1) / Tile::kVectors);
    const int64_t blocks =
            std::min<int64_t>(tiles, int64_t(multiprocessors) * Tile::kBlocks);
    launchAfterPrevious(
            allPairsKernel<kMetric>,
            dim3(unsigned(blocks)),
            Tile::kThreads,
            allowSharedBytes(
                    allPairsKernel<kMetric>,
                    sizeof(typename AllPairs<kMetric>::SharedStorage)),
            stream,
            params);
}

} // namespace faiss_bits

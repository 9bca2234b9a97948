/// The launch; included by the generated sources only.
#pragma once

#include <algorithm>

#include "kernels/common/DynamicShared.h"
#include "kernels/knn/all_pairs/LeftPairs.cuh"

namespace faiss_bits {

template <Metric kMetric, int Across>
void launchAllPairsTiles(
        const AllPairsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    using Pairs = AllPairs<kMetric, Across>;
    using Tile = typename Pairs::Tile;
    const int64_t blocks = std::min<int64_t>(
            allPairsTiles(
                    params.search.rows,
                    params.search.n,
                    Tile::kQueries,
                    Tile::kVectors),
            int64_t(multiprocessors) * Tile::kBlocks);
    launchAfterPrevious(
            allPairsKernel<kMetric, Across>,
            dim3(unsigned(blocks)),
            Tile::kThreads,
            allowSharedBytes(
                    allPairsKernel<kMetric, Across>,
                    sizeof(typename Pairs::SharedStorage)),
            stream,
            params);
}

/// Tiles in which products of digits left pairs in doubt.
template <Metric kMetric>
void launchLeftPairs(
        const AllPairsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    using Shared = typename LeftPairs<kMetric>::SharedStorage;
    const int64_t tiles = allPairsTiles(
            params.search.rows, params.search.n, kProductQueries, kNarrowTile);
    launchAfterPrevious(
            leftPairsKernel<kMetric>,
            dim3(unsigned(std::min<int64_t>(tiles, multiprocessors))),
            LeftPairs<kMetric>::kThreads,
            allowSharedBytes(leftPairsKernel<kMetric>, sizeof(Shared)),
            stream,
            params);
}

template <Metric kMetric>
void launchAllPairs(
        const AllPairsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    constexpr int kWide = 8;
    constexpr int kNarrow = 2;
    if constexpr (isOfProducts(kMetric)) {
        using Wide = DistanceTile<kMetric, kWide>;
        using Narrow = DistanceTile<kMetric, kNarrow>;
        static_assert(Wide::kQueries == kProductQueries);
        static_assert(Narrow::kQueries == kProductQueries);
        static_assert(Wide::kVectors == kWideTile);
        static_assert(Narrow::kVectors == kNarrowTile);
        if constexpr (kMetric == Metric::L2) {
            if (params.tiles) {
                return launchLeftPairs<kMetric>(
                        params, multiprocessors, stream);
            }
        }
        if (params.tiles ||
            !takesWideTiles(
                    params.search.rows, params.search.n, multiprocessors)) {
            return launchAllPairsTiles<kMetric, kNarrow>(
                    params, multiprocessors, stream);
        }
    }
    launchAllPairsTiles<kMetric, kWide>(params, multiprocessors, stream);
}

} // namespace faiss_bits

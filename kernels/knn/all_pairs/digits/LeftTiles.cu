/// Tiles that products of digits leave: their canonical distances by products
/// of float64.
///
/// Bound by: DistanceTile.

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/knn/all_pairs/digits/DigitPairs.h"
#include "kernels/knn/certified/DistanceTile.cuh"

namespace faiss_bits {

namespace {

using Tile = DistanceTile<Metric::L2, 2>;

struct LeftParams {
    CertifiedParams search;
    UnsurePairList unsure;
    float* distances;
    int64_t stride;
};

__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
        leftTilesKernel(const __grid_constant__ LeftParams params) {
    static_assert(Tile::kQueries == DigitImageLayout::kTileRows);
    static_assert(Tile::kVectors == DigitImageLayout::kTileRows);
    extern __shared__ __align__(16) uint8_t memory[];
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const uint32_t tiles = params.unsure.counts[1];
    if (blockIdx.x >= tiles) {
        return;
    }
    const uint32_t rowTiles =
            (search.rows + Tile::kQueries - 1) / Tile::kQueries;
    const auto placeOf = [&](uint32_t number) {
        const uint32_t tile = params.unsure.tiles[min(number, tiles - 1)];
        const uint32_t row = tile % rowTiles * Tile::kQueries;
        return TilePlace{
                int64_t(tile / rowTiles) * Tile::kVectors,
                search.n,
                nullptr,
                search.rows - row,
                row};
    };
    Tile tile(*reinterpret_cast<typename Tile::SharedStorage*>(memory), search);
    TilePlace place = placeOf(blockIdx.x);
    tile.begin(place);
    for (uint32_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const TilePlace after = placeOf(t + gridDim.x);
        tile.run(
                place,
                after,
                [](int, int, float) { return true; },
                [&]<int kCount>(
                        int q,
                        int v,
                        const float(&distances)[kCount],
                        uint32_t mask) {
                    float* out = params.distances +
                            (place.firstRow + q) * params.stride + place.first +
                            v;
#pragma unroll
                    for (int i = 0; i < kCount; ++i) {
                        if (mask >> i & 1) {
                            out[i] = distances[i];
                        }
                    }
                });
        __syncthreads();
        place = after;
    }
}

} // namespace

void launchLeftTiles(
        const CertifiedParams& search,
        const UnsurePairList& unsure,
        float* distances,
        int64_t stride,
        int multiprocessors,
        cudaStream_t stream) {
    const LeftParams params{search, unsure, distances, stride};
    launchAfterPrevious(
            leftTilesKernel,
            unsigned(multiprocessors),
            Tile::kThreads,
            allowSharedBytes(
                    leftTilesKernel, sizeof(typename Tile::SharedStorage)),
            stream,
            params);
}

} // namespace faiss_bits

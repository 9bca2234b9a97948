/// What products of digits left of the matrix of canonical distances: tiles
/// with many pairs in doubt, by units of such pairs, or as a whole where these
/// are most.
///
/// Bound by: MarkedPairs; DistanceTile.
#pragma once

#include "kernels/knn/all_pairs/AllPairs.cuh"
#include "kernels/knn/all_pairs/MarkedPairs.cuh"

namespace faiss_bits {

template <Metric kMetric>
struct LeftPairs {
    using Marked = MarkedPairs<kMetric>;
    using Whole = AllPairs<kMetric, kNarrowTile / 32>;
    using Tile = typename Whole::Tile;
    static constexpr int kThreads = Tile::kThreads;
    /// Tiles that are taken as a whole after one that had to be.
    static constexpr int kWholeTiles = 7;
    static_assert(kThreads == Marked::kThreads);
    static_assert(Tile::kVectors == kNarrowTile);

    union SharedStorage {
        typename Marked::SharedStorage marked;
        typename Whole::SharedStorage whole;
    };

    SharedStorage& shared;
    const AllPairsParams& params;

    __device__ __forceinline__ void run() {
        const CertifiedParams& search = params.search;
        const uint32_t rowTiles =
                (search.rows + Tile::kQueries - 1) / Tile::kQueries;
        const uint32_t tiles = *params.numTiles;
        const Marked marked{shared.marked, params};
        Whole whole{shared.whole, params};
        Tile tile(shared.whole.tile, search);
        int next = 0; // tiles to come that are not asked
        for (uint32_t t = blockIdx.x; t < tiles; t += gridDim.x) {
            const uint32_t number = params.tiles[t];
            const uint32_t row = number % rowTiles * Tile::kQueries;
            const TilePlace place{
                    int64_t(number / rowTiles) * Tile::kVectors,
                    search.n,
                    nullptr,
                    search.rows - row,
                    row};
            if (next == 0 && marked.run(place)) {
                continue;
            }
            next = next > 0 ? next - 1 : kWholeTiles;
            __syncthreads();
            tile.begin(place);
            whole.compute(tile, place, place);
        }
    }
};

template <Metric kMetric>
__global__ void __launch_bounds__(LeftPairs<kMetric>::kThreads, 1)
        leftPairsKernel(const __grid_constant__ AllPairsParams params) {
    extern __shared__ __align__(16) uint8_t memory[];
    using Pairs = LeftPairs<kMetric>;
    waitForPrevious();
    Pairs{*reinterpret_cast<typename Pairs::SharedStorage*>(memory), params}
            .run();
}

} // namespace faiss_bits

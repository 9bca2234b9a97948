/// The matrix of canonical distances, in tiles of some queries and vectors.
///
/// Bound by: float64, two operations a component and pair for L2 and products;
/// in few dimensions by the shuffles that end a tile.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/all_pairs/AllPairsLaunch.h"
#include "kernels/knn/certified/ScannedDistance.cuh"

namespace faiss_bits {

/// Rows begin at multiples of kCount, and are padded to such.
template <int kCount>
__device__ __forceinline__ void store(
        float* out,
        const float (&values)[kCount]) {
    if constexpr (kCount % 4 == 0) {
#pragma unroll
        for (int i = 0; i < kCount; i += 4) {
            *reinterpret_cast<float4*>(out + i) = make_float4(
                    values[i], values[i + 1], values[i + 2], values[i + 3]);
        }
    } else {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            out[i] = values[i];
        }
    }
}

template <Metric kMetric>
__global__ void __launch_bounds__(
        ScanTile<kMetric>::kThreads,
        ScanTile<kMetric>::kBlocks)
        allPairsKernel(const __grid_constant__ AllPairsParams params) {
    using Tile = ScanTile<kMetric>;
    extern __shared__ __align__(16) uint8_t memory[];
    const CertifiedParams& search = params.search;
    const uint32_t rowTiles =
            (search.rows + Tile::kQueries - 1) / Tile::kQueries;
    const int64_t tiles =
            (search.n + Tile::kVectors - 1) / Tile::kVectors * rowTiles;
    // Tiles of the same vectors side by side.
    const auto placeOf = [&](int64_t tile) {
        const uint32_t row = uint32_t(tile % rowTiles) * Tile::kQueries;
        return typename Tile::Place{
                tile / rowTiles * Tile::kVectors,
                tile < tiles ? search.n : 0,
                nullptr,
                search.rows - row,
                row};
    };
    waitForPrevious();
    Tile tile(*reinterpret_cast<typename Tile::SharedStorage*>(memory), search);
    typename Tile::Place place = placeOf(blockIdx.x);
    tile.begin(place);
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const typename Tile::Place after = placeOf(t + gridDim.x);
        // Of one query and vectors side by side.
        float held[Tile::kHeld];
        int count = 0;
        int64_t first = -1;
        tile.run(place, after, [&](int q, int v, double distance) {
            const int64_t vector = place.first + v;
            const uint32_t row = place.firstRow + q;
            const bool isThere = q < int(place.numRows) && vector < search.n;
            if (isThere && first < 0) {
                first = row * params.stride + vector;
            }
            // -0 is +0, as in results of every method.
            held[count++] = isThere
                    ? canonical::toFloat32(scannedDistance<kMetric>(
                              search, row, vector, distance)) +
                            0.0f
                    : 0.0f;
        });
        if (first >= 0) {
            store(params.distances + first, held);
        }
        place = after;
    }
}

} // namespace faiss_bits

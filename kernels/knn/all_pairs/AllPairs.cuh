/// The matrix of canonical distances, in tiles of some queries and vectors.
///
/// Bound by: DistanceTile.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/all_pairs/AllPairsLaunch.h"
#include "kernels/knn/certified/DistanceTile.cuh"

namespace faiss_bits {

/// Across: of DistanceTile.
template <Metric kMetric, int Across>
struct AllPairs {
    using Tile = DistanceTile<kMetric, Across>;

    struct SharedStorage {
        typename Tile::SharedStorage tile;
        // Rows half of the banks apart, as lanes with 16 bytes each write them.
        alignas(16) float distances[Tile::kQueries][Tile::kVectors + 16];
    };

    SharedStorage& shared;
    const AllPairsParams& params;

    __device__ __forceinline__ void run() {
        const CertifiedParams& search = params.search;
        const uint32_t rowTiles =
                (search.rows + Tile::kQueries - 1) / Tile::kQueries;
        const uint32_t tiles = params.tiles
                ? *params.numTiles
                : uint32_t((search.n + Tile::kVectors - 1) / Tile::kVectors) *
                        rowTiles;
        if (blockIdx.x >= tiles) {
            return;
        }
        // Tiles of the same vectors side by side.
        const auto placeOf = [&](uint32_t number) {
            const uint32_t last = min(number, tiles - 1);
            const uint32_t tile = params.tiles ? params.tiles[last] : last;
            const uint32_t row = tile % rowTiles * Tile::kQueries;
            return TilePlace{
                    int64_t(tile / rowTiles) * Tile::kVectors,
                    search.n,
                    nullptr,
                    search.rows - row,
                    row};
        };
        if (blockIdx.x == 0 && threadIdx.x == 0 && search.numRescored &&
            !params.tiles) {
            atomicAdd(
                    search.numRescored,
                    (unsigned long long)(search.rows) * search.n);
        }
        Tile tile(shared.tile, search);
        TilePlace place = placeOf(blockIdx.x);
        tile.begin(place);
        for (uint32_t t = blockIdx.x; t < tiles; t += gridDim.x) {
            const TilePlace after = placeOf(t + gridDim.x);
            compute(tile, place, after);
            place = after;
        }
    }

    /// A tile of which the first components are on their way. What it leaves in
    /// shared memory is free behind a barrier of the next tile.
    __device__ __forceinline__ void compute(
            Tile& tile,
            const TilePlace& place,
            const TilePlace& after) const {
        tile.run(
                place,
                after,
                [](int, int, float) { return true; },
                [&](int q, int v, const auto& distances, uint32_t) {
                    keep(&shared.distances[q][v], distances);
                });
        __syncthreads();
        write(place);
    }

   private:
    template <int kCount>
    __device__ __forceinline__ static void keep(
            float* out,
            const float (&distances)[kCount]) {
        if constexpr (kCount % 4 == 0) {
#pragma unroll
            for (int i = 0; i < kCount; i += 4) {
                *reinterpret_cast<float4*>(out + i) = make_float4(
                        distances[i],
                        distances[i + 1],
                        distances[i + 2],
                        distances[i + 3]);
            }
        } else {
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                out[i] = distances[i];
            }
        }
    }

    /// In rows, sixteen bytes a lane: rows of the matrix are padded to such.
    __device__ __forceinline__ void write(const TilePlace& place) const {
        constexpr int kLanes = Tile::kVectors / 4;
        const int v = threadIdx.x % kLanes * 4;
        const int numRows = min(int(place.numRows), Tile::kQueries);
        if (place.first + v >= place.last) {
            return;
        }
#pragma unroll 4
        for (int q = threadIdx.x / kLanes; q < numRows;
             q += Tile::kThreads / kLanes) {
            *reinterpret_cast<float4*>(
                    params.distances + (place.firstRow + q) * params.stride +
                    place.first + v) =
                    *reinterpret_cast<const float4*>(&shared.distances[q][v]);
        }
    }
};

template <Metric kMetric, int Across>
__global__ void __launch_bounds__(
        DistanceTile<kMetric, Across>::kThreads,
        DistanceTile<kMetric, Across>::kBlocks)
        allPairsKernel(const __grid_constant__ AllPairsParams params) {
    extern __shared__ __align__(16) uint8_t memory[];
    using Pairs = AllPairs<kMetric, Across>;
    waitForPrevious();
    Pairs{*reinterpret_cast<typename Pairs::SharedStorage*>(memory), params}
            .run();
}

} // namespace faiss_bits

/// The matrix of canonical distances, list by list: the queries that probe a
/// list meet its vectors in tiles.
///
/// Bound by: DistanceTile.
#pragma once

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/IvfFilter.cuh"
#include "kernels/ivf/IvfTileOrder.cuh"
#include "kernels/knn/certified/DistanceTile.cuh"

namespace faiss_bits {

/// Across: of DistanceTile.
template <Metric kMetric, ListCoding kCoding, int Across>
struct IvfTiles {
    using Tile = DistanceTile<kMetric, Across, VectorsOfLists<kCoding>>;
    using Order = IvfTileOrder<Tile::kQueries, Tile::kVectors>;

    struct SharedStorage {
        typename Tile::SharedStorage tile;
        float distances[Tile::kQueries][Tile::kVectors + 16];
    };

    SharedStorage& shared;
    const IvfParams& params;

    __device__ __forceinline__ void run() {
        const Order order{params};
        const uint32_t tiles = order.numTiles();
        if (blockIdx.x >= tiles) {
            return;
        }
        Tile tile(shared.tile, params);
        IvfWork work = order.workOf(blockIdx.x, tiles);
        tile.begin(work.place);
        for (uint32_t t = blockIdx.x; t < tiles; t += gridDim.x) {
            const IvfWork after = order.workOf(t + gridDim.x, tiles);
            tile.run(
                    work.place,
                    after.place,
                    [](int, int, float) { return true; },
                    [&](int q, int v, const auto& distances, uint32_t) {
                        keep(&shared.distances[q][v], distances);
                    });
            __syncthreads();
            write(work); // kept again behind a barrier of the next tile
            work = after;
        }
    }

   private:
    template <int kCount>
    __device__ __forceinline__ static void keep(
            float* out,
            const float (&distances)[kCount]) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            out[i] = distances[i];
        }
    }

    /// Lists begin anywhere in a row: four bytes a lane.
    __device__ __forceinline__ void write(const IvfWork& work) const {
        constexpr int kLanes = Tile::kVectors < 64 ? 32 : 64;
        const TilePlace& place = work.place;
        const int numRows = min(int(place.numRows), Tile::kQueries);
        const int numVectors =
                int(min(place.last - place.first, int64_t(Tile::kVectors)));
        for (int q = threadIdx.x / kLanes; q < numRows;
             q += Tile::kThreads / kLanes) {
            float* out = params.distances +
                    int64_t(place.rows[q]) * params.stride + work.columns[q] +
                    place.first;
#pragma unroll
            for (int i = 0; i < Tile::kVectors; i += kLanes) {
                const int v = i + int(threadIdx.x % kLanes);
                if (v < numVectors) {
                    // -0 counts as +0.
                    out[v] = isSelected(
                                     params.lists,
                                     place.listNumber,
                                     uint32_t(place.first) + v)
                            ? shared.distances[q][v] + 0.0f
                            : NAN;
                }
            }
        }
    }
};

template <Metric kMetric, ListCoding kCoding, int Across>
__global__ void __launch_bounds__(
        DistanceTile<kMetric, Across, VectorsOfLists<kCoding>>::kThreads,
        DistanceTile<kMetric, Across, VectorsOfLists<kCoding>>::kBlocks)
        ivfTilesKernel(const __grid_constant__ IvfParams params) {
    extern __shared__ __align__(16) uint8_t memory[];
    using Tiles = IvfTiles<kMetric, kCoding, Across>;
    allowNext();
    waitForPrevious();
    Tiles{*reinterpret_cast<typename Tiles::SharedStorage*>(memory), params}
            .run();
}

template <Metric kMetric, ListCoding kCoding, int Across>
void launchIvfTilesOf(
        const IvfParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    using Tiles = IvfTiles<kMetric, kCoding, Across>;
    using Tile = typename Tiles::Tile;
    static_assert(Tile::kQueries == kIvfTileQueries);
    launchAfterPrevious(
            ivfTilesKernel<kMetric, kCoding, Across>,
            dim3(unsigned(multiprocessors * Tile::kBlocks)),
            Tile::kThreads,
            allowSharedBytes(
                    ivfTilesKernel<kMetric, kCoding, Across>,
                    sizeof(typename Tiles::SharedStorage)),
            stream,
            params);
}

template <Metric kMetric, ListCoding kCoding>
void launchIvfTiles(
        const IvfParams& params,
        bool wide,
        int multiprocessors,
        cudaStream_t stream) {
    constexpr int kWide = 8;
    constexpr int kNarrow = 2;
    static_assert(
            DistanceTile<kMetric, kWide, VectorsOfLists<kCoding>>::kVectors ==
                    kIvfWideTile &&
            DistanceTile<kMetric, kNarrow, VectorsOfLists<kCoding>>::kVectors ==
                    kIvfNarrowTile);
    wide ? launchIvfTilesOf<kMetric, kCoding, kWide>(
                   params, multiprocessors, stream)
         : launchIvfTilesOf<kMetric, kCoding, kNarrow>(
                   params, multiprocessors, stream);
}

} // namespace faiss_bits

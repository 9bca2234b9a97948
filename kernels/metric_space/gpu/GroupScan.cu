// Groups and the queries that have to look at them, in tiles of canonical
// distances: a group meets all its queries while its vectors are at hand.
//
// Bound by: DistanceTile.

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/knn/certified/DistanceTile.cuh"
#include "kernels/metric_space/gpu/FoundPairs.cuh"
#include "kernels/metric_space/gpu/RowDistances.cuh"

namespace faiss_bits::metric_space {

namespace {

struct ScanParamsOfGroups {
    CertifiedParams search;
    SearchParams groups;
    bool everything;
    bool isChoice;     // the other kernel runs where this one does not
    uint32_t rowTiles; // of everything
    uint64_t numTiles; // the same
};

/// Across: of DistanceTile.
template <Metric kMetric, int Across>
struct GroupScan {
    using Tile = DistanceTile<kMetric, Across>;
    static constexpr uint32_t kRoom = 4096;

    struct SharedStorage {
        typename Tile::SharedStorage tile;
        float limits[Tile::kQueries];
        // Results of a tile, as many as fit; the others go out one by one.
        float distances[kRoom];
        uint16_t queries[kRoom];
        uint16_t vectors[kRoom];
        uint32_t count;
        unsigned long long first;
    };

    SharedStorage& shared;
    const ScanParamsOfGroups& params;

    __device__ __forceinline__ TilePlace placeOf(uint64_t t) const {
        const SearchParams& p = params.groups;
        if (params.everything) {
            const uint32_t row = uint32_t(t % params.rowTiles) * Tile::kQueries;
            return {int64_t(t / params.rowTiles) * Tile::kVectors,
                    p.groups.n,
                    nullptr,
                    p.rows - row,
                    row};
        }
        const uint2 tile = p.tiles[t];
        const uint32_t first = p.listFirsts[tile.x];
        const uint32_t count = p.listFirsts[tile.x + 1] - first;
        const uint32_t across = (count + Tile::kQueries - 1) / Tile::kQueries;
        const uint32_t skip = tile.y % across * Tile::kQueries;
        return {int64_t(p.groups.firsts[tile.x]) +
                        int64_t(tile.y / across) * Tile::kVectors,
                p.groups.firsts[tile.x + 1],
                p.lists + first + skip,
                count - skip};
    }

    /// Whether tiles of everything are expected to take less time.
    __device__ __forceinline__ bool isDense() const {
        const SearchParams& p = params.groups;
        return *p.listedPairs * 3 > uint64_t(p.rows) * p.groups.n * 2;
    }

    __device__ __forceinline__ void run() {
        if (params.isChoice && isDense() != params.everything) {
            return;
        }
        const uint64_t tiles = params.everything
                ? params.numTiles
                : params.groups.tileFirsts[params.groups.groups.numGroups];
        if (blockIdx.x >= tiles) {
            return;
        }
        if (threadIdx.x == 0) {
            shared.count = 0;
        }
        Tile tile(shared.tile, params.search);
        TilePlace place = placeOf(blockIdx.x);
        tile.begin(place);
        unsigned long long pairs = 0;
        for (uint64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
            const TilePlace after = placeOf(min(t + gridDim.x, tiles - 1));
            if (threadIdx.x < Tile::kQueries) {
                shared.limits[threadIdx.x] = threadIdx.x < place.numRows
                        ? params.groups.limits[place.row(threadIdx.x)]
                        : -1.0f;
            }
            pairs += min(place.numRows, uint32_t(Tile::kQueries)) *
                    min(place.last - place.first, int64_t(Tile::kVectors));
            tile.run(
                    place,
                    after,
                    [&](int q, int, float key) {
                        return !(key > shared.limits[q]);
                    },
                    [&](int q, int v, const auto& distances, uint32_t mask) {
                        keep(place, q, v, distances, mask);
                    });
            flush(place);
            place = after;
        }
        if (threadIdx.x == 0 && params.groups.numDistances) {
            atomicAdd(params.groups.numDistances, pairs);
        }
    }

   private:
    template <int kCount>
    __device__ __forceinline__ void keep(
            const TilePlace& place,
            int q,
            int v,
            const float (&distances)[kCount],
            uint32_t mask) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            if ((mask >> i & 1) && distances[i] <= shared.limits[q]) {
                const uint32_t slot = atomicAdd(&shared.count, 1u);
                if (slot < kRoom) {
                    shared.distances[slot] = distances[i];
                    shared.queries[slot] = uint16_t(q);
                    shared.vectors[slot] = uint16_t(v + i);
                } else {
                    const FoundPairs& found = params.groups.found;
                    store(place,
                          atomicAdd(found.count, 1ull),
                          q,
                          v + i,
                          distances[i]);
                }
            }
        }
    }

    __device__ __forceinline__ void store(
            const TilePlace& place,
            unsigned long long to,
            int q,
            int v,
            float distance) const {
        storePair(
                params.groups.found,
                to,
                uint32_t(place.row(q)),
                params.groups.groups.ids[place.first + v],
                distance + 0.0f); // -0 counts as +0
    }

    __device__ __forceinline__ void flush(const TilePlace& place) {
        __syncthreads();
        const uint32_t count = min(shared.count, kRoom);
        __syncthreads();
        if (threadIdx.x == 0 && count > 0) {
            shared.first = atomicAdd(
                    params.groups.found.count, (unsigned long long)count);
            shared.count = 0;
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < count; i += Tile::kThreads) {
            store(place,
                  shared.first + i,
                  shared.queries[i],
                  shared.vectors[i],
                  shared.distances[i]);
        }
    }
};

template <Metric kMetric, int Across>
__global__ void __launch_bounds__(
        DistanceTile<kMetric, Across>::kThreads,
        DistanceTile<kMetric, Across>::kBlocks)
        groupScanKernel(const __grid_constant__ ScanParamsOfGroups params) {
    extern __shared__ __align__(16) uint8_t memory[];
    using Scan = GroupScan<kMetric, Across>;
    waitForPrevious();
    Scan{*reinterpret_cast<typename Scan::SharedStorage*>(memory), params}
            .run();
}

template <Metric kMetric, int Across>
void launchScan(
        ScanParamsOfGroups params,
        int multiprocessors,
        cudaStream_t stream) {
    using Scan = GroupScan<kMetric, Across>;
    using Tile = typename Scan::Tile;
    static_assert(Tile::kQueries == scanQueries(kMetric));
    const SearchParams& p = params.groups;
    params.rowTiles = (p.rows + Tile::kQueries - 1) / Tile::kQueries;
    params.numTiles = uint64_t(params.rowTiles) *
            ((p.groups.n + Tile::kVectors - 1) / Tile::kVectors);
    const uint64_t most = uint64_t(multiprocessors) * Tile::kBlocks;
    const uint64_t blocks =
            params.everything ? std::min(most, params.numTiles) : most;
    launchAfterPrevious(
            groupScanKernel<kMetric, Across>,
            dim3(unsigned(blocks)),
            Tile::kThreads,
            allowSharedBytes(
                    groupScanKernel<kMetric, Across>,
                    sizeof(typename Scan::SharedStorage)),
            stream,
            params);
}

} // namespace

void launchGroupScan(
        const SearchParams& p,
        ScanOf what,
        int multiprocessors,
        cudaStream_t stream) {
    if (p.groups.n == 0 || p.rows == 0) {
        return;
    }
    ScanParamsOfGroups params{};
    params.search.vectors.data = p.groups.vectors;
    params.search.vectors.rowStride = p.groups.d;
    params.search.n = p.groups.n;
    params.search.d = p.groups.d;
    params.search.queries = p.queries;
    params.search.rows = p.rows;
    params.groups = p;
    params.everything = what == ScanOf::Everything;
    withMetric(p.groups.metric, [&](auto metric) {
        constexpr Metric kMetric = metric();
        constexpr int kWide = 8;
        constexpr int kNarrow = 2;
        if constexpr (kMetric == Metric::L2) {
            static_assert(
                    DistanceTile<kMetric, kWide>::kVectors == kWideVectors);
            params.isChoice = what == ScanOf::Within;
            if (what != ScanOf::Lists) {
                params.everything = true;
                launchScan<kMetric, kWide>(params, multiprocessors, stream);
            }
            if (what == ScanOf::Everything) {
                return;
            }
            params.everything = false;
        }
        static_assert(
                DistanceTile<kMetric, kNarrow>::kVectors ==
                scanVectors(kMetric));
        launchScan<kMetric, kNarrow>(params, multiprocessors, stream);
    });
}

} // namespace faiss_bits::metric_space

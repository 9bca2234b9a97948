/// Which slots of ScanAgain make a tile of products, by L2. A tile subtracts
/// its first query from all, and tells vectors apart that are near that: so
/// where products leave many pairs in doubt, queries that are near one another
/// make tiles of their own. Included by ScanAgain.cuh.
///
/// Bound by: reads of some components of the queries, which every block does,
/// as all must find the same.
#pragma once

#include "kernels/device/LaneSums.cuh"
#include "kernels/knn/certified/PairEstimate.cuh"
#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Components by which queries are told apart, at most.
constexpr int kKindComponents = 16;
/// From so many on tiles of products take less than tiles of differences in
/// float32: what comes for each pair beside the sums is more with products.
constexpr int kLeastKindComponents = 512;

template <Metric kMetric, class Begin>
__device__ __forceinline__ uint32_t
ScanAgain<kMetric, Begin>::tilesOf(uint32_t used) const {
    if constexpr (kHasKinds) {
        return shared.tiles.count;
    } else {
        return (used + Tile::kQueries - 1) / Tile::kQueries;
    }
}

/// What comes behind the tile may be counted with it.
template <Metric kMetric, class Begin>
__device__ __forceinline__ ScanAgain<kMetric, Begin>::Slots ScanAgain<
        kMetric,
        Begin>::slotsOfTile(uint32_t tile, uint32_t used) const {
    if constexpr (kHasKinds) {
        const uint32_t first = shared.tiles.first[tile];
        return {first, shared.tiles.first[tile + 1] - first};
    } else {
        return {tile * Tile::kQueries, used - tile * Tile::kQueries};
    }
}

/// Tiles of the slots, which may get other rows, and whether pairs are near.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::makeTiles(
        uint32_t used) {
    if constexpr (kHasKinds) {
        const uint32_t tiles = (used + Tile::kQueries - 1) / Tile::kQueries;
        __syncthreads();
        if (threadIdx.x <= tiles) {
            shared.tiles.first[threadIdx.x] =
                    uint16_t(min(threadIdx.x * Tile::kQueries, used));
            shared.tiles.count = uint16_t(tiles);
        }
        __syncthreads();
        areNear = arePairsNear(used);
        if (areNear && tiles > 1 && params.search.d >= kLeastKindComponents &&
            divideByKinds(used, findKinds(used))) {
            areNear = arePairsNear(used);
        }
    }
}

/// Whether products leave many pairs in doubt, as of copies that differ in
/// their last bits: by some pairs, the same in all blocks.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::arePairsNear(
        uint32_t used) const {
    if constexpr (kHasKinds) {
        constexpr uint32_t kGroups = kThreads / kPairLanes;
        constexpr uint32_t kPairs = 4 * kGroups;
        constexpr int kMany = kPairs / 12;
        const CertifiedParams& search = params.search;
        if (used <= kFewFilterQueries) {
            return false; // they are not met by products
        }
        if (used <= Tile::kQueries && params.order.chunks < gridDim.x) {
            return true; // tiles of products are too few
        }
        // The bounds are as far apart, and float32 has 24 bits.
        const float doubt =
                float(EstimateRow<kMetric>::relativeError(search.d, false)) *
                0x1p26f;
        const auto queryOf = [&](uint32_t slot) {
            return search.queries + int64_t(shared.rows[slot]) * search.d;
        };
        // What the tile of a slot subtracts.
        const auto centerOf = [&](uint32_t slot) {
            uint32_t tile = slot / Tile::kQueries; // or a later one
            while (shared.tiles.first[tile + 1] <= slot) {
                ++tile;
            }
            return queryOf(shared.tiles.first[tile]);
        };
        int found = 0;
        for (uint32_t base = 0; base < kPairs; base += kGroups) {
            const uint32_t i = base + threadIdx.x / kPairLanes;
            const uint32_t slot = i * used / kPairs;
            const float* q = queryOf(slot);
            const float* center = centerOf(slot);
            const int64_t vector =
                    min(chunkAt(i % params.order.chunks) + i % kChunk,
                        search.n - 1);
            // Distance, sizes less the center and without: some components,
            // as all blocks read the same.
            constexpr int kSome = 64;
            const int some = min(search.d, kSome);
            float sums[3] = {};
            withVectors(search.vectors, [&](const auto* data) {
                data += vector * search.vectors.rowStride;
#pragma unroll 4
                for (int c = threadIdx.x % kPairLanes; c < some;
                     c += kPairLanes) {
                    const float x =
                            toFloat(data[c * search.vectors.columnStride]);
                    const float ofX = x - center[c];
                    const float ofQ = q[c] - center[c];
                    sums[0] += (x - q[c]) * (x - q[c]);
                    sums[1] += ofX * ofX + ofQ * ofQ;
                    sums[2] += x * x + q[c] * q[c];
                }
            });
#pragma unroll
            for (float& sum : sums) {
#pragma unroll
                for (int lane = kPairLanes / 2; lane >= 1; lane /= 2) {
                    sum += __shfl_xor_sync(kFullWarp, sum, lane);
                }
            }
            const bool isInDoubt =
                    sums[0] > 0 && doubt * fminf(sums[1], sums[2]) > sums[0];
            found += __syncthreads_count(
                    isInDoubt && threadIdx.x % kPairLanes == 0);
        }
        return found > kMany;
    } else {
        return false;
    }
}

/// The kind of every slot, to shared.kinds; returns how many there are. The
/// slot that is farthest from the first of its kind begins another, until none
/// is far.
template <Metric kMetric, class Begin>
__device__ __forceinline__ uint32_t
ScanAgain<kMetric, Begin>::findKinds(uint32_t used) {
    // Of the greatest squared distance to the first slot. Far more than what
    // differs in copies, and so little that sums lose 10 bits less.
    constexpr float kNear = 0x1p-10f;
    constexpr uint32_t kGroups = kThreads / kPairLanes;
    constexpr int kOfLane = kKindComponents / kPairLanes;
    constexpr uint32_t kTogether = 8; // slots of a group of lanes
    const CertifiedParams& search = params.search;
    auto& kinds = shared.kinds;
    const int lane = threadIdx.x % kPairLanes;
    const auto read = [&](uint32_t slot, float(&components)[kOfLane]) {
        const float* q = search.queries + int64_t(shared.rows[slot]) * search.d;
#pragma unroll
        for (int i = 0; i < kOfLane; ++i) {
            const int c = i * kPairLanes + lane;
            components[i] = c < search.d ? q[c] : 0.0f;
        }
    };
    float near = 0;
    uint32_t first = 0;
    for (uint32_t kind = 0;;) {
        __syncthreads();
        if (threadIdx.x == 0) {
            kinds.farthest = 0;
        }
        float center[kOfLane];
        read(first, center);
        __syncthreads();
        // Bits of a distance, which are in its order, and the slot.
        unsigned long long farthest = 0;
        const auto meet = [&](uint32_t slot, float distance) {
            if (lane > 0 || slot >= used) {
                return;
            }
            float nearest = kind == 0 ? distance : kinds.nearest[slot];
            if (kind == 0 || distance < nearest) {
                kinds.nearest[slot] = nearest = distance;
                kinds.ofSlots[slot] = uint8_t(kind);
            }
            // What is not finite is of the first kind.
            if (nearest < INFINITY) {
                const unsigned long long bits = __float_as_uint(nearest);
                farthest = max(farthest, bits << 32 | slot);
            }
        };
        for (uint32_t base = 0; base < used; base += kTogether * kGroups) {
            const uint32_t slot = base + threadIdx.x / kPairLanes;
            float q[kTogether][kOfLane];
#pragma unroll
            for (uint32_t j = 0; j < kTogether; ++j) {
                read(min(slot + j * kGroups, used - 1), q[j]);
            }
#pragma unroll
            for (uint32_t j = 0; j < kTogether; ++j) {
                float sum = 0;
#pragma unroll
                for (int i = 0; i < kOfLane; ++i) {
                    const float off = q[j][i] - center[i];
                    sum += off * off;
                }
#pragma unroll
                for (int lanes = kPairLanes / 2; lanes >= 1; lanes /= 2) {
                    sum += __shfl_xor_sync(kFullWarp, sum, lanes);
                }
                meet(slot + j * kGroups, sum);
            }
        }
        if (lane == 0) {
            atomicMax(&kinds.farthest, farthest);
        }
        __syncthreads();
        const float distance = __uint_as_float(uint32_t(kinds.farthest >> 32));
        near = kind == 0 ? kNear * distance : near;
        if (++kind == kMostKinds || !(distance > near)) {
            return kind;
        }
        first = uint32_t(kinds.farthest);
    }
}

/// Slots of each kind side by side, in tiles of their own, or nothing where
/// these would be too many. Returns which.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::divideByKinds(
        uint32_t used,
        uint32_t numKinds) {
    static_assert(kMostKinds <= kWarpSize);
    auto& kinds = shared.kinds;
    const uint32_t lane = threadIdx.x % kWarpSize;
    if (threadIdx.x < kMostKinds) {
        kinds.ends[threadIdx.x] = 0;
    }
    for (uint32_t s = threadIdx.x; s < used; s += kThreads) {
        kinds.rows[s] = shared.rows[s];
    }
    __syncthreads();
    // Slots of a kind stay in their order, so that all blocks have the same:
    // visit(slot, place) with ends[kind] and on for places.
    const auto forSlots = [&](const auto& visit) {
        for (uint32_t base = 0; base < used; base += kWarpSize) {
            const uint32_t slot = base + lane;
            const uint32_t kind =
                    slot < used ? kinds.ofSlots[slot] : kMostKinds;
            const uint32_t alike = __match_any_sync(kFullWarp, kind);
            const uint32_t before = __popc(alike & ((1u << lane) - 1));
            const uint32_t begin = slot < used ? kinds.ends[kind] : 0;
            __syncwarp();
            if (slot < used) {
                visit(slot, begin + before);
                if (before == 0) {
                    kinds.ends[kind] = begin + __popc(alike);
                }
            }
            __syncwarp();
        }
    };
    if (threadIdx.x < kWarpSize) {
        forSlots([](uint32_t, uint32_t) {});
        const uint32_t count = lane < kMostKinds ? kinds.ends[lane] : 0;
        const uint32_t tiles = __reduce_add_sync(
                kFullWarp, (count + Tile::kQueries - 1) / Tile::kQueries);
        uint32_t begin = sumUpToLane(count);
        begin -= count;
        __syncwarp();
        if (lane < kMostKinds) {
            kinds.ends[lane] = begin;
        }
        __syncwarp();
        // Tiles that are half empty take as long as full ones.
        const bool areFew = numKinds > 1 && tiles < 2 * shared.tiles.count;
        if (areFew) {
            forSlots([&](uint32_t slot, uint32_t place) {
                shared.rows[place] = kinds.rows[slot];
            });
        }
        if (lane == 0) {
            shared.kept = areFew;
            if (areFew) {
                uint32_t tile = 0;
                uint32_t slot = 0;
                for (uint32_t kind = 0; kind < numKinds; ++kind) {
                    for (; slot < kinds.ends[kind];
                         slot = min(slot + Tile::kQueries, kinds.ends[kind])) {
                        shared.tiles.first[tile++] = uint16_t(slot);
                    }
                }
                shared.tiles.first[tile] = uint16_t(used);
                shared.tiles.count = uint16_t(tile);
            }
        }
    }
    __syncthreads();
    return shared.kept != 0;
}

} // namespace faiss_bits

/// What ScanAgain does for metrics that have LeastTerms: a tile of pairs meets
/// by these, and those that may be within the limits by canonical distances,
/// eight lanes each, dealt out to the block. Included by ScanAgain.cuh.
///
/// Bound by: float32, some operations a component and pair, where few are near;
/// else by what canonical distances are bound by.
#pragma once

#include "kernels/knn/certified/LeastTerms.cuh"
#include "kernels/knn/certified/LongTerms.cuh"
#include "kernels/knn/certified/PairEstimate.cuh"
#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Chunks `begin` to begin + count.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::scanStep(
        uint32_t begin,
        uint32_t count,
        uint32_t used) {
    if (numGroups > 0) {
        return scanGroups(begin, count, used);
    }
    if constexpr (kHasLeastTerms<kMetric>) {
        if (mayFilter(used) || areNear) {
            return scanFiltered(begin, count, used);
        }
    }
    used <= kFewSlots ? scanFew(begin, count, used)
                      : scanTiles(begin, count, used);
}

/// Whether pairs are looked at before they are computed. Few rows of short
/// terms are bound by the read of the vectors.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::mayFilter(
        uint32_t used) const {
    constexpr uint32_t kFewRows = 4;
    if (kIsOfProducts<kMetric>) {
        // Tiles of products have 64 queries.
        return used > kFewSlots && used <= kFewFilterQueries;
    }
    return (kHasLongTerms<kMetric> || used > kFewRows) &&
            LeastTerms<kMetric>::takes(usualPower());
}

/// 2 p of Lp, if it is a whole number.
template <Metric kMetric, class Begin>
__device__ __forceinline__ int ScanAgain<kMetric, Begin>::usualPower() const {
    const float twice = 2 * params.search.metricArg;
    return twice >= 1 && twice <= 8 && twice == float(int(twice)) ? int(twice)
                                                                  : 0;
}

/// Chunks `begin` to begin + count.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::scanFiltered(
        uint32_t begin,
        uint32_t count,
        uint32_t used) {
    constexpr uint32_t kParts = kChunk / kPartVectors;
    const uint32_t queries =
            used <= kFewFilterQueries ? kFewFilterQueries : kFilterQueries;
    const uint32_t queryTiles = (used + queries - 1) / queries;
    const uint32_t tiles = count * kParts * queryTiles;
    // Without a limit all pairs are near.
    int unfiltered = kHasLongTerms<kMetric> || numRough > 0 || hasLimits(used)
            ? 0
            : INT_MAX;
    // Near pairs of a tile, one of so many, that are too many: by eight lanes
    // a pair takes some times as long as in a tile.
    const uint32_t crowd = areNear ? 3 : 8;
    // Tiles of the same vectors side by side.
    for (uint32_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const uint32_t part = t / queryTiles;
        const int64_t first =
                chunkAt(begin + part / kParts) + part % kParts * kPartVectors;
        const int64_t last = min(first + kPartVectors, params.search.n);
        const uint32_t slot = t % queryTiles * queries;
        if (first >= last || isBehind(first, slot)) {
            continue;
        }
        const uint32_t rows = min(used - slot, queries);
        if (unfiltered > 0) {
            unfiltered -= unfiltered < INT_MAX;
            wholeTile(first, last, slot, rows);
            continue;
        }
        uint32_t near = 0;
        withHalves<kMetric>(usualPower(), [&](auto halves) {
            constexpr int kHalves = decltype(halves)::value;
            for (int64_t v = first; v < last; v += kFilterVectors) {
                near += queries == kFewFilterQueries
                        ? filteredTile<kFewFilterQueries, kHalves>(
                                  v, slot, rows)
                        : filteredTile<kFilterQueries, kHalves>(v, slot, rows);
            }
        });
        if (!kHasLongTerms<kMetric> && near > rows * kPartVectors / crowd) {
            unfiltered = kUnfilteredTiles;
        }
    }
}

/// Whether all slots have one. All threads of the block call it.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::hasLimits(
        uint32_t used) const {
    bool isMissing = false;
    for (uint32_t s = threadIdx.x; s < used; s += kThreads) {
        isMissing |= shared.limits[s] == kNoEntry;
    }
    return !__syncthreads_or(isMissing);
}

/// Whether products leave many pairs in doubt, as of copies that differ in
/// their last bits: by some pairs, the same in all blocks.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::arePairsNear(
        uint32_t used) {
    if constexpr (kMetric != Metric::L2) {
        return false;
    } else {
        constexpr uint32_t kGroups = kThreads / kPairLanes;
        constexpr uint32_t kPairs = 4 * kGroups;
        constexpr int kMany = kPairs / 12;
        const CertifiedParams& search = params.search;
        if (used <= kFewFilterQueries) {
            return false; // they are not met by products
        }
        // The bounds are as far apart, and float32 has 24 bits.
        const float doubt =
                float(EstimateRow<kMetric>::relativeError(search.d, false)) *
                0x1p26f;
        const auto queryOf = [&](uint32_t slot) {
            return search.queries + int64_t(shared.rows[slot]) * search.d;
        };
        int found = 0;
        for (uint32_t base = 0; base < kPairs; base += kGroups) {
            const uint32_t i = base + threadIdx.x / kPairLanes;
            const uint32_t slot = i * used / kPairs;
            const float* q = queryOf(slot);
            const float* center = queryOf(slot - slot % Tile::kQueries);
            const int64_t vector =
                    min(chunkAt(i % params.order.chunks) + i % kChunk,
                        search.n - 1);
            float sums[3] = {}; // distance, sizes less the center and without
            withVectors(search.vectors, [&](const auto* data) {
                data += vector * search.vectors.rowStride;
#pragma unroll 4
                for (int c = threadIdx.x % kPairLanes; c < search.d;
                     c += kPairLanes) {
                    const float x = toFloat(data[c * search.vectors.columnStride]);
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
            const bool isInDoubt = sums[0] > 0 &&
                    doubt * fminf(sums[1], sums[2]) > sums[0];
            found += __syncthreads_count(
                    isInDoubt && threadIdx.x % kPairLanes == 0);
        }
        return found > kMany;
    }
}

/// Chunks whose upper bounds set the limits of all, 0: none. They take less
/// than canonical distances do; the more they are, the fewer pairs pass.
template <Metric kMetric, class Begin>
__device__ __forceinline__ uint32_t ScanAgain<kMetric, Begin>::roughChunks(
        uint32_t used) const {
    if constexpr (kHasMostTerms<kMetric>) {
        if (mayFilter(used) || areNear) {
            const float vectors = 4 *
                    sqrtf(float(params.search.n) * float(params.keep));
            return min(uint32_t(vectors) / kChunk + 1, params.order.chunks);
        }
    }
    return 0;
}

/// The place of a Tile by filteredTile(). Returns whether many pairs were near.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::filterTiles(
        const TilePlace& place,
        uint32_t slot) {
    const uint32_t rows = min(place.numRows, uint32_t(Tile::kQueries));
    uint32_t near = 0;
    for (uint32_t q = 0; q < rows; q += kFilterQueries) {
        for (int v = 0; v < Tile::kVectors && place.first + v < place.last;
             v += kFilterVectors) {
            near += filteredTile<kFilterQueries, 0>(
                    place.first + v,
                    slot + q,
                    min(rows - q, uint32_t(kFilterQueries)));
        }
    }
    __syncthreads();
    return near > rows * Tile::kVectors / 8;
}

/// Canonical distances of `rows` slots from `slot` on and the vectors from
/// `first` to `end`.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::wholeTile(
        int64_t first,
        int64_t end,
        uint32_t slot,
        uint32_t rows) {
    Tile tile(shared.tile, params.search);
    for (uint32_t q = 0; q < rows; q += Tile::kQueries) {
        for (int64_t v = first; v < end; v += Tile::kVectors) {
            __syncthreads();
            const TilePlace place{v, end, shared.rows + slot + q, rows - q};
            tile.begin(place);
            tile.run(
                    place,
                    place,
                    Concerns{shared, slot + q, v},
                    AppendPairs{*this, slot + q, v});
        }
    }
    __syncthreads();
}

/// The same of kFilterVectors vectors, and of those pairs alone that may be
/// within the limits. Returns how many they were. In rough steps what distances
/// are no more than, of none.
template <Metric kMetric, class Begin>
template <int kQueries, int kHalves>
__device__ __forceinline__ uint32_t ScanAgain<kMetric, Begin>::filteredTile(
        int64_t first,
        uint32_t slot,
        uint32_t rows) {
    using Least = LeastTerms<kMetric>;
    constexpr int kDepth = kFilterDepth;
    constexpr int kRowStep = kThreads / kDepth; // rows that are read at a time
    constexpr int kVectorsOfLane = 4;
    constexpr int kQueriesOfLane = kQueries / 16;
    static_assert(kFilterVectors == 16 * kVectorsOfLane && kThreads == 256);
    const CertifiedParams& search = params.search;
    auto& tile = shared.filter;
    const int column = threadIdx.x % kDepth;
    const int row = threadIdx.x / kDepth;
    const int firstVector = threadIdx.x % 16 * kVectorsOfLane;
    const int firstQuery = threadIdx.x / 16 * kQueriesOfLane;
    float sums[kQueriesOfLane][kVectorsOfLane][Least::kSums] = {};
    __syncthreads();
    if (threadIdx.x == 0) {
        shared.kept = 0;
    }
    // Components are on their way for the time of a step.
    constexpr int kVectorLoads = kFilterVectors / kRowStep;
    constexpr int kQueryLoads = kQueries / kRowStep;
    float nextVectors[kVectorLoads];
    float nextQueries[kQueryLoads];
    const auto fetch = [&](int depth) {
        const int c = depth + column;
        const bool isThere = c < search.d;
        withVectors(search.vectors, [&](const auto* data) {
#pragma unroll
            for (int i = 0; i < kVectorLoads; ++i) {
                const int64_t vector =
                        min(first + row + i * kRowStep, search.n - 1);
                nextVectors[i] = isThere
                        ? toFloat(
                                  data[vector * search.vectors.rowStride +
                                       c * search.vectors.columnStride])
                        : 0.0f;
            }
        });
#pragma unroll
        for (int i = 0; i < kQueryLoads; ++i) {
            const uint32_t q = min(uint32_t(row + i * kRowStep), rows - 1);
            nextQueries[i] = isThere
                    ? search.queries
                              [int64_t(shared.rows[slot + q]) * search.d + c]
                    : 0.0f;
        }
    };
    fetch(0);
    for (int depth = 0; depth < search.d; depth += kDepth) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kVectorLoads; ++i) {
            tile.vectors[column][row + i * kRowStep] = nextVectors[i];
        }
#pragma unroll
        for (int i = 0; i < kQueryLoads; ++i) {
            tile.queries[column][row + i * kRowStep] = nextQueries[i];
        }
        __syncthreads();
        if (depth + kDepth < search.d) {
            fetch(depth + kDepth);
        }
        const int most = min(kDepth, search.d - depth);
#pragma unroll 4
        for (int i = 0; i < most; ++i) {
            const float4 four = *reinterpret_cast<const float4*>(
                    &tile.vectors[i][firstVector]);
            const float x[] = {four.x, four.y, four.z, four.w};
            float q[kQueriesOfLane];
            if constexpr (kQueriesOfLane == 4) {
                const float4 queries = *reinterpret_cast<const float4*>(
                        &tile.queries[i][firstQuery]);
                q[0] = queries.x;
                q[1] = queries.y;
                q[2] = queries.z;
                q[3] = queries.w;
            } else {
#pragma unroll
                for (int a = 0; a < kQueriesOfLane; ++a) {
                    q[a] = tile.queries[i][firstQuery + a];
                }
            }
#pragma unroll
            for (int a = 0; a < kQueriesOfLane; ++a) {
#pragma unroll
                for (int b = 0; b < kVectorsOfLane; ++b) {
                    Least::template add<kHalves>(sums[a][b], x[b], q[a]);
                }
            }
        }
    }
#pragma unroll
    for (int a = 0; a < kQueriesOfLane; ++a) {
        const int q = firstQuery + a;
        const uint64_t limit =
                q < int(rows) ? shared.limits[slot + q] : uint64_t(0);
        float upper[kVectorsOfLane] = {};
        uint32_t within = 0;
#pragma unroll
        for (int b = 0; b < kVectorsOfLane; ++b) {
            const int v = firstVector + b;
            const float least = Least::least(sums[a][b], search.d);
            // NaN says nothing; a limit without a key lets all pass.
            const bool isNear = q < int(rows) && first + v < search.n &&
                    (least != least ||
                     makeEntry(orderedKey(least), uint32_t(first + v)) <
                             limit);
            if constexpr (kHasMostTerms<kMetric>) {
                if (numRough > 0) {
                    upper[b] = Least::most(sums[a][b], search.d);
                    within |= isNear ? 1u << b : 0;
                    continue;
                }
            }
            if (isNear) {
                tile.near[atomicAdd(&shared.kept, 1u)] =
                        uint16_t(q * kFilterVectors + v);
            }
        }
        if (within != 0) {
            appendSome(slot + q, first + firstVector, upper, within);
        }
    }
    __syncthreads();
    const uint32_t count = shared.kept;
    constexpr uint32_t kGroups = kThreads / kPairLanes;
    for (uint32_t base = 0; base < count; base += kGroups) {
        const uint32_t i = base + threadIdx.x / kPairLanes;
        // A group without a pair has that of another.
        const uint32_t pair = tile.near[min(i, count - 1)];
        const uint32_t s = slot + pair / kFilterVectors;
        const int64_t vector = first + pair % kFilterVectors;
        double distance = 0;
        withVectors(search.vectors, [&](const auto* data) {
            distance = distanceOfPair<kMetric>(
                    search,
                    data + vector * search.vectors.rowStride,
                    search.queries + int64_t(shared.rows[s]) * search.d,
                    search.d);
        });
        if (i < count && threadIdx.x % kPairLanes == 0) {
            append(s, vector, canonical::toFloat32(distance));
        }
    }
    return count;
}

} // namespace faiss_bits

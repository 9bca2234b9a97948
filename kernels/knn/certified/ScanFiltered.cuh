/// What ScanAgain does for metrics that have LeastTerms: a tile of pairs meets
/// by these, and those that may be within the limits by canonical distances,
/// eight lanes each, dealt out to the block. Included by ScanAgain.cuh.
///
/// Bound by: float32, some operations a component and pair, where few are near;
/// else by what canonical distances are bound by.
#pragma once

#include "kernels/knn/certified/LeastTerms.cuh"
#include "kernels/knn/certified/LongTerms.cuh"
#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Some numbers side by side in shared memory.
template <int kCount>
__device__ __forceinline__ void readSome(
        float (&values)[kCount],
        const float* from) {
    if constexpr (kCount == 4) {
        const float4 four = *reinterpret_cast<const float4*>(from);
        values[0] = four.x;
        values[1] = four.y;
        values[2] = four.z;
        values[3] = four.w;
    } else {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            values[i] = from[i];
        }
    }
}

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
    areFew(used) ? scanFew(begin, count, used) : scanTiles(begin, count, used);
}

/// Whether pairs are looked at before they are computed. Few rows of short
/// terms are bound by the read of the vectors.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::mayFilter(
        uint32_t used) const {
    constexpr uint32_t kFewRows = kIsOfProducts<kMetric> ? 8 : 4;
    if (kIsOfProducts<kMetric>) {
        // More make tiles of products. Without limits no pair is left out.
        return used > kFewRows && used <= kFewSlots<kMetric> && hasLimits(used);
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
    uint32_t queries = used <= 2 * kFewestFilterQueries ? kFewestFilterQueries
            : used <= kFewFilterQueries                 ? kFewFilterQueries
                                                        : kFilterQueries;
    uint32_t parts = kChunk / kPartVectors;
    const auto tilesOf = [&] {
        return count * parts * ((used + queries - 1) / queries);
    };
    // Smaller tiles where there are few.
    if (tilesOf() < 16 * gridDim.x) {
        parts = kChunk / kFilterVectors;
    }
    if (queries > kFewFilterQueries && tilesOf() < gridDim.x) {
        queries = kFewFilterQueries;
    }
    const uint32_t queryTiles = (used + queries - 1) / queries;
    const uint32_t tiles = tilesOf();
    const uint32_t ofPart = kChunk / parts;
    // Without a limit all pairs are near.
    const bool isFiltered = kHasLongTerms<kMetric> ||
            kIsExactInFloat<kMetric> || numRough > 0 || hasLimits(used);
    int unfiltered = isFiltered ? 0 : INT_MAX;
    // Near pairs of a tile, one of so many, that are too many: by eight lanes
    // a pair takes some times as long as in a tile.
    const uint32_t crowd = areNear ? 3 : 8;
    // Tiles of the same vectors side by side.
    for (uint32_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const uint32_t part = t / queryTiles;
        const int64_t first =
                chunkAt(begin + part / parts) + part % parts * ofPart;
        const int64_t last = min(first + ofPart, params.search.n);
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
                near += queries == kFilterQueries
                        ? filteredTile<kFilterQueries, kHalves>(v, slot, rows)
                        : queries == kFewFilterQueries
                        ? filteredTile<kFewFilterQueries, kHalves>(
                                  v, slot, rows)
                        : filteredTile<kFewestFilterQueries, kHalves>(
                                  v, slot, rows);
            }
        });
        if (!kHasLongTerms<kMetric> && near > rows * ofPart / crowd) {
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
/// are no more than, of none; so for metrics that are exact in float32.
template <Metric kMetric, class Begin>
template <int kQueries, int kHalves>
__device__ __forceinline__ uint32_t ScanAgain<kMetric, Begin>::filteredTile(
        int64_t first,
        uint32_t slot,
        uint32_t rows) {
    using Least = LeastTerms<kMetric>;
    constexpr int kDepth = kFilterDepth;
    constexpr int kLanes = kFilterLanes;
    constexpr int kOfLane = kDepth / kLanes;    // components of a row
    constexpr int kRowStep = kThreads / kLanes; // rows that are read at a time
    constexpr int kQueryLanes = kQueries < 16 ? kQueries : 16;
    constexpr int kVectorLanes = kThreads / kQueryLanes;
    constexpr int kVectorsOfLane = kFilterVectors / kVectorLanes;
    constexpr int kQueriesOfLane = kQueries / kQueryLanes;
    static_assert(kVectorsOfLane * kVectorLanes == kFilterVectors);
    static_assert(kVectorsOfLane == 1 || kVectorsOfLane == 4);
    const CertifiedParams& search = params.search;
    auto& tile = shared.filter;
    const int column = threadIdx.x % kLanes;
    const int row = threadIdx.x / kLanes;
    const int firstVector = threadIdx.x % kVectorLanes * kVectorsOfLane;
    const int firstQuery = threadIdx.x / kVectorLanes * kQueriesOfLane;
    float sums[kQueriesOfLane][kVectorsOfLane][Least::kSums] = {};
    __syncthreads();
    if (threadIdx.x == 0) {
        shared.kept = 0;
    }
    if (kWantsFinite<kMetric> &&
        threadIdx.x < kFilterVectors + kFilterQueries) {
        tile.isOdd[threadIdx.x] = false;
    }
    const auto noteOdd = [&](int i, float component) {
        if (kWantsFinite<kMetric> && !(fabsf(component) < INFINITY)) {
            tile.isOdd[i] = true;
        }
    };
    // Components are on their way for the time of a step.
    constexpr int kVectorLoads = kFilterVectors / kRowStep;
    constexpr int kQueryLoads = (kQueries + kRowStep - 1) / kRowStep;
    const int64_t columnStride = search.vectors.columnStride;
    int64_t vectorsAt[kVectorLoads];
    int64_t queriesAt[kQueryLoads];
#pragma unroll
    for (int i = 0; i < kVectorLoads; ++i) {
        vectorsAt[i] = min(first + row + i * kRowStep, search.n - 1) *
                        search.vectors.rowStride +
                column * columnStride;
    }
#pragma unroll
    for (int i = 0; i < kQueryLoads; ++i) {
        const uint32_t q = min(uint32_t(row + i * kRowStep), rows - 1);
        queriesAt[i] = int64_t(shared.rows[slot + q]) * search.d + column;
    }
    uint32_t nextVectors[kOfLane][kVectorLoads]; // heldBits()
    float nextQueries[kOfLane][kQueryLoads];
    const auto fetch = [&](int depth) {
#pragma unroll
        for (int j = 0; j < kOfLane; ++j) {
            const int from = depth + j * kLanes;
            const bool isThere = from + column < search.d;
            withVectors(search.vectors, [&](const auto* data) {
                data += from * columnStride;
#pragma unroll
                for (int i = 0; i < kVectorLoads; ++i) {
                    nextVectors[j][i] =
                            isThere ? heldBits(data[vectorsAt[i]]) : 0;
                }
            });
#pragma unroll
            for (int i = 0; i < kQueryLoads; ++i) {
                nextQueries[j][i] =
                        isThere ? (search.queries + from)[queriesAt[i]] : 0.0f;
            }
        }
    };
    const auto store = [&](int buffer, int depth) {
#pragma unroll
        for (int j = 0; j < kOfLane; ++j) {
            // What is behind the last components by lanes and more is not read.
            if (j > 0 && depth + j * kLanes >= search.d) {
                break;
            }
            const int c = column + j * kLanes;
            withVectors(search.vectors, [&](const auto* data) {
                using T = std::remove_cvref_t<decltype(*data)>;
#pragma unroll
                for (int i = 0; i < kVectorLoads; ++i) {
                    const float number = heldNumber<T>(nextVectors[j][i]);
                    tile.vectors[buffer][c][row + i * kRowStep] = number;
                    noteOdd(row + i * kRowStep, number);
                }
            });
#pragma unroll
            for (int i = 0; i < kQueryLoads; ++i) {
                if (kQueries % kRowStep == 0 || row + i * kRowStep < kQueries) {
                    tile.queries[buffer][c][row + i * kRowStep] =
                            nextQueries[j][i];
                    noteOdd(kFilterVectors + row + i * kRowStep,
                            nextQueries[j][i]);
                }
            }
        }
    };
    fetch(0);
    __syncthreads();
    store(0, 0);
    __syncthreads();
    int buffer = 0;
    for (int depth = 0; depth < search.d; depth += kDepth) {
        const bool isLast = depth + kDepth >= search.d;
        if (!isLast) {
            fetch(depth + kDepth);
        }
        // Those behind the last are zeros, which add nothing.
        constexpr int kUnrolled = 4;
        const int most = isLast ? search.d - depth : kDepth;
        for (int i = 0; i < most; i += kUnrolled) {
#pragma unroll
            for (int j = 0; j < kUnrolled; ++j) {
                float x[kVectorsOfLane];
                float q[kQueriesOfLane];
                readSome(x, &tile.vectors[buffer][i + j][firstVector]);
                readSome(q, &tile.queries[buffer][i + j][firstQuery]);
#pragma unroll
                for (int a = 0; a < kQueriesOfLane; ++a) {
#pragma unroll
                    for (int b = 0; b < kVectorsOfLane; ++b) {
                        Least::template add<kHalves>(sums[a][b], x[b], q[a]);
                    }
                }
            }
        }
        buffer ^= 1;
        if (!isLast) {
            store(buffer, depth + kDepth);
        }
        __syncthreads();
    }
    constexpr float kNone = NAN;
    const bool areBounds = kIsExactInFloat<kMetric> || numRough > 0;
    float bounds[kQueriesOfLane][kVectorsOfLane]; // of those that are near
#pragma unroll
    for (int a = 0; a < kQueriesOfLane; ++a) {
        const int q = firstQuery + a;
        const uint64_t limit =
                q < int(rows) ? shared.limits[slot + q] : uint64_t(0);
#pragma unroll
        for (int b = 0; b < kVectorsOfLane; ++b) {
            const int v = firstVector + b;
            const float least = Least::least(sums[a][b], search.d);
            // NaN says nothing; a limit without a key lets all pass.
            const bool isNear = q < int(rows) && first + v < search.n &&
                    !(kWantsFinite<kMetric> &&
                      (tile.isOdd[v] || tile.isOdd[kFilterVectors + q])) &&
                    (least != least ||
                     makeEntry(orderedKey(least), uint32_t(first + v)) < limit);
            if constexpr (kIsExactInFloat<kMetric>) {
                bounds[a][b] = isNear ? least : kNone;
            } else if constexpr (kHasMostTerms<kMetric>) {
                bounds[a][b] =
                        isNear ? Least::most(sums[a][b], search.d) : kNone;
            }
            if (isNear && !areBounds) {
                tile.near[atomicAdd(&shared.kept, 1u)] =
                        uint16_t(q * kFilterVectors + v);
            }
        }
    }
    if constexpr (kIsExactInFloat<kMetric> || kHasMostTerms<kMetric>) {
        if (areBounds) {
            constexpr int kWidth =
                    kVectorLanes < kWarpSize ? kVectorLanes : kWarpSize;
            appendLanes<kWidth>(slot + firstQuery, first + firstVector, bounds);
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

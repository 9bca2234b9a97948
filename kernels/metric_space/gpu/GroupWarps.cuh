/// What a warp does in ranges without lists: it takes some groups and 32
/// queries, finds which of them look at which group, and meets those with the
/// vectors while these are in its registers.
///
/// Float32 distances say what is surely in range, or surely not; the rest is
/// decided by canonical ones. Results are bits (FoundBits.h), or pairs with
/// their canonical distances.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/metric_space/gpu/FoundPairs.cuh"
#include "kernels/metric_space/gpu/RoughDistance.cuh"
#include "kernels/metric_space/gpu/RowDistances.cuh"

namespace faiss_bits::metric_space {

constexpr int kGroupThreads = 256;
constexpr int kGroupWarps = kGroupThreads / kWarpSize;
/// Results of a warp between two atomic operations.
constexpr uint32_t kPairRoom = 128;
/// Vectors that a warp has at once.
constexpr uint32_t kMetVectors = 2 * kWarpSize;

struct WarpParams {
    SearchParams search;
    RoughLimit limit; // of all queries
    double reach;     // the same as a true distance
    uint32_t parts;   // warps of a group
    int spanBits;     // 2^spanBits groups are asked for at once
};

/// kDims: not less than d; components behind d are zeros, which change no bit
/// of a canonical distance. kToBits: results are bits.
template <Metric kMetric, GroupBounds kKind, int kDims, bool kToBits>
struct GroupWarps {
    static constexpr int kPivots =
            kKind == GroupBounds::Pivots ? kMostWarpPivots : 1;
    static constexpr int kPadded = (kDims + 3) / 4 * 4;
    static constexpr int kPairWarps = kToBits ? 1 : kGroupWarps;
    static constexpr uint32_t kOwnRoom = kToBits ? 1 : kPairRoom;

    struct SharedStorage {
        alignas(16) float queries[kWarpSize][kPadded];
        // Of the queries, rounded outwards, the greatest with the reach.
        float leasts[kPivots][kWarpSize];
        float mosts[kPivots][kWarpSize];
        uint64_t keys[kPairWarps][kOwnRoom];
        float distances[kPairWarps][kOwnRoom];
        unsigned long long pairs;
    };

    /// Of a tile of groups: a lane has group `lane % span`.
    struct Tile {
        uint32_t first = 0; // group
        uint32_t begin = 0; // vectors of the lane's group
        uint32_t end = 0;
        uint32_t queries = 0; // that look at it
    };

    SharedStorage& shared;
    const WarpParams& params;
    const SearchParams& p;
    const MetricGroups& groups;
    const int lane;
    const int warp;
    const uint32_t firstQuery;
    const uint32_t numQueries; // of the block
    uint32_t count = 0;        // results that wait; of the warp
    unsigned long long pairs = 0;

    __device__ GroupWarps(SharedStorage& shared, const WarpParams& params)
            : shared(shared),
              params(params),
              p(params.search),
              groups(p.groups),
              lane(threadIdx.x % kWarpSize),
              warp(threadIdx.x / kWarpSize),
              firstQuery(blockIdx.y * kWarpSize),
              numQueries(min(p.rows - firstQuery, uint32_t(kWarpSize))) {}

    __device__ __forceinline__ float canonicalTo(
            const float (&x)[kDims],
            uint32_t query) const {
        return fixedDistance<kMetric, kDims>(
                [&](int c) { return double(x[c]); },
                [&](int c) { return double(shared.queries[query][c]); });
    }

    __device__ __forceinline__ float roughTo(
            const float (&x)[kDims],
            uint32_t query) const {
        return roughDistance<kMetric, kDims>(x, shared.queries[query]);
    }

    __device__ __forceinline__ void load(
            const float* vector,
            bool exists,
            float (&x)[kDims]) const {
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            x[c] = exists && c < groups.d ? vector[c] : 0.0f;
        }
    }

    __device__ __forceinline__ void begin() {
        if (threadIdx.x == 0) {
            shared.pairs = 0;
        }
        for (int i = threadIdx.x; i < kPadded * kWarpSize; i += kGroupThreads) {
            const uint32_t q = i / kPadded;
            const int c = i % kPadded;
            shared.queries[q][c] = q < numQueries && c < groups.d
                    ? p.queries[int64_t(firstQuery + q) * groups.d + c]
                    : 0.0f;
        }
        __syncthreads();
        if constexpr (kKind == GroupBounds::Pivots) {
            for (uint32_t j = warp; j < groups.numReferences;
                 j += kGroupWarps) {
                float x[kDims];
                load(groups.references + j * groups.d, true, x);
                const float to = canonicalTo(x, lane);
                shared.leasts[j][lane] =
                        __double2float_rd(canonical::leastTrue(kMetric, to));
                shared.mosts[j][lane] = __double2float_ru(
                        canonical::mostTrue(kMetric, to) + params.reach);
            }
            __syncthreads();
        }
    }

    __device__ __forceinline__ void flush() {
        if (count == 0) {
            return;
        }
        unsigned long long first = 0;
        if (lane == 0) {
            first = atomicAdd(p.found.count, (unsigned long long)count);
        }
        __syncwarp(); // what the lanes have left is there
        first = __shfl_sync(kFullWarp, first, 0);
        for (uint32_t i = lane; i < count; i += kWarpSize) {
            if (first + i < p.found.capacity) {
                p.found.keys[first + i] = shared.keys[warp][i];
                p.found.distances[first + i] = shared.distances[warp][i];
            }
        }
        __syncwarp(); // and was read
        count = 0;
    }

    /// Pairs. All lanes call it.
    __device__ __forceinline__ void keep(
            bool isFound,
            uint32_t query,
            int32_t id,
            float distance) {
        const uint32_t lanes = __ballot_sync(kFullWarp, isFound);
        if (lanes == 0) {
            return;
        }
        const uint32_t more = __popc(lanes);
        if (count + more > kPairRoom) {
            flush();
        }
        if (isFound) {
            const uint32_t slot = count + __popc(lanes & lanesBefore());
            shared.keys[warp][slot] = uint64_t(firstQuery + query)
                            << p.found.idBits |
                    uint32_t(id);
            shared.distances[warp][slot] = distance;
        }
        count += more;
    }

    /// A lane's vector, which may be a result: its float32 distance does not
    /// exclude it. id() is asked for where it is one. All lanes call it.
    template <class Id>
    __device__ __forceinline__ void decide(
            bool mayBe,
            const float (&x)[kDims],
            uint32_t query,
            float rough,
            const Id& id) {
        if constexpr (kToBits) {
            if (mayBe &&
                (rough <= params.limit.surelyIn ||
                 canonicalTo(x, query) <= params.limit.limit)) {
                setBit(p.found, firstQuery + query, id());
            }
        } else {
            if (!__any_sync(kFullWarp, mayBe)) {
                return;
            }
            const float distance = canonicalTo(x, query);
            const bool isFound = mayBe && distance <= params.limit.limit;
            keep(isFound, query, isFound ? id() : 0, distance);
        }
    }

    /// Queries of the lane's group, by its center; a center that is a result
    /// is kept.
    __device__ __forceinline__ uint32_t
    lookingAtCenter(uint32_t group, bool isBounded, bool keepsCenter) {
        float x[kDims];
        load(groups.references + int64_t(group) * groups.d, isBounded, x);
        const float farthest = isBounded
                ? roughOfTrue<kMetric>(groups.mosts[group] + params.reach)
                : 0.0f;
        const int32_t id =
                isBounded && keepsCenter ? groups.referenceIds[group] : -1;
        const uint32_t step = kWarpSize >> params.spanBits;
        uint32_t looking = 0;
        for (uint32_t base = 0; base < numQueries; base += step) {
            const uint32_t q = base + (lane >> params.spanBits);
            const bool isPair = isBounded && q < numQueries;
            const float rough = roughTo(x, q);
            looking |= uint32_t(isPair && !(rough > farthest)) << q;
            if (keepsCenter) {
                decide(isPair && id >= 0 && params.limit.mayHave(rough),
                       x,
                       q,
                       rough,
                       [&] { return id; });
            }
        }
        return looking;
    }

    /// The same, of the lane's queries, by pivots.
    __device__ __forceinline__ uint32_t
    lookingByPivots(uint32_t group, bool isBounded) {
        const uint32_t step = kWarpSize >> params.spanBits;
        uint32_t looking = 0;
        for (uint32_t q = lane >> params.spanBits; q < numQueries; q += step) {
            looking |= uint32_t(isBounded) << q;
        }
        for (uint32_t j = 0; j < groups.numReferences; ++j) {
            if (!__any_sync(kFullWarp, looking != 0)) {
                break;
            }
            const size_t bound = size_t(j) * groups.numBounded + group;
            const float least =
                    isBounded ? __double2float_rd(groups.leasts[bound]) : 0.0f;
            const float most = isBounded
                    ? __double2float_ru(groups.mosts[bound] + params.reach)
                    : 0.0f;
            for (uint32_t base = 0; base < numQueries; base += step) {
                const uint32_t q = base + (lane >> params.spanBits);
                const bool isApart = shared.leasts[j][q] > most ||
                        least > shared.mosts[j][q];
                looking &= ~(uint32_t(isApart) << q);
            }
        }
        return looking;
    }

    __device__ __forceinline__ Tile ask(uint32_t tile, bool isFirstPart) {
        const uint32_t span = 1u << params.spanBits;
        Tile t;
        t.first = tile << params.spanBits;
        const uint32_t group = t.first + (lane & (span - 1));
        const bool exists = group < groups.numGroups;
        const bool isBounded = group < groups.numBounded;
        t.begin = exists ? groups.firsts[group] : 0;
        t.end = exists ? groups.firsts[group + 1] : 0;
        if constexpr (kKind == GroupBounds::Centers) {
            t.queries = lookingAtCenter(group, isBounded, isFirstPart);
        } else {
            t.queries = lookingByPivots(group, isBounded);
        }
        for (uint32_t other = span; other < kWarpSize; other *= 2) {
            t.queries |= __shfl_xor_sync(kFullWarp, t.queries, other);
        }
        if (exists && !isBounded) {
            t.queries = kFullWarp >> (kWarpSize - numQueries);
        }
        return t;
    }

    /// Some queries with some vectors of a group, two a lane.
    __device__ __forceinline__ void meet(
            uint32_t queries,
            uint32_t first,
            uint32_t end) {
        float x[2][kDims];
        bool exists[2];
#pragma unroll
        for (int v = 0; v < 2; ++v) {
            const uint32_t i = first + v * kWarpSize + lane;
            exists[v] = i < end;
            load(groups.vectors + int64_t(i) * groups.d, exists[v], x[v]);
        }
        for (uint32_t left = queries; left != 0; left &= left - 1) {
            const uint32_t q = __ffs(int(left)) - 1;
            float rough[2];
            bool mayBe[2];
#pragma unroll
            for (int v = 0; v < 2; ++v) {
                rough[v] = roughTo(x[v], q);
                mayBe[v] = exists[v] && params.limit.mayHave(rough[v]);
            }
            if (!__any_sync(kFullWarp, mayBe[0] || mayBe[1])) {
                continue;
            }
#pragma unroll
            for (int v = 0; v < 2; ++v) {
                decide(mayBe[v], x[v], q, rough[v], [&] {
                    return groups.ids[first + v * kWarpSize + lane];
                });
            }
        }
        pairs += __popc(queries) * min(end - first, kMetVectors);
    }

    __device__ __forceinline__ void take(uint32_t tile, uint32_t part) {
        const Tile t = ask(tile, part == 0);
        const uint32_t span = 1u << params.spanBits;
        const uint32_t lanes = kFullWarp >> (kWarpSize - span);
        uint32_t left =
                __ballot_sync(kFullWarp, t.queries != 0 && t.begin < t.end) &
                lanes;
        for (; left != 0; left &= left - 1) {
            const int of = __ffs(int(left)) - 1;
            const uint32_t queries = __shfl_sync(kFullWarp, t.queries, of);
            const uint32_t begin = __shfl_sync(kFullWarp, t.begin, of);
            const uint32_t end = __shfl_sync(kFullWarp, t.end, of);
            for (uint32_t i = begin + part * kMetVectors; i < end;
                 i += params.parts * kMetVectors) {
                meet(queries, i, end);
            }
        }
    }

    __device__ __forceinline__ void run() {
        begin();
        const uint32_t tiles = ((groups.numGroups - 1) >> params.spanBits) + 1;
        const uint64_t all = uint64_t(tiles) * params.parts;
        for (uint64_t i = blockIdx.x * uint64_t(kGroupWarps) + warp; i < all;
             i += gridDim.x * uint64_t(kGroupWarps)) {
            take(uint32_t(i / params.parts), uint32_t(i % params.parts));
        }
        if constexpr (!kToBits) {
            flush();
        }
        if (lane == 0 && pairs > 0) {
            atomicAdd(&shared.pairs, pairs);
        }
        __syncthreads();
        if (threadIdx.x == 0 && shared.pairs > 0 && p.numDistances) {
            atomicAdd(p.numDistances, shared.pairs);
        }
    }
};

} // namespace faiss_bits::metric_space

#include "kernels/knn/fused/StripLimits.h"

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Error.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"
#include "kernels/device/RankedOf.cuh"
#include "kernels/knn/fused/ByteBound.cuh"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/RankedLimit.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr uint32_t kOfQuery = 8; // lanes, where queries are many

struct StripsAndWords : StripLimitParams {
    PassedWords words;
    /// A query within whose limit so many strips have a vector has no list; 0:
    /// each has one.
    uint32_t overfull = 0;
};

constexpr uint32_t kNone = ~0u;
constexpr long long kInfinite = 0x7ff0000000000000ll;

/// The key of a row's limit, from that of some rank.
template <Metric kMetric>
__device__ __forceinline__ double keyOfLimit(
        const StripLimitParams& params,
        uint32_t row,
        const RowBound<kMetric>& bound,
        uint32_t ranked) {
    double key = double(keyValue(ranked));
    // Beside a query at the center it is the vectors' own roundings that count.
    RowBound<kMetric> rounded = bound;
    if (kMetric != Metric::InnerProduct) {
        key = fmax(key + double(params.search.queryNorms[row]), 0.0);
        rounded.norm = fmax(bound.norm, sqrt(key));
    }
    if (kMetric == Metric::Cosine) {
        key = 0.5 * key - 1;
    }
    constexpr double kOfFloat16 = 0x1p-8;
    key += roundingError(rounded, params.search.d, key, kOfFloat16) -
            bound.centerProduct.value;
    // Hardly more than k pass, so it counts that canonical distances are
    // rounded to float32, and `complete` down to it: what is not above this key
    // rounds to no more than the next float32. More room costs: far from the
    // origin all cosines are a few float32 apart.
    return double(__double2float_ru(key));
}

/// How many of the keys, in order, are within a limit.
template <int kItems>
__device__ __forceinline__ uint32_t
countWithin(const uint32_t (&keys)[kItems], float limit) {
    const uint32_t last = orderedKey(limit);
    uint32_t within = 0;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
        within += keys[i] <= last;
    }
    return __reduce_add_sync(kFullWarp, within);
}

/// Vectors of the sample that pass for each one that is allowed.
__device__ __forceinline__ float passingOfOne(const ByteSearch& bytes) {
    return bytes.allowed ? float(bytes.members) / float(max(*bytes.allowed, 1u))
                         : 1.0f;
}

/// What a query costs in 8 bits: vectors of the sample that its limit there
/// lets pass beside those of 16 bits, some strips having several; kFar where
/// two thirds of a list's room would be used, or so many strips are within that
/// they say little.
__device__ __forceinline__ uint32_t byteCost(
        uint32_t within,
        uint32_t withinBytes,
        uint32_t strips,
        int room,
        float passing) {
    static_assert(kMostStrips * ByteSearch::kTileQueries < ByteSearch::kFar);
    constexpr uint32_t kMostShare = 3; // of the strips
    const auto vectors = [&](uint32_t count) {
        return -float(strips) * log1pf(-float(count) / float(strips));
    };
    return withinBytes > strips / kMostShare ||
                    withinBytes * kSecondShare * 3 > uint32_t(room) * 2
            ? ByteSearch::kFar
            : __float2uint_rn(
                      fminf(passing *
                                    (vectors(withinBytes) -
                                     vectors(min(within, withinBytes))),
                            float(ByteSearch::kFar)));
}

/// As rankedOf(), of keys that eight lanes have, for four queries of a warp. A
/// query needs not have `rank` keys: most is 0 then.
template <int kItems>
__device__ __forceinline__ uint32_t rankedOfEight(
        const uint32_t (&keys)[kItems],
        uint32_t rank,
        uint32_t least,
        uint32_t most) {
    least = min(least, most);
    while (__any_sync(kFullWarp, least < most)) {
        const uint32_t middle = least + (most - least) / 2;
        uint32_t count = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            count += keys[i] <= middle;
        }
#pragma unroll
        for (int lanes = kOfQuery / 2; lanes >= 1; lanes /= 2) {
            count += __shfl_xor_sync(kFullWarp, count, lanes);
        }
        if (least < most) {
            least = count < rank ? middle + 1 : count == rank ? middle : least;
            most = count < rank ? most : middle;
        }
    }
    uint32_t ranked = 0;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
        ranked = keys[i] <= most ? max(ranked, keys[i]) : ranked;
    }
#pragma unroll
    for (int lanes = kOfQuery / 2; lanes >= 1; lanes /= 2) {
        ranked = max(ranked, __shfl_xor_sync(kFullWarp, ranked, lanes));
    }
    return ranked;
}

/// Eight lanes a query, so that a warp makes four limits in the instructions of
/// one, which are most of a query's. As stripLimitsKernel where nothing is left
/// out. kPacks: of four keys, of a lane.
template <Metric kMetric, int kPacks>
__global__ __launch_bounds__(kThreads) void stripLimitsOfManyKernel(
        const __grid_constant__ StripsAndWords params) {
    allowNext();
    waitForPrevious();
    const uint32_t lane = threadIdx.x % kOfQuery;
    const uint32_t row = (blockIdx.x * kThreads + threadIdx.x) / kOfQuery;
    const bool isThere = row < params.search.rows;
    const uint32_t here = isThere ? row : 0;
    const uint32_t words = isThere ? params.words.perRow : 0;
    for (uint32_t w = lane; w < words; w += kOfQuery) {
        params.words.bits[size_t(row) * words + w] = 0;
    }
    const auto* values = reinterpret_cast<const float4*>(
            params.keys + size_t(here) * params.strips);
    constexpr float kNoKey = __builtin_huge_valf();
    float4 packs[kPacks]; // all on their way together
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        const uint32_t at = p * kOfQuery + lane;
        packs[p] = {kNoKey, kNoKey, kNoKey, kNoKey};
        if (4 * at < params.strips) {
            packs[p] = values[at];
        }
    }
    const RowBound<kMetric> bound = imageBound<kMetric>(params.search, here);
    uint32_t keys[4 * kPacks];
    uint32_t least = kNone;
    uint32_t most = 0;
    uint32_t count = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        const float its[4] = {packs[p].x, packs[p].y, packs[p].z, packs[p].w};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            // Minus infinity: of what is no number.
            const bool isKey = fabsf(its[j]) < kNoKey;
            const uint32_t key = isKey ? orderedKey(its[j]) : kNone;
            keys[4 * p + j] = key;
            least = min(least, key);
            most = isKey ? max(most, key) : most;
            count += isKey;
        }
    }
#pragma unroll
    for (int lanes = kOfQuery / 2; lanes >= 1; lanes /= 2) {
        least = min(least, __shfl_xor_sync(kFullWarp, least, lanes));
        most = max(most, __shfl_xor_sync(kFullWarp, most, lanes));
        count += __shfl_xor_sync(kFullWarp, count, lanes);
    }
    const bool hasRank = count >= params.rank;
    const uint32_t ranked = rankedOfEight(
            keys, params.rank, hasRank ? least : 0, hasRank ? most : 0);
    if (isThere && lane == 0) {
        const double key = hasRank
                ? keyOfLimit<kMetric>(params, row, bound, ranked)
                : __longlong_as_double(kInfinite);
        writeLimit(params, row, key, bound);
    }
}

/// A warp a query, with its keys in registers. kLeaves: overfull is read.
template <Metric kMetric, int kItems, bool kLeaves>
__global__ __launch_bounds__(kThreads) void stripLimitsKernel(
        const __grid_constant__ StripsAndWords params) {
    allowNext();
    waitForPrevious();
    const uint32_t lane = threadIdx.x % kWarpSize;
    const uint32_t row = (blockIdx.x * kThreads + threadIdx.x) / kWarpSize;
    if (row >= params.search.rows) {
        return;
    }
    for (uint32_t w = lane; w < params.words.perRow; w += kWarpSize) {
        params.words.bits[size_t(row) * params.words.perRow + w] = 0;
    }
    const float* values = params.keys + size_t(row) * params.strips;
    uint32_t keys[kItems];
    uint32_t least = kNone;
    uint32_t most = 0;
    uint32_t count = 0;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
        const uint32_t at = i * kWarpSize + lane;
        const float value =
                at < params.strips ? values[at] : __builtin_huge_valf();
        // Minus infinity: of what is no number.
        const bool isKey = fabsf(value) < __builtin_huge_valf();
        keys[i] = isKey ? orderedKey(value) : kNone;
        least = min(least, keys[i]);
        most = isKey ? max(most, keys[i]) : most;
        count += isKey;
    }
    count = __reduce_add_sync(kFullWarp, count);
    const RowBound<kMetric> bound = imageBound<kMetric>(params.search, row);
    double key = __longlong_as_double(kInfinite);
    if (count >= params.rank) {
        least = __reduce_min_sync(kFullWarp, least);
        most = __reduce_max_sync(kFullWarp, most);
        key = keyOfLimit<kMetric>(
                params, row, bound, rankedOf(keys, params.rank, least, most));
    }
    float limit = 0;
    if (lane == 0) {
        limit = writeLimit(params, row, key, bound);
    }
    if (!kLeaves) {
        return;
    }
    // A query that more pass than its list has room for, as where thousands of
    // vectors are alike: to append them takes longer than all else.
    limit = __shfl_sync(kFullWarp, limit, 0);
    const bool isBytes = kMetric == Metric::L2 && params.bytes.facts;
    float limitOfBytes = limit;
    if (isBytes) {
        // Where all pass, `complete` says so of both scans. The bound of 8 bits
        // knows how long vectors are, and can be a number where that of 16 is
        // none (sizes near 2^60).
        if (limit < __builtin_huge_valf()) {
            limitOfBytes = limitFor(
                    key, byteBound<kMetric>(params.search, params.bytes, row));
        }
        if (lane == 0) {
            params.bytes.limits[row] = limitOfBytes;
        }
    }
    if (!(fabsf(limit) < __builtin_huge_valf())) {
        return;
    }
    const float norm = kMetric == Metric::InnerProduct
            ? 0.0f
            : params.search.queryNorms[row];
    const uint32_t within = countWithin(keys, limit - norm);
    if (within >= params.overfull) {
        if (lane == 0) {
            // Nothing passes, and nothing is proved.
            params.limits[row] = -__builtin_huge_valf();
            params.complete[row] = -__builtin_huge_valf();
            if (isBytes) {
                params.bytes.limits[row] = -__builtin_huge_valf();
            }
        }
        return;
    }
    if (isBytes) {
        const uint32_t cost = byteCost(
                within,
                countWithin(keys, limitOfBytes - norm),
                params.strips,
                params.search.numCandidates,
                passingOfOne(params.bytes));
        if (lane == 0 && cost > 0) {
            atomicAdd(
                    &params.bytes.costs[row / ByteSearch::kTileQueries], cost);
        }
    }
}

template <Metric kMetric, bool kLeaves>
auto kernelFor(uint32_t strips) {
    return strips <= 128     ? stripLimitsKernel<kMetric, 4, kLeaves>
            : strips <= 256  ? stripLimitsKernel<kMetric, 8, kLeaves>
            : strips <= 512  ? stripLimitsKernel<kMetric, 16, kLeaves>
            : strips <= 1024 ? stripLimitsKernel<kMetric, 32, kLeaves>
                             : stripLimitsKernel<kMetric, 64, kLeaves>;
}

/// Whether eight lanes a query take less: warps enough for the GPU, rows of
/// whole packs, and keys that registers hold.
bool areMany(const StripsAndWords& params) {
    constexpr uint32_t kMany = 16384;
    constexpr uint32_t kMost = 256;
    return params.overfull == 0 && params.search.rows >= kMany &&
            params.strips % 4 == 0 && params.strips <= kMost;
}

template <Metric kMetric>
void launch(const StripsAndWords& params, cudaStream_t stream) {
    if (areMany(params)) {
        constexpr unsigned kQueries = kThreads / kOfQuery;
        return launchAfterPrevious(
                params.strips <= 128 ? stripLimitsOfManyKernel<kMetric, 4>
                                     : stripLimitsOfManyKernel<kMetric, 8>,
                (params.search.rows + kQueries - 1) / kQueries,
                kThreads,
                0,
                stream,
                params);
    }
    const auto kernel = params.overfull > 0
            ? kernelFor<kMetric, true>(params.strips)
            : kernelFor<kMetric, false>(params.strips);
    static_assert(kMostStrips == 64 * kWarpSize);
    constexpr unsigned kRows = kThreads / kWarpSize;
    launchAfterPrevious(
            kernel,
            (params.search.rows + kRows - 1) / kRows,
            kThreads,
            0,
            stream,
            params);
}

} // namespace

void launchStripLimits(
        Metric metric,
        const StripLimitParams& strips,
        const PassedWords& words,
        uint32_t overfull,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(
            !strips.bytes.facts || metric == Metric::L2,
            "metric = %d has no scan in 8 bits",
            int(metric));
    // Limits in 8 bits are made where lists are given up.
    constexpr uint32_t kNever = ~0u;
    const StripsAndWords params{
            strips,
            words,
            overfull == 0 && strips.bytes.facts ? kNever : overfull};
    switch (metric) {
        case Metric::L2:
            return launch<Metric::L2>(params, stream);
        case Metric::InnerProduct:
            return launch<Metric::InnerProduct>(params, stream);
        case Metric::Cosine:
            return launch<Metric::Cosine>(params, stream);
        default:
            throw Error(
                    formatMessage("metric = %d has no images", int(metric)));
    }
}

} // namespace faiss_bits

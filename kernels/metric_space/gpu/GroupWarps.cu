// Ranges in few dimensions without lists: a warp takes a group and 32 queries,
// finds which of them look at it, and computes their distances while the
// vectors are in its registers. One kernel, and nothing in between is written.
//
// Bound by: with few queries the launch; with many the float64 operations of
// the bounds, one distance for each query and group.

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/metric_space/gpu/FoundPairs.cuh"
#include "kernels/metric_space/gpu/RowDistances.cuh"

namespace faiss_bits::metric_space {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;
/// Results of a warp between two atomic operations.
constexpr uint32_t kRoom = 128;
/// A larger group is shared by several warps.
constexpr uint32_t kWarpVectors = 256;
/// Blocks for a multiprocessor, of all words of queries.
constexpr uint32_t kBlocks = 16;

struct WarpParams {
    SearchParams search;
    float limit;    // of all queries
    double reach;   // the same as a true distance
    uint32_t parts; // warps of a group
};

/// kDims: not less than d; components behind d are zeros, which change no bit
/// of a canonical distance.
template <Metric kMetric, GroupBounds kKind, int kDims>
struct GroupWarps {
    static constexpr int kPivots =
            kKind == GroupBounds::Pivots ? kMostWarpPivots : 1;
    static_assert(kPivots <= kWarpSize);

    struct SharedStorage {
        double queries[kDims][kWarpSize];
        double leasts[kPivots][kWarpSize]; // of the queries
        double mosts[kPivots][kWarpSize];
        double groupLeasts[kWarps][kPivots];
        double groupMosts[kWarps][kPivots];
        uint64_t keys[kWarps][kRoom];
        float distances[kWarps][kRoom];
        unsigned long long pairs;
    };

    SharedStorage& shared;
    const WarpParams& params;
    const SearchParams& p;
    const MetricGroups& groups;
    const int lane;
    const int warp;
    const uint32_t firstQuery;
    uint32_t count = 0; // results that wait; of the warp
    unsigned long long pairs = 0;

    __device__ GroupWarps(SharedStorage& shared, const WarpParams& params)
            : shared(shared),
              params(params),
              p(params.search),
              groups(p.groups),
              lane(threadIdx.x % kWarpSize),
              warp(threadIdx.x / kWarpSize),
              firstQuery(blockIdx.y * kWarpSize) {}

    /// Of the query of a lane, or of all lanes.
    __device__ __forceinline__ float distanceTo(
            const double (&x)[kDims],
            int query) const {
        return fixedDistance<kMetric, kDims>(
                [&](int c) { return x[c]; },
                [&](int c) { return shared.queries[c][query]; });
    }

    __device__ __forceinline__ void load(
            const float* vector,
            bool exists,
            double (&x)[kDims]) const {
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            x[c] = exists && c < groups.d ? double(vector[c]) : 0.0;
        }
    }

    __device__ __forceinline__ void begin() {
        if (threadIdx.x == 0) {
            shared.pairs = 0;
        }
        for (int i = threadIdx.x; i < kDims * kWarpSize; i += kThreads) {
            const int c = i / kWarpSize;
            const uint32_t q = i % kWarpSize;
            shared.queries[c][q] = firstQuery + q < p.rows && c < groups.d
                    ? double(p.queries[int64_t(firstQuery + q) * groups.d + c])
                    : 0.0;
        }
        __syncthreads();
        if constexpr (kKind == GroupBounds::Pivots) {
            for (uint32_t j = warp; j < groups.numReferences; j += kWarps) {
                double x[kDims];
                load(groups.references + j * groups.d, true, x);
                const float to = distanceTo(x, lane);
                shared.leasts[j][lane] = canonical::leastTrue(kMetric, to);
                shared.mosts[j][lane] = canonical::mostTrue(kMetric, to);
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

    /// All lanes call it.
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
        if (count + more > kRoom) {
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

    /// Whether the lane's query looks at a bounded group. A center that is a
    /// result is kept.
    __device__ __forceinline__ bool looksAt(
            uint32_t group,
            bool isQuery,
            bool keepsCenter) {
        const double reach = params.reach;
        if constexpr (kKind == GroupBounds::Centers) {
            double x[kDims];
            load(groups.references + int64_t(group) * groups.d, true, x);
            const float to = distanceTo(x, lane);
            const int32_t id = groups.referenceIds[group];
            keep(keepsCenter && isQuery && id >= 0 && to <= params.limit,
                 lane,
                 id,
                 to);
            return !(
                    canonical::leastTrue(kMetric, to) >
                    groups.mosts[group] + reach);
        } else {
            // Read at once: one after the other each would be waited for.
            if (uint32_t(lane) < groups.numReferences) {
                const size_t bound = size_t(lane) * groups.numBounded + group;
                shared.groupLeasts[warp][lane] = groups.leasts[bound];
                shared.groupMosts[warp][lane] = groups.mosts[bound] + reach;
            }
            __syncwarp();
            bool looks = true;
            for (uint32_t j = 0; looks && j < groups.numReferences; ++j) {
                looks =
                        !(shared.leasts[j][lane] > shared.groupMosts[warp][j] ||
                          shared.groupLeasts[warp][j] >
                                  shared.mosts[j][lane] + reach);
            }
            __syncwarp(); // the others have read them
            return looks;
        }
    }

    __device__ __forceinline__ void take(uint32_t group, uint32_t part) {
        const bool isQuery = firstQuery + lane < p.rows;
        bool looks = isQuery && params.reach >= 0;
        if (group < groups.numBounded) {
            looks &= looksAt(group, isQuery, part == 0);
        }
        const uint32_t queries = __ballot_sync(kFullWarp, looks);
        if (queries == 0) {
            return;
        }
        const uint32_t last = groups.firsts[group + 1];
        for (uint32_t base = groups.firsts[group] + part * kWarpSize;
             base < last;
             base += params.parts * kWarpSize) {
            const uint32_t i = base + lane;
            const bool exists = i < last;
            double x[kDims];
            load(groups.vectors + int64_t(i) * groups.d, exists, x);
            const int32_t id = exists ? groups.ids[i] : 0;
            for (uint32_t left = queries; left != 0; left &= left - 1) {
                const int q = __ffs(int(left)) - 1;
                const float distance = distanceTo(x, q);
                keep(exists && distance <= params.limit, q, id, distance);
            }
            pairs += __popc(queries) * min(last - base, uint32_t(kWarpSize));
        }
    }

    __device__ __forceinline__ void run() {
        begin();
        const uint64_t all = uint64_t(groups.numGroups) * params.parts;
        for (uint64_t i = blockIdx.x * uint64_t(kWarps) + warp; i < all;
             i += gridDim.x * uint64_t(kWarps)) {
            take(uint32_t(i / params.parts), uint32_t(i % params.parts));
        }
        flush();
        if (lane == 0 && pairs > 0) {
            atomicAdd(&shared.pairs, pairs);
        }
        __syncthreads();
        if (threadIdx.x == 0 && shared.pairs > 0 && p.numDistances) {
            atomicAdd(p.numDistances, shared.pairs);
        }
    }
};

template <Metric kMetric, GroupBounds kKind, int kDims>
__global__ void __launch_bounds__(kThreads, 3)
        groupWarpsKernel(const __grid_constant__ WarpParams params) {
    using Warps = GroupWarps<kMetric, kKind, kDims>;
    __shared__ typename Warps::SharedStorage shared;
    Warps(shared, params).run();
}

template <Metric kMetric, int kDims>
void launch(const WarpParams& params, dim3 blocks, cudaStream_t stream) {
    if (params.search.groups.kind == GroupBounds::Centers) {
        groupWarpsKernel<kMetric, GroupBounds::Centers, kDims>
                <<<blocks, kThreads, 0, stream>>>(params);
    } else {
        groupWarpsKernel<kMetric, GroupBounds::Pivots, kDims>
                <<<blocks, kThreads, 0, stream>>>(params);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace

void launchGroupWarps(
        const SearchParams& p,
        float limit,
        int multiprocessors,
        cudaStream_t stream) {
    const MetricGroups& groups = p.groups;
    if (groups.numGroups == 0 || p.rows == 0) {
        return;
    }
    WarpParams params;
    params.search = p;
    params.limit = limit;
    params.reach = canonical::reachOf(groups.metric, limit);
    const uint32_t size = std::min<uint64_t>(groups.groupSize, groups.n);
    params.parts = std::max(1u, (size + kWarpVectors - 1) / kWarpVectors);
    const uint64_t warps = uint64_t(groups.numGroups) * params.parts;
    const uint64_t most =
            std::max(1u, uint32_t(multiprocessors) * kBlocks / p.words);
    const dim3 blocks(
            unsigned(std::min((warps + kWarps - 1) / kWarps, most)), p.words);
    withMetric(groups.metric, [&](auto metric) {
        constexpr Metric kMetric = metric();
        if (groups.d <= 4) {
            launch<kMetric, 4>(params, blocks, stream);
        } else if (groups.d <= 8) {
            launch<kMetric, 8>(params, blocks, stream);
        } else {
            launch<kMetric, kMostWarpDims>(params, blocks, stream);
        }
    });
}

} // namespace faiss_bits::metric_space

// Which groups a query has to look at: by its distances to centers or pivots.

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/knn/all_pairs/AllPairsLaunch.h"
#include "kernels/metric_space/gpu/FoundPairs.cuh"
#include "kernels/metric_space/gpu/RowDistances.cuh"

namespace faiss_bits::metric_space {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

__global__ void reachesKernel(SearchParams p, float limit, bool areGiven) {
    const uint32_t q = blockIdx.x * kThreads + threadIdx.x;
    if (q < p.rows) {
        if (!areGiven) {
            p.limits[q] = limit;
        }
        p.reaches[q] = canonical::reachOf(
                p.groups.metric, areGiven ? p.limits[q] : limit);
    }
}

/// The first cluster that holds the query's ball, or the last one. A block a
/// query.
template <Metric kMetric>
__global__ void __launch_bounds__(kThreads) stopsKernel(SearchParams p) {
    __shared__ uint32_t stop;
    if (threadIdx.x == 0) {
        stop = p.groups.numBounded;
    }
    __syncthreads();
    const float* to = p.toReferences + blockIdx.x * p.stride;
    const double reach = p.reaches[blockIdx.x];
    for (uint32_t c = threadIdx.x; c < p.groups.numBounded; c += kThreads) {
        if (canonical::mostTrue(kMetric, to[c]) + reach < p.groups.leasts[c]) {
            atomicMin(&stop, c);
            break; // those behind are greater
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        p.stops[blockIdx.x] = stop;
    }
}

__global__ void pivotBoundsKernel(SearchParams p) {
    const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
    const uint32_t pivots = p.groups.numReferences;
    if (i < p.rows * pivots) {
        const float to = p.toReferences[i / pivots * p.stride + i % pivots];
        p.pivotLeasts[i] = canonical::leastTrue(p.groups.metric, to);
        p.pivotMosts[i] = canonical::mostTrue(p.groups.metric, to);
    }
}

/// A warp has 32 queries, and 32 groups one a lane.
template <Metric kMetric, GroupBounds kKind>
__global__ void __launch_bounds__(kThreads) groupBitsKernel(SearchParams p) {
    const MetricGroups& groups = p.groups;
    const uint32_t word = blockIdx.y * kWarps + threadIdx.x / kWarpSize;
    if (word >= p.words) {
        return;
    }
    const uint32_t group = blockIdx.x * kWarpSize + threadIdx.x % kWarpSize;
    const bool exists = group < groups.numGroups;
    const bool isBounded = group < groups.numBounded;
    const uint32_t last = min(kWarpSize, int(p.rows - word * kWarpSize));
    const int32_t id = kKind == GroupBounds::Centers && isBounded
            ? groups.referenceIds[group]
            : -1;
    uint32_t bits = 0;
    for (uint32_t i = 0; i < last; ++i) {
        const uint32_t q = word * kWarpSize + i;
        const double reach = p.reaches[q];
        bool looks = exists && reach >= 0;
        if constexpr (kKind == GroupBounds::Centers) {
            bool isResult = false;
            float to = 0;
            if (isBounded) {
                to = p.toReferences[q * p.stride + group];
                const bool isBefore = group <= p.stops[q];
                looks = looks && isBefore &&
                        !(canonical::leastTrue(kMetric, to) >
                          groups.mosts[group] + reach);
                isResult = isBefore && to <= p.limits[q] && id >= 0;
            }
            appendOfWarp(p.found, isResult, q, id, to);
        }
        if constexpr (kKind == GroupBounds::Pivots) {
            for (uint32_t j = 0; isBounded && looks && j < groups.numReferences;
                 ++j) {
                const size_t pivot = size_t(q) * groups.numReferences + j;
                const size_t bound = size_t(j) * groups.numBounded + group;
                looks =
                        !(p.pivotLeasts[pivot] > groups.mosts[bound] + reach ||
                          groups.leasts[bound] > p.pivotMosts[pivot] + reach);
            }
        }
        bits |= looks ? 1u << i : 0u;
    }
    if (exists) {
        p.bits[size_t(group) * p.words + word] = bits;
    }
}

/// A thread a word.
__global__ void __launch_bounds__(kThreads) givenBitsKernel(
        SearchParams p,
        const uint32_t* given,
        uint32_t stride,
        uint32_t words,
        uint32_t first) {
    const uint32_t word = blockIdx.x * kThreads + threadIdx.x;
    if (word >= p.words) {
        return;
    }
    const uint32_t at = first / kWarpSize + word;
    const uint32_t ours = p.rows - word * kWarpSize;
    const uint32_t mask = ours < uint32_t(kWarpSize) ? (1u << ours) - 1 : ~0u;
    for (uint32_t group = blockIdx.y; group < p.groups.numGroups;
         group += gridDim.y) {
        const uint32_t* row = given + size_t(group) * stride;
        const uint32_t next = at + 1 < words ? row[at + 1] : 0;
        p.bits[size_t(group) * p.words + word] =
                __funnelshift_r(row[at], next, first % kWarpSize) & mask;
    }
}

/// How far a query is at least from a group's vectors. A thread a group.
__global__ void __launch_bounds__(kThreads)
        nearnessKernel(SearchParams p, float* keys) {
    const uint32_t group = blockIdx.x * kThreads + threadIdx.x;
    const MetricGroups& groups = p.groups;
    if (group >= groups.numBounded) {
        return;
    }
    for (uint32_t q = blockIdx.y; q < p.rows; q += gridDim.y) {
        double least = 0;
        for (uint32_t j = 0; j < groups.numReferences; ++j) {
            const size_t pivot = size_t(q) * groups.numReferences + j;
            const size_t bound = size_t(j) * groups.numBounded + group;
            least =
                    fmax(least,
                         fmax(p.pivotLeasts[pivot] - groups.mosts[bound],
                              groups.leasts[bound] - p.pivotMosts[pivot]));
        }
        keys[size_t(q) * groups.numBounded + group] = float(least);
    }
}

/// Sets the query's bit of the `count` groups with the least keys, one after
/// the other. A block a query.
__global__ void __launch_bounds__(kThreads) seedBitsKernel(
        SearchParams p,
        const float* keys,
        int64_t stride,
        uint32_t count) {
    __shared__ uint64_t leasts[kWarps];
    const uint32_t q = blockIdx.x;
    uint64_t last = 0; // an entry that no group has, as it has a sign
    for (uint32_t i = 0; i < count; ++i) {
        uint64_t least = kNoEntry;
        for (uint32_t g = threadIdx.x; g < p.groups.numBounded; g += kThreads) {
            const uint64_t entry =
                    makeEntry(orderedKey(keys[q * stride + g]), g);
            if (entry > last && entry < least) {
                least = entry;
            }
        }
        least = leastOfWarp(least);
        __syncthreads(); // the others have read what was there
        if (threadIdx.x % kWarpSize == 0) {
            leasts[threadIdx.x / kWarpSize] = least;
        }
        __syncthreads();
        last = leastOfWarp(ofWarps<kWarps>(leasts, kNoEntry));
        if (last == kNoEntry) {
            return;
        }
        if (threadIdx.x == 0) {
            atomicOr(
                    p.bits + size_t(entryColumn(last)) * p.words +
                            q / kWarpSize,
                    1u << q % kWarpSize);
        }
    }
}

unsigned blocksOf(uint64_t threads) {
    return unsigned((threads + kThreads - 1) / kThreads);
}

} // namespace

void launchReferenceDistances(
        const SearchParams& p,
        int multiprocessors,
        cudaStream_t stream) {
    if (p.groups.numReferences == 0 || p.rows == 0) {
        return;
    }
    AllPairsParams params;
    params.search.vectors.data = p.groups.references;
    params.search.vectors.rowStride = p.groups.d;
    params.search.n = p.groups.numReferences;
    params.search.d = p.groups.d;
    params.search.queries = p.queries;
    params.search.rows = p.rows;
    params.distances = p.toReferences;
    params.stride = p.stride;
    withMetric(p.groups.metric, [&](auto metric) {
        launchAllPairs<metric()>(params, multiprocessors, stream);
    });
    if (p.groups.kind == GroupBounds::Pivots) {
        pivotBoundsKernel<<<
                blocksOf(uint64_t(p.rows) * p.groups.numReferences),
                kThreads,
                0,
                stream>>>(p);
        BITS_CUDA_CHECK(cudaGetLastError());
    }
}

void launchReaches(
        const SearchParams& p,
        float limit,
        bool areGiven,
        cudaStream_t stream) {
    reachesKernel<<<blocksOf(p.rows), kThreads, 0, stream>>>(
            p, limit, areGiven);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void launchGroupBits(const SearchParams& p, cudaStream_t stream) {
    if (p.groups.numGroups == 0) {
        return;
    }
    const dim3 blocks(
            (p.groups.numGroups + kWarpSize - 1) / kWarpSize,
            (p.words + kWarps - 1) / kWarps);
    withMetric(p.groups.metric, [&](auto metric) {
        constexpr Metric kMetric = metric();
        if (p.groups.kind == GroupBounds::Centers) {
            stopsKernel<kMetric><<<p.rows, kThreads, 0, stream>>>(p);
            BITS_CUDA_CHECK(cudaGetLastError());
            groupBitsKernel<kMetric, GroupBounds::Centers>
                    <<<blocks, kThreads, 0, stream>>>(p);
        } else {
            groupBitsKernel<kMetric, GroupBounds::Pivots>
                    <<<blocks, kThreads, 0, stream>>>(p);
        }
    });
    BITS_CUDA_CHECK(cudaGetLastError());
}

void launchGivenBits(
        const SearchParams& p,
        const uint32_t* given,
        uint32_t stride,
        uint32_t words,
        idx_t first,
        cudaStream_t stream) {
    if (p.groups.numGroups == 0) {
        return;
    }
    const dim3 blocks(blocksOf(p.words), std::min(p.groups.numGroups, 65535u));
    givenBitsKernel<<<blocks, kThreads, 0, stream>>>(
            p, given, stride, words, uint32_t(first));
    BITS_CUDA_CHECK(cudaGetLastError());
}

void launchSeedBits(
        const SearchParams& p,
        float* keys,
        uint32_t count,
        cudaStream_t stream) {
    const MetricGroups& groups = p.groups;
    BITS_CUDA_CHECK(cudaMemsetAsync(
            p.bits,
            0,
            size_t(groups.numGroups) * p.words * sizeof(uint32_t),
            stream));
    if (groups.kind == GroupBounds::Centers) {
        seedBitsKernel<<<p.rows, kThreads, 0, stream>>>(
                p, p.toReferences, p.stride, count);
    } else {
        const dim3 blocks(
                blocksOf(groups.numBounded), p.rows < 65535 ? p.rows : 65535);
        nearnessKernel<<<blocks, kThreads, 0, stream>>>(p, keys);
        BITS_CUDA_CHECK(cudaGetLastError());
        seedBitsKernel<<<p.rows, kThreads, 0, stream>>>(
                p, keys, groups.numBounded, count);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits::metric_space

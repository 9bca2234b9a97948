// From bits to results. With few queries three short launches where a sort has
// six or more.
//
// Bound by: reading the bits twice, and the vectors in range once.

#include "kernels/metric_space/gpu/FoundBits.h"

#include <cub/block/block_scan.cuh>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DependentLaunch.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/device/LaneMask.cuh"
#include "kernels/device/LaneSums.cuh"
#include "kernels/metric_space/gpu/RoughDistance.cuh"

namespace faiss_bits::metric_space {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;
/// Words of a lane, one behind the other.
constexpr int kLaneWords = kItemWords / kWarpSize;
/// Results of an item that are listed before they are written. Of more, a lane
/// has a bit.
constexpr uint32_t kListed = 1024;
constexpr int kSumThreads = 1024;

struct LaneBits {
    uint32_t words[kLaneWords];

    __device__ __forceinline__ LaneBits(const uint32_t* item, int lane) {
        static_assert(kLaneWords == 8);
        const uint4* from = reinterpret_cast<const uint4*>(item) + 2 * lane;
        const uint4 a = from[0];
        const uint4 b = from[1];
        words[0] = a.x;
        words[1] = a.y;
        words[2] = a.z;
        words[3] = a.w;
        words[4] = b.x;
        words[5] = b.y;
        words[6] = b.z;
        words[7] = b.w;
    }

    __device__ __forceinline__ uint32_t count() const {
        uint32_t sum = 0;
#pragma unroll
        for (int w = 0; w < kLaneWords; ++w) {
            sum += __popc(words[w]);
        }
        return sum;
    }
};

__global__ void __launch_bounds__(kThreads)
        countsKernel(const __grid_constant__ FoundBits f) {
    allowNext();
    waitForPrevious();
    const uint32_t item =
            blockIdx.x * uint32_t(kWarps) + threadIdx.x / kWarpSize;
    if (item >= f.rows * f.items) {
        return;
    }
    const int lane = threadIdx.x % kWarpSize;
    const LaneBits bits(f.bits + size_t(item) * kItemWords, lane);
    const uint32_t count = __reduce_add_sync(kFullWarp, bits.count());
    if (lane == 0) {
        f.counts[item] = count;
    }
}

struct PlacesParams {
    FoundBits found;
    idx_t* limits; // [rows + 1]
};

/// One block. A thread has some items, one behind the other.
__global__ void __launch_bounds__(kSumThreads)
        placesKernel(const __grid_constant__ PlacesParams params) {
    const FoundBits& f = params.found;
    idx_t* limits = params.limits;
    allowNext();
    waitForPrevious();
    using Scan = cub::BlockScan<uint32_t, kSumThreads>;
    __shared__ typename Scan::TempStorage temp;
    const uint32_t all = f.rows * f.items;
    const uint32_t ofThread = (all + kSumThreads - 1) / kSumThreads;
    const uint32_t first = min(threadIdx.x * ofThread, all);
    const uint32_t last = min(first + ofThread, all);
    uint32_t sum = 0;
    for (uint32_t i = first; i < last; ++i) {
        sum += f.counts[i];
    }
    uint32_t place = 0;
    uint32_t total = 0;
    Scan(temp).ExclusiveSum(sum, place, total);
    uint32_t query = first / f.items;
    uint32_t item = first % f.items;
    for (uint32_t i = first; i < last; ++i) {
        f.places[i] = place;
        if (item == 0) {
            limits[query] = place;
        }
        place += f.counts[i];
        if (++item == f.items) {
            item = 0;
            ++query;
        }
    }
    if (threadIdx.x == 0) {
        limits[f.rows] = total;
    }
}

struct ResultParams {
    FoundBits found;
    const float* queries;
    const float* vectors;
    int d;
    uint32_t firstItem;
    uint32_t numItems;
    idx_t before;
    float* distances;
    idx_t* ids;
};

template <Metric kMetric, int kDims>
struct BitResults {
    struct SharedStorage {
        uint16_t listed[kWarps][kListed];
    };

    const ResultParams& p;
    const int lane;
    const uint32_t item;
    double query[kDims];
    idx_t firstId;
    idx_t place;

    __device__ BitResults(const ResultParams& params, uint32_t item)
            : p(params), lane(threadIdx.x % kWarpSize), item(item) {
        const uint32_t row = item / p.found.items;
        firstId = idx_t(item % p.found.items) * (kItemWords * 32);
        place = idx_t(p.found.places[item]) - p.before;
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            query[c] = c < p.d ? double(p.queries[size_t(row) * p.d + c]) : 0.0;
        }
    }

    __device__ __forceinline__ void write(uint32_t number, uint32_t inItem) {
        const idx_t id = firstId + inItem;
        const float* x = p.vectors + id * p.d;
        p.distances[place + number] = fixedDistance<kMetric, kDims>(
                [&](int c) { return c < p.d ? double(x[c]) : 0.0; },
                [&](int c) { return query[c]; });
        p.ids[place + number] = id;
    }

    /// Ids first, then a result a lane.
    __device__ __forceinline__ void writeListed(
            const LaneBits& bits,
            uint32_t count,
            uint16_t* listed) {
        uint32_t at = sumUpToLane(bits.count());
        at -= bits.count();
#pragma unroll
        for (int w = 0; w < kLaneWords; ++w) {
            for (uint32_t left = bits.words[w]; left != 0; left &= left - 1) {
                listed[at++] = uint16_t(
                        (lane * kLaneWords + w) * 32 + __ffs(int(left)) - 1);
            }
        }
        __syncwarp();
        for (uint32_t i = lane; i < count; i += kWarpSize) {
            write(i, listed[i]);
        }
    }

    /// Word after word, a bit a lane.
    __device__ __forceinline__ void writeWords(const uint32_t* words) {
        uint32_t number = 0;
        for (uint32_t w = 0; w < kItemWords; ++w) {
            const uint32_t word = words[w];
            if (word >> lane & 1) {
                write(number + __popc(word & lanesBefore()), w * 32 + lane);
            }
            number += __popc(word);
        }
    }
};

template <Metric kMetric, int kDims>
__global__ void __launch_bounds__(kThreads)
        resultsKernel(const __grid_constant__ ResultParams p) {
    using Results = BitResults<kMetric, kDims>;
    __shared__ typename Results::SharedStorage shared;
    const int warp = threadIdx.x / kWarpSize;
    const uint32_t i = blockIdx.x * uint32_t(kWarps) + warp;
    if (i >= p.numItems) {
        return;
    }
    const uint32_t item = p.firstItem + i;
    const uint32_t count = p.found.counts[item];
    if (count == 0) {
        return;
    }
    Results results(p, item);
    const uint32_t* words = p.found.bits + size_t(item) * kItemWords;
    if (count <= kListed) {
        results.writeListed(
                LaneBits(words, results.lane), count, shared.listed[warp]);
    } else {
        results.writeWords(words);
    }
}

unsigned blocksOf(uint64_t items) {
    return unsigned((items + kWarps - 1) / kWarps);
}

} // namespace

void launchBitLimits(
        const FoundBits& found,
        idx_t* limits,
        cudaStream_t stream) {
    const uint64_t items = uint64_t(found.rows) * found.items;
    if (items > 0) {
        launchAfterPrevious(
                countsKernel, blocksOf(items), kThreads, 0, stream, found);
    }
    launchAfterPrevious(
            placesKernel,
            1,
            kSumThreads,
            0,
            stream,
            PlacesParams{found, limits});
}

void launchBitResults(
        const FoundBits& found,
        const SearchParams& params,
        const float* vectors,
        uint32_t first,
        uint32_t rows,
        idx_t before,
        float* distances,
        idx_t* ids,
        cudaStream_t stream) {
    ResultParams p;
    p.found = found;
    p.queries = params.queries;
    p.vectors = vectors;
    p.d = params.groups.d;
    p.firstItem = first * found.items;
    p.numItems = rows * found.items;
    p.before = before;
    p.distances = distances;
    p.ids = ids;
    if (p.numItems == 0) {
        return;
    }
    withMetric(params.groups.metric, [&](auto metric) {
        constexpr Metric kMetric = metric();
        withFewDims(p.d, [&](auto dims) {
            resultsKernel<kMetric, dims()>
                    <<<blocksOf(p.numItems), kThreads, 0, stream>>>(p);
        });
    });
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits::metric_space

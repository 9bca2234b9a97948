// Results of units, in ascending ids, to their places.

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/range/boxes/BoxScan.cuh"
#include "kernels/range/boxes/ByBoxes.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kBlocksEach = 8; // a multiprocessor
constexpr uint32_t kEach = kListedResults / kThreads;

/// A result on its way: its id within the chunk, and the bits of its distance.
using Listed = uint2;

__device__ __forceinline__ Listed listedOf(uint32_t id, float distance) {
    return make_uint2(id, __float_as_uint(distance));
}

/// Of a unit, to place `rank` of it.
__device__ __forceinline__ void store(
        const BoxSearch& s,
        int64_t first,
        uint32_t chunk,
        uint32_t rank,
        Listed result) {
    s.distances[first + rank] = __uint_as_float(result.y);
    s.ids[first + rank] = idx_t(chunk) * s.boxes.chunkIds + result.x;
}

/// take(mask, isIn, id, distance) for the vectors of boxes with one in range.
template <Metric kMetric, int kDims, class Take>
__device__ __forceinline__ void scanFound(
        const BoxSearch& s,
        const BoxQuery<kMetric, kDims>& query,
        uint32_t chunk,
        uint32_t warp,
        uint32_t warps,
        BoxQueue& queue,
        const Take& take) {
    scanBoxes<false, true>(
            s,
            query,
            chunk,
            warp,
            warps,
            queue,
            [](bool) {},
            [&](const float(&x)[kDims], uint32_t id) {
                float distance = 0;
                const bool isIn = query.has(x, distance) &&
                        (!s.allowedBits || isAllowed(s, chunk, id));
                const uint32_t mask = __ballot_sync(kAllLanes, isIn);
                if (mask) {
                    take(mask, isIn, id, distance);
                }
            });
}

/// Results of a warp's unit. Places behind the last have ids above all others.
struct FewList {
    uint4 ids[kFewResults / 4];
    float distances[kFewResults];
};

/// Units with few results: a warp each, which counts how many are before each.
template <Metric kMetric, int kDims>
__global__ void __launch_bounds__(kThreads) fewKernel(BoxSearch s) {
    __shared__ FewList lists[kWarps];
    __shared__ BoxQueue queues[kWarps];
    const uint32_t lane = threadIdx.x % 32;
    FewList& list = lists[threadIdx.x / 32];
    uint32_t* ids = reinterpret_cast<uint32_t*>(list.ids);
    const uint32_t chunks = s.boxes.numChunks;
    const uint32_t count = s.listed[0];
    for (uint32_t i = blockIdx.x * kWarps + threadIdx.x / 32; i < count;
         i += gridDim.x * kWarps) {
        const uint32_t unit = s.units[i];
        const uint32_t chunk = unit % chunks;
        const auto query = loadQuery<kMetric, kDims>(s, unit / chunks);
        uint32_t size = 0;
        scanFound(
                s,
                query,
                chunk,
                0,
                1,
                queues[threadIdx.x / 32],
                [&](uint32_t mask, bool isIn, uint32_t id, float distance) {
                    if (isIn) {
                        const uint32_t place =
                                size + __popc(mask & lanesBefore());
                        ids[place] = id;
                        list.distances[place] = distance;
                    }
                    size += __popc(mask);
                });
        const uint32_t fours = (size + 3) / 4;
        if (size + lane < 4 * fours) {
            ids[size + lane] = ~0u;
        }
        __syncwarp();
        const int64_t first = s.offsets[unit] - s.offsets[s.firstUnit];
        for (uint32_t from = 0; from < size; from += 64) {
            // Two a lane, for which the list is read once.
            const uint32_t at[2] = {from + lane, from + 32 + lane};
            const uint32_t own[2] = {
                    at[0] < size ? ids[at[0]] : 0,
                    at[1] < size ? ids[at[1]] : 0};
            uint32_t ranks[2] = {};
            for (uint32_t j = 0; j < fours; ++j) {
                const uint4 four = list.ids[j];
#pragma unroll
                for (int k = 0; k < 2; ++k) {
                    ranks[k] += (four.x < own[k]) + (four.y < own[k]) +
                            (four.z < own[k]) + (four.w < own[k]);
                }
            }
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                if (at[k] < size) {
                    store(s,
                          first,
                          chunk,
                          ranks[k],
                          listedOf(own[k], list.distances[at[k]]));
                }
            }
        }
        __syncwarp();
    }
}

/// What a block has in shared memory beside the bits.
struct ManyShared {
    BoxQueue queues[kWarps];
    Listed list[kListedResults];
    uint32_t totals[kWarps]; // of the warps' words
    uint32_t starts[kWarps]; // results of the warps before
    uint32_t size;
};

/// Which bit of a word is its n-th, from 0; it has more than n.
__device__ __forceinline__ uint32_t nthBit(uint32_t word, uint32_t n) {
    uint32_t at = 0;
#pragma unroll
    for (uint32_t width = 16; width > 0; width /= 2) {
        const uint32_t low = __popc(word & ((1u << width) - 1));
        if (n >= low) {
            n -= low;
            word >>= width;
            at += width;
        }
    }
    return at;
}

/// The results that a warp's words have: each lane finds one of 32 in a row,
/// and its distance again. first: of them all.
template <Metric kMetric, int kDims>
__device__ __forceinline__ void storeBits(
        const BoxSearch& s,
        const BoxQuery<kMetric, kDims>& query,
        uint32_t chunk,
        const uint32_t* bits,
        uint32_t begin,
        uint32_t end,
        int64_t first) {
    const uint32_t lane = threadIdx.x % 32;
    const int d = s.boxes.shape.d;
    for (uint32_t base = begin; base < end; base += 32) {
        const uint32_t word = base + lane < end ? bits[base + lane] : 0;
        const uint32_t own = __popc(word);
        uint32_t upTo = own;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const uint32_t before = __shfl_up_sync(kAllLanes, upTo, step);
            upTo += lane >= step ? before : 0;
        }
        const uint32_t total = __shfl_sync(kAllLanes, upTo, 31);
        for (uint32_t from = 0; from < total; from += 32) {
            const uint32_t rank = from + lane;
            // The first lane whose sum is above the rank.
            uint32_t owner = 0;
#pragma unroll
            for (int step = 16; step > 0; step /= 2) {
                const uint32_t sum =
                        __shfl_sync(kAllLanes, upTo, owner + step - 1);
                owner += sum <= rank ? step : 0;
            }
            const uint32_t theirs = __shfl_sync(kAllLanes, word, owner);
            const uint32_t before = __shfl_sync(kAllLanes, upTo - own, owner);
            if (rank < total) {
                const uint32_t id =
                        (base + owner) * 32 + nthBit(theirs, rank - before);
                const float* x = s.boxes.rows +
                        (int64_t(chunk) * s.boxes.chunkIds + id) * d;
                const float distance = distanceTo<kMetric>(
                        query.q, [&](int c) { return c < d ? x[c] : 0.0f; });
                store(s, first, chunk, rank, listedOf(id, distance));
            }
        }
        first += total;
    }
}

/// Units with many results: a block each. A bit for every id of the chunk says
/// how many are before it.
template <Metric kMetric, int kDims>
__global__ void __launch_bounds__(kThreads, 4) manyKernel(BoxSearch s) {
    extern __shared__ uint4 bitMemory[];
    __shared__ ManyShared shared;
    const uint32_t words = s.boxes.chunkIds / 32;
    uint32_t* bits = reinterpret_cast<uint32_t*>(bitMemory);
    uint32_t* before = bits + words; // [words / 4]
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t warp = threadIdx.x / 32;
    const uint32_t chunks = s.boxes.numChunks;
    const uint32_t all = s.rows * chunks;
    const uint32_t count = s.listed[1];
    const uint32_t wordsEach = words / kWarps; // chunks are that large
    const uint32_t begin = warp * wordsEach;
    const uint32_t end = begin + wordsEach;
    for (uint32_t i = blockIdx.x; i < count; i += gridDim.x) {
        const uint32_t unit = s.units[all - 1 - i];
        const uint32_t chunk = unit % chunks;
        const bool isListed = s.counts[unit] <= kListedResults;
        const auto query = loadQuery<kMetric, kDims>(s, unit / chunks);
        for (uint32_t w = threadIdx.x; w < words / 4; w += kThreads) {
            bitMemory[w] = make_uint4(0, 0, 0, 0);
        }
        if (threadIdx.x == 0) {
            shared.size = 0;
        }
        __syncthreads();
        scanFound(
                s,
                query,
                chunk,
                warp,
                kWarps,
                shared.queues[warp],
                [&](uint32_t mask, bool isIn, uint32_t id, float distance) {
                    uint32_t place = 0;
                    if (isListed) {
                        if (lane == 0) {
                            place = atomicAdd(&shared.size, __popc(mask));
                        }
                        place = __shfl_sync(kAllLanes, place, 0) +
                                __popc(mask & lanesBefore());
                    }
                    if (isIn) {
                        atomicOr(bits + id / 32, 1u << id % 32);
                        if (isListed) {
                            shared.list[place] = listedOf(id, distance);
                        }
                    }
                });
        __syncthreads();
        uint32_t total = 0;
        for (uint32_t w = begin / 4 + lane; w < end / 4; w += 32) {
            const uint4 four = bitMemory[w];
            const uint32_t own = __popc(four.x) + __popc(four.y) +
                    __popc(four.z) + __popc(four.w);
            uint32_t upTo = own;
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                const uint32_t sum = __shfl_up_sync(kAllLanes, upTo, step);
                upTo += lane >= step ? sum : 0;
            }
            before[w] = total + upTo - own;
            total += __shfl_sync(kAllLanes, upTo, 31);
        }
        if (lane == 0) {
            shared.totals[warp] = total;
        }
        __syncthreads();
        if (warp == 0) {
            for (uint32_t w = 0; lane == 0 && w < kWarps; ++w) {
                shared.starts[w] = w == 0
                        ? 0
                        : shared.starts[w - 1] + shared.totals[w - 1];
            }
        }
        __syncthreads();
        const int64_t first = s.offsets[unit] - s.offsets[s.firstUnit];
        if (!isListed) {
            storeBits(
                    s,
                    query,
                    chunk,
                    bits,
                    begin,
                    end,
                    first + shared.starts[warp]);
            __syncthreads(); // bits are read
            continue;
        }
        // Of the list to registers, and back to where it belongs.
        Listed own[kEach];
        uint32_t ranks[kEach];
        const uint32_t size = shared.size;
#pragma unroll
        for (uint32_t j = 0; j < kEach; ++j) {
            const uint32_t at = j * kThreads + threadIdx.x;
            if (at < size) {
                own[j] = shared.list[at];
                const uint32_t word = own[j].x / 32;
                uint32_t rank = before[word / 4];
                for (uint32_t w = word / 4 * 4; w < word; ++w) {
                    rank += __popc(bits[w]);
                }
                rank += __popc(bits[word] & ((1u << own[j].x % 32) - 1));
                ranks[j] = rank + shared.starts[word / wordsEach];
            }
        }
        __syncthreads();
#pragma unroll
        for (uint32_t j = 0; j < kEach; ++j) {
            if (j * kThreads + threadIdx.x < size) {
                shared.list[ranks[j]] = own[j];
            }
        }
        __syncthreads();
        for (uint32_t at = threadIdx.x; at < size; at += kThreads) {
            store(s, first, chunk, at, shared.list[at]);
        }
        __syncthreads();
    }
}

} // namespace

void launchBoxResults(
        const BoxSearch& s,
        int multiprocessors,
        cudaStream_t stream) {
    const uint64_t units = s.lastUnit - s.firstUnit;
    const uint64_t most = uint64_t(multiprocessors) * kBlocksEach;
    const unsigned few =
            unsigned(std::min<uint64_t>((units + kWarps - 1) / kWarps, most));
    const unsigned many = unsigned(std::min<uint64_t>(units, most));
    const uint32_t words = s.boxes.chunkIds / 32;
    const size_t bytes = (size_t(words) + words / 4) * sizeof(uint32_t);
    withBoxes(s.boxes, [&]<Metric kMetric, int kDims>() {
        fewKernel<kMetric, kDims><<<few, kThreads, 0, stream>>>(s);
        BITS_CUDA_CHECK(cudaGetLastError());
        allowSharedBytes(
                manyKernel<kMetric, kDims>, bytes + sizeof(ManyShared));
        manyKernel<kMetric, kDims><<<many, kThreads, bytes, stream>>>(s);
        BITS_CUDA_CHECK(cudaGetLastError());
    });
}

} // namespace faiss_bits

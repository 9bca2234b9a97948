// Results of units with many of them, in ascending ids, to their places.

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/range/boxes/BoxResults.cuh"
#include "kernels/range/boxes/ByBoxes.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kBlocksEach = 16; // a multiprocessor
/// Results of a unit up to which they are listed in shared memory.
constexpr uint32_t kListedResults = 4096;
constexpr uint32_t kEach = kListedResults / kThreads;
/// Ids that are counted together, beside a bit for each.
constexpr uint32_t kGroupIds = 128;
/// Large boxes that are looked into at a time: all of their boxes have room.
constexpr uint32_t kLargeAtATime = 64;

/// What a block has in shared memory, and behind it ManyArrays.
struct ManyShared {
    uint32_t ids[kListedResults]; // slots first
    float distances[kListedResults];
    uint32_t queue[kLargeAtATime * kLargeBoxes]; // boxes that are touched
    uint32_t totals[kWarps];
    uint32_t size;      // of the list
    uint32_t touched;   // large boxes
    uint32_t queued[2]; // boxes, in turns
};

struct ManyArrays {
    uint4* bits;      // [groups] a bit for every id of the chunk
    uint32_t* counts; // [groups] of bits, then how many are before
    uint32_t* large;  // [large boxes of the chunk] that are touched

    static __host__ __device__ size_t bytes(uint32_t chunkIds) {
        return size_t(chunkIds) / kGroupIds *
                (sizeof(uint4) + sizeof(uint32_t)) +
                size_t(chunkIds) / (kBoxVectors * kLargeBoxes) *
                sizeof(uint32_t);
    }

    __device__ __forceinline__ ManyArrays(uint4* memory, uint32_t chunkIds)
            : bits(memory),
              counts(reinterpret_cast<uint32_t*>(
                      memory + chunkIds / kGroupIds)),
              large(counts + chunkIds / kGroupIds) {}

    __device__ __forceinline__ uint32_t* words() const {
        return reinterpret_cast<uint32_t*>(bits);
    }

    __device__ __forceinline__ void add(uint32_t id) const {
        atomicOr(words() + id / 32, 1u << id % 32);
        atomicAdd(counts + id / kGroupIds, 1u);
    }

    /// How many are before, once counts are sums.
    __device__ __forceinline__ uint32_t rankOf(uint32_t id) const {
        const uint32_t group = id / kGroupIds;
        const uint4 four = bits[group];
        const uint32_t word = id / 32 % 4;
        const uint32_t below = (1u << id % 32) - 1;
        const auto of = [&](uint32_t value, uint32_t at) {
            return __popc(at < word ? value : at == word ? value & below : 0u);
        };
        return counts[group] + of(four.x, 0) + of(four.y, 1) + of(four.z, 2) +
                of(four.w, 3);
    }
};

/// Appends with one atomic operation for a warp: where the lanes of the mask
/// go.
__device__ __forceinline__ uint32_t reserve(uint32_t* size, uint32_t count) {
    uint32_t place = 0;
    if (threadIdx.x % 32 == 0) {
        place = atomicAdd(size, count);
    }
    return __shfl_sync(kAllLanes, place, 0);
}

/// take(some, bits) for all boxes that are touched, bits as findIn's, by all
/// warps of a block, which share the boxes evenly. Ends with a barrier;
/// shared.touched and shared.queued must be zero, and the second of these is
/// left so.
template <Metric kMetric, int kDims, class Take>
__device__ __forceinline__ void scanByBlock(
        const BoxSearch& s,
        const BoxQuery<kMetric, kDims>& query,
        uint32_t chunk,
        ManyShared& shared,
        const ManyArrays& arrays,
        const Take& take) {
    const RangeBoxes& boxes = s.boxes;
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t warp = threadIdx.x / 32;
    const uint32_t first = firstLargeOf(boxes, chunk);
    const uint32_t count = largeOfChunk(boxes, chunk);
    for (uint32_t base = 0; base < count; base += kThreads) {
        const uint32_t own = base + threadIdx.x;
        bool touches = false;
        if (own < count) {
            const auto b = boundsOfLarge<kDims>(boxes, first + own);
            touches = query.mayTouch(b.least, b.greatest);
        }
        const uint32_t mask = __ballot_sync(kAllLanes, touches);
        if (mask) {
            const uint32_t place = reserve(&shared.touched, __popc(mask));
            if (touches) {
                arrays.large[place + __popc(mask & lanesBefore())] =
                        first + own;
            }
        }
    }
    __syncthreads();
    const uint32_t touched = shared.touched;
    uint32_t turn = 0;
    for (uint32_t base = 0; base < touched; base += kLargeAtATime) {
        const uint32_t end = min(touched, base + kLargeAtATime);
        for (uint32_t i = base + warp; i < end; i += kWarps) {
            const uint32_t large = arrays.large[i];
            const auto b = boundsOfBox<kDims>(boxes, large, lane);
            const bool isHit = query.mayTouch(b.least, b.greatest);
            const uint32_t mask = __ballot_sync(kAllLanes, isHit);
            if (mask) {
                const uint32_t place =
                        reserve(&shared.queued[turn], __popc(mask));
                if (isHit) {
                    shared.queue[place + __popc(mask & lanesBefore())] =
                            large * kLargeBoxes + lane;
                }
            }
        }
        __syncthreads();
        const uint32_t queued = shared.queued[turn];
        turn ^= 1;
        if (threadIdx.x == 0) {
            shared.queued[turn] = 0;
        }
        for (uint32_t at = warp * kBoxesAhead; at < queued;
             at += kWarps * kBoxesAhead) {
            const BoxVectors<kDims> some(boxes, shared.queue + at, queued - at);
            take(some, findIn<true>(s, query, chunk, some));
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        shared.touched = 0;
        shared.queued[0] = 0;
        shared.queued[1] = 0;
    }
}

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
/// and its distance. first: of them all.
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
        const uint32_t upTo = lanesSum(own);
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
                storeResult(s, first + rank, chunk, id, distance);
            }
        }
        first += total;
    }
}

/// counts [groups] to sums of those before. Begins and ends with a barrier.
__device__ __forceinline__ void sumCounts(
        uint32_t* counts,
        uint32_t groups,
        uint32_t* totals) {
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t warp = threadIdx.x / 32;
    const uint32_t each = (groups + kThreads - 1) / kThreads;
    const uint32_t begin = min(threadIdx.x * each, groups);
    const uint32_t end = min(begin + each, groups);
    __syncthreads();
    uint32_t own = 0;
    for (uint32_t g = begin; g < end; ++g) {
        own += counts[g];
    }
    const uint32_t upTo = lanesSum(own);
    if (lane == 31) {
        totals[warp] = upTo;
    }
    __syncthreads();
    uint32_t before = upTo - own +
            __reduce_add_sync(kAllLanes, lane < warp ? totals[lane] : 0);
    for (uint32_t g = begin; g < end; ++g) {
        const uint32_t count = counts[g];
        counts[g] = before;
        before += count;
    }
    __syncthreads();
}

/// Results that are listed: to registers, and back to where they belong.
template <Metric kMetric, int kDims>
__device__ __forceinline__ void storeListed(
        const BoxSearch& s,
        const BoxQuery<kMetric, kDims>& query,
        uint32_t chunk,
        uint32_t size,
        int64_t first,
        ManyShared& shared,
        const ManyArrays& arrays) {
    const uint32_t groups = s.boxes.chunkIds / kGroupIds;
    uint32_t ids[kEach];
    float distances[kEach];
#pragma unroll
    for (uint32_t j = 0; j < kEach; ++j) {
        const uint32_t at = j * kThreads + threadIdx.x;
        if (at < size) {
            const uint32_t slot = shared.ids[at];
            ids[j] = s.boxes.ids[slot];
            distances[j] = slotDistance(s.boxes, query, slot);
            arrays.add(ids[j]);
        }
    }
    if (threadIdx.x == 0) {
        shared.size = 0;
    }
    sumCounts(arrays.counts, groups, shared.totals);
#pragma unroll
    for (uint32_t j = 0; j < kEach; ++j) {
        if (j * kThreads + threadIdx.x < size) {
            const uint32_t rank = arrays.rankOf(ids[j]);
            shared.ids[rank] = ids[j];
            shared.distances[rank] = distances[j];
        }
    }
    __syncthreads();
#pragma unroll
    for (uint32_t j = 0; j < kEach; ++j) {
        const uint32_t at = j * kThreads + threadIdx.x;
        if (at < size) {
            storeResult(
                    s, first + at, chunk, shared.ids[at], shared.distances[at]);
            arrays.words()[ids[j] / 32] = 0;
        }
    }
    for (uint32_t g = threadIdx.x; g < groups; g += kThreads) {
        arrays.counts[g] = 0;
    }
    __syncthreads();
}

/// A block a unit. A bit for every id of the chunk, and sums of them, say how
/// many results are before it.
template <Metric kMetric, int kDims>
__global__ void __launch_bounds__(kThreads, 2) manyKernel(BoxSearch s) {
    extern __shared__ uint4 memory[];
    __shared__ ManyShared shared;
    const ManyArrays arrays(memory, s.boxes.chunkIds);
    const uint32_t groups = s.boxes.chunkIds / kGroupIds;
    const uint32_t chunks = s.boxes.numChunks;
    const uint32_t last = s.rows * chunks - 1;
    const auto clear = [&] {
        for (uint32_t g = threadIdx.x; g < groups; g += kThreads) {
            arrays.bits[g] = make_uint4(0, 0, 0, 0);
            arrays.counts[g] = 0;
        }
        __syncthreads();
    };
    if (threadIdx.x == 0) {
        shared.size = 0;
        shared.touched = 0;
        shared.queued[0] = 0;
        shared.queued[1] = 0;
    }
    clear();
    const BlockShare share(s.listed[1]);
    for (uint32_t i = share.begin; i < share.end; ++i) {
        const uint32_t unit = s.units[last - i];
        const uint32_t chunk = unit % chunks;
        const uint32_t size = s.counts[unit];
        const int64_t first = s.offsets[unit] - s.offsets[s.firstUnit];
        const auto query = loadQuery<kMetric, kDims>(s, unit / chunks);
        const bool isListed = size <= kListedResults;
        scanByBlock(
                s,
                query,
                chunk,
                shared,
                arrays,
                [&](const BoxVectors<kDims>& some, uint32_t bits) {
                    if (!isListed) {
                        for (; bits; bits &= bits - 1) {
                            const uint32_t j = __ffs(int(bits)) - 1;
                            arrays.add(s.boxes.ids[some.slot(j)]);
                        }
                        return;
                    }
                    const uint32_t all = __reduce_add_sync(
                            kAllLanes, uint32_t(__popc(bits)));
                    if (all == 0) {
                        return;
                    }
                    uint32_t place = reserve(&shared.size, all);
#pragma unroll
                    for (uint32_t j = 0; j < kBoxesAhead; ++j) {
                        const bool isIn = bits >> j & 1;
                        const uint32_t mask = __ballot_sync(kAllLanes, isIn);
                        if (isIn) {
                            shared.ids[place + __popc(mask & lanesBefore())] =
                                    some.slot(j);
                        }
                        place += __popc(mask);
                    }
                });
        if (isListed) {
            storeListed(s, query, chunk, size, first, shared, arrays);
            continue;
        }
        sumCounts(arrays.counts, groups, shared.totals);
        const uint32_t wordsEach = groups * 4 / kWarps; // chunks are that large
        const uint32_t begin = threadIdx.x / 32 * wordsEach;
        storeBits(
                s,
                query,
                chunk,
                arrays.words(),
                begin,
                begin + wordsEach,
                first + arrays.counts[begin / 4]);
        __syncthreads(); // bits are read
        clear();
    }
}

} // namespace

void launchManyBoxResults(
        const BoxSearch& s,
        int multiprocessors,
        cudaStream_t stream) {
    const uint64_t units = s.lastUnit - s.firstUnit;
    const unsigned blocks =
            unsigned(std::min(units, uint64_t(multiprocessors) * kBlocksEach));
    const size_t bytes = ManyArrays::bytes(s.boxes.chunkIds);
    withBoxes(s.boxes, [&]<Metric kMetric, int kDims>() {
        allowSharedBytes(
                manyKernel<kMetric, kDims>, bytes + sizeof(ManyShared));
        manyKernel<kMetric, kDims><<<blocks, kThreads, bytes, stream>>>(s);
    });
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits

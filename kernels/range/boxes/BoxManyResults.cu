// Results of units with many of them, in ascending ids, to their places.

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/range/boxes/BoxManyArrays.cuh"
#include "kernels/range/boxes/BoxResults.cuh"
#include "kernels/range/boxes/ByBoxes.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
/// Of a thread, whose reads are under way at a time.
constexpr int kAtATime = 2;
/// Results of a unit up to which they are listed in shared memory.
constexpr uint32_t kListedResults = 4096;
constexpr uint32_t kEach = kListedResults / kThreads;
/// Large boxes that are looked into at a time: all of their boxes have room.
constexpr uint32_t kLargeAtATime = 64;

/// What a block has in shared memory, and behind it ManyArrays.
struct ManyShared {
    uint32_t ids[kListedResults];                // slots first
    uint32_t distances[kListedResults];          // their bits
    uint32_t queue[kLargeAtATime * kLargeBoxes]; // boxes that are touched
    uint32_t totals[kWarps];
    uint32_t size;      // of the list
    uint32_t touched;   // large boxes
    uint32_t queued[2]; // boxes, in turns
};

static_assert(
        sizeof(ManyShared) + ManyArrays::bytes(kMostChunkIds) <= 99 * 1024,
        "what a block has on every GPU from 8.0 on");

/// Appends with one atomic operation for a warp: the first of `count` places,
/// the same in every lane.
__device__ __forceinline__ uint32_t reserve(uint32_t* size, uint32_t count) {
    uint32_t place = 0;
    if (threadIdx.x % 32 == 0) {
        place = atomicAdd(size, count);
    }
    return __shfl_sync(kAllLanes, place, 0);
}

/// take(some, bits) for all boxes that are touched, bits as findIn's, by all
/// warps of a block, which share the boxes evenly. shared.touched and
/// shared.queued must be zero. They are left so behind the last barrier: there
/// is one more before the next call.
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
        const uint32_t upTo = sumUpToLane(own);
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
                storeResult(
                        s,
                        first + rank,
                        chunk,
                        make_uint2(id, __float_as_uint(distance)));
            }
        }
        first += total;
    }
}

/// Results that are listed: to registers, and back to where they belong.
template <Metric kMetric, int kDims>
__device__ __forceinline__ void storeListed(
        const BoxSearch& s,
        const BoxQuery<kMetric, kDims>& query,
        uint32_t chunk,
        uint32_t unit,
        uint32_t size,
        ManyShared& shared,
        const ManyArrays& arrays) {
    const uint32_t groups = s.boxes.chunkIds / kGroupIds;
    Found found[kEach / kAtATime][kAtATime];
    const auto forOwn = [&](const auto& body) {
#pragma unroll
        for (uint32_t j = 0; j < kEach; ++j) {
            const uint32_t at = j * kThreads + threadIdx.x;
            if (at < size) {
                body(at, found[j / kAtATime][j % kAtATime]);
            }
        }
    };
#pragma unroll
    for (uint32_t i = 0; i < kEach / kAtATime; ++i) {
        uint32_t slots[kAtATime];
        bool isOwn[kAtATime];
#pragma unroll
        for (uint32_t j = 0; j < kAtATime; ++j) {
            const uint32_t at = (i * kAtATime + j) * kThreads + threadIdx.x;
            isOwn[j] = at < size;
            slots[j] = isOwn[j] ? shared.ids[at] : 0;
        }
        loadFound(s.boxes, query, slots, isOwn, found[i]);
    }
    forOwn([&](uint32_t, const Found& own) { arrays.add(own.x); });
    if (threadIdx.x == 0) {
        shared.size = 0;
    }
    const int64_t first = firstResult(s, unit);
    sumCounts<kThreads>(arrays.counts, groups, shared.totals);
    forOwn([&](uint32_t, const Found& own) {
        const uint32_t rank = arrays.rankOf(own.x);
        shared.ids[rank] = own.x;
        shared.distances[rank] = own.y;
    });
    __syncthreads();
    forOwn([&](uint32_t at, const Found& own) {
        storeResult(
                s,
                first + at,
                chunk,
                make_uint2(shared.ids[at], shared.distances[at]));
        arrays.words()[own.x / 32] = 0;
    });
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
                        uint32_t ids[kBoxesAhead];
#pragma unroll
                        for (uint32_t j = 0; j < kBoxesAhead; ++j) {
                            if (bits >> j & 1) {
                                ids[j] = s.boxes.ids[some.slot(j)];
                            }
                        }
#pragma unroll
                        for (uint32_t j = 0; j < kBoxesAhead; ++j) {
                            if (bits >> j & 1) {
                                arrays.set(ids[j]);
                            }
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
            storeListed(s, query, chunk, unit, size, shared, arrays);
            continue;
        }
        for (uint32_t g = threadIdx.x; g < groups; g += kThreads) {
            arrays.count(g);
        }
        sumCounts<kThreads>(arrays.counts, groups, shared.totals);
        const uint32_t wordsEach = groups * 4 / kWarps; // chunks are that large
        const uint32_t begin = threadIdx.x / 32 * wordsEach;
        storeBits(
                s,
                query,
                chunk,
                arrays.words(),
                begin,
                begin + wordsEach,
                firstResult(s, unit) + arrays.counts[begin / 4]);
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
    const unsigned blocks = boxBlocks(units, 1, multiprocessors);
    const size_t bytes = ManyArrays::bytes(s.boxes.chunkIds);
    int device = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    withBoxes(s.boxes, [&]<Metric kMetric, int kDims>() {
        // The limit is for what comes beside ManyShared; with it there may be
        // more than every kernel has.
        raiseSharedLimit(
                reinterpret_cast<const void*>(manyKernel<kMetric, kDims>),
                device,
                bytes);
        manyKernel<kMetric, kDims><<<blocks, kThreads, bytes, stream>>>(s);
    });
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits

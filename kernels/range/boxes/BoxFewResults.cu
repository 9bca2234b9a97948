// Results of units with few of them, in ascending ids, to their places.

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/range/boxes/BoxResults.cuh"
#include "kernels/range/boxes/ByBoxes.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
/// Results of a lane whose reads are under way at a time.
constexpr int kAtATime = 2;

/// Parts of the ids of a unit, where there are more results than lanes.
constexpr uint32_t kBuckets = kQueuedBoxes;
constexpr int kBucketBits = 7;
static_assert(kBuckets == 1u << kBucketBits && kBuckets == 4 * 32);

/// What a warp has in shared memory: this, and behind those of all warps for
/// each of s.fewResults a Found and a number.
union FewShared {
    BoxQueue queue;
    uint32_t buckets[kBuckets];
    uint4 fours[kBuckets / 4];
};

constexpr size_t fewBytes(uint32_t results) {
    return kWarps *
            (sizeof(FewShared) + results * (sizeof(Found) + sizeof(uint32_t)));
}
static_assert(fewBytes(kMostFewResults) <= 99 * 1024);

/// Up to 32 results, a lane each, which counts how many are before its own.
__device__ __forceinline__ uint32_t rankOfLane(uint32_t id, uint32_t size) {
    uint32_t rank = 0;
    for (uint32_t j = 0; j < size; ++j) {
        rank += __shfl_sync(kAllLanes, id, int(j)) < id;
    }
    return rank;
}

/// Puts results in the order of buckets, so that few are compared with each:
/// found [size] in any order; numbers [size] come out as theirs in that order.
/// store(rank, found) is called with all of a warp's lanes, neighbours for
/// neighbours.
template <class Store>
__device__ __forceinline__ void rankFound(
        FewShared& shared,
        const Found* found,
        uint32_t* numbers,
        uint32_t size,
        uint32_t least,
        uint32_t greatest,
        const Store& store) {
    const uint32_t lane = threadIdx.x % 32;
    const int shift = max(0, 32 - __clz(int(greatest - least)) - kBucketBits);
    shared.fours[lane] = make_uint4(0, 0, 0, 0);
    __syncwarp();
    for (uint32_t at = lane; at < size; at += 32) {
        atomicAdd(&shared.buckets[(found[at].x - least) >> shift], 1u);
    }
    __syncwarp();
    const uint4 own = shared.fours[lane];
    const uint32_t all = own.x + own.y + own.z + own.w;
    uint32_t before = sumUpToLane(all) - all;
    shared.fours[lane] = make_uint4(
            before,
            before + own.x,
            before + own.x + own.y,
            before + own.x + own.y + own.z);
    __syncwarp();
    for (uint32_t at = lane; at < size; at += 32) {
        const uint32_t bucket = (found[at].x - least) >> shift;
        numbers[atomicAdd(&shared.buckets[bucket], 1u)] = at;
    }
    __syncwarp(); // buckets are where they end
    for (uint32_t at = lane; at < size; at += 32) {
        const Found mine = found[numbers[at]];
        const uint32_t bucket = (mine.x - least) >> shift;
        const uint32_t begin = bucket > 0 ? shared.buckets[bucket - 1] : 0;
        const uint32_t end = shared.buckets[bucket];
        uint32_t rank = begin;
        for (uint32_t k = begin; k < end; ++k) {
            rank += found[numbers[k]].x < mine.x;
        }
        store(rank, mine);
    }
}

/// A warp a unit.
template <Metric kMetric, int kDims>
__global__ void __launch_bounds__(kThreads, 2) fewKernel(BoxSearch s) {
    extern __shared__ uint4 memory[];
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t warp = threadIdx.x / 32;
    const uint32_t chunks = s.boxes.numChunks;
    FewShared* all = reinterpret_cast<FewShared*>(memory);
    Found* allFound = reinterpret_cast<Found*>(all + kWarps);
    FewShared& shared = all[warp];
    Found* found = allFound + warp * s.fewResults;
    uint32_t* slots =
            reinterpret_cast<uint32_t*>(allFound + kWarps * s.fewResults) +
            warp * s.fewResults;
    const BlockShare share(s.listed[0]);
    for (uint32_t i = share.begin + warp; i < share.end; i += kWarps) {
        const uint32_t unit = s.units[i];
        const uint32_t chunk = unit % chunks;
        const auto query = loadQuery<kMetric, kDims>(s, unit / chunks);
        uint32_t size = 0;
        scanBoxes<false>(
                s,
                query,
                chunk,
                0,
                1,
                shared.queue,
                [](bool) {},
                [&](const BoxVectors<kDims>& some) {
                    const uint32_t bits = findIn<true>(s, query, chunk, some);
#pragma unroll
                    for (uint32_t j = 0; j < kBoxesAhead; ++j) {
                        const bool isIn = bits >> j & 1;
                        const uint32_t mask = __ballot_sync(kAllLanes, isIn);
                        if (isIn) {
                            slots[size + __popc(mask & lanesBefore())] =
                                    some.slot(j);
                        }
                        size += __popc(mask);
                    }
                });
        const int64_t first = firstResult(s, unit);
        const auto store = [&](uint32_t rank, Found result) {
            storeResult(s, first + rank, chunk, result);
        };
        uint32_t least = ~0u;
        uint32_t greatest = 0;
        for (uint32_t from = lane; from < size; from += 32 * kAtATime) {
            uint32_t own[kAtATime];
            bool isOwn[kAtATime];
            Found some[kAtATime];
#pragma unroll
            for (int j = 0; j < kAtATime; ++j) {
                isOwn[j] = from + 32 * j < size;
                own[j] = isOwn[j] ? slots[from + 32 * j] : 0;
            }
            loadFound(s.boxes, query, own, isOwn, some);
#pragma unroll
            for (int j = 0; j < kAtATime; ++j) {
                if (isOwn[j]) {
                    found[from + 32 * j] = some[j];
                    least = min(least, some[j].x);
                    greatest = max(greatest, some[j].x);
                }
            }
        }
        __syncwarp();
        if (size <= 32) {
            const Found own = lane < size ? found[lane] : make_uint2(~0u, 0);
            const uint32_t rank = rankOfLane(own.x, size);
            if (lane < size) {
                store(rank, own);
            }
        } else {
            rankFound(
                    shared,
                    found,
                    slots,
                    size,
                    __reduce_min_sync(kAllLanes, least),
                    __reduce_max_sync(kAllLanes, greatest),
                    store);
        }
        __syncwarp();
    }
}

} // namespace

void launchFewBoxResults(
        const BoxSearch& s,
        int multiprocessors,
        cudaStream_t stream) {
    const uint64_t units = s.lastUnit - s.firstUnit;
    const unsigned blocks = boxBlocks(units, kWarps, multiprocessors);
    const size_t bytes = fewBytes(s.fewResults);
    withBoxes(s.boxes, [&]<Metric kMetric, int kDims>() {
        allowSharedBytes(fewKernel<kMetric, kDims>, bytes);
        fewKernel<kMetric, kDims><<<blocks, kThreads, bytes, stream>>>(s);
    });
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits

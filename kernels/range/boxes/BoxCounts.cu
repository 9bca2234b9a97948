// How many results each unit has.

#include "kernels/common/CudaCheck.h"
#include "kernels/range/boxes/BoxKeys.cuh"
#include "kernels/range/boxes/ByBoxes.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kCountThreads = 512;
constexpr int kCountWarps = kCountThreads / 32;

unsigned blocksOf(uint64_t threads) {
    return unsigned((threads + kThreads - 1) / kThreads);
}

template <Metric kMetric, int kDims, bool kWhole>
__global__ void __launch_bounds__(kCountThreads, 2)
        countsKernel(BoxSearch s, uint32_t warps) {
    __shared__ BoxQueue queues[kCountWarps];
    const uint32_t chunks = s.boxes.numChunks;
    const uint32_t lane = threadIdx.x % 32;
    const BlockShare share(s.rows * chunks * warps);
    for (uint32_t i = share.begin + threadIdx.x / 32; i < share.end;
         i += kCountWarps) {
        const uint32_t visit = i / warps;
        const uint32_t chunk = visit / s.rows;
        const uint32_t place = visit % s.rows;
        const uint32_t query = s.order ? s.order[place] : place;
        const auto own = loadQuery<kMetric, kDims>(s, query);
        uint32_t found = 0;
        scanBoxes<kWhole>(
                s,
                own,
                chunk,
                i % warps,
                warps,
                queues[threadIdx.x / 32],
                [&](bool isIn) { found += isIn ? kBoxVectors : 0; },
                [&](const BoxVectors<kDims>& some) {
                    found += __popc(findIn<!kWhole>(s, own, chunk, some));
                });
        found = __reduce_add_sync(kAllLanes, found);
        if (lane == 0) {
            uint32_t* count = s.counts + size_t(query) * chunks + chunk;
            if (warps == 1) {
                *count = found;
            } else if (found > 0) {
                atomicAdd(count, found);
            }
        }
    }
}

template <int kDims>
__global__ void __launch_bounds__(kThreads)
        queryKeysKernel(BoxSearch s, uint32_t* keys, uint32_t* numbers) {
    const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
    if (i < s.rows) {
        const auto own = loadQuery<Metric::L2, kDims>(s, i);
        keys[i] = uint32_t(mortonOf<kDims>(
                [&](int c) { return own.q[c]; },
                s.boxes.extent,
                s.boxes.shape.d,
                kBoxQueryBits));
        numbers[i] = i;
    }
}

__global__ void __launch_bounds__(kThreads)
        boundsKernel(BoxSearch s, int64_t* out) {
    const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
    if (i <= s.rows) {
        out[i] = s.offsets[size_t(i) * s.boxes.numChunks];
    }
}

/// A thread a unit, in the order of visits.
__global__ void __launch_bounds__(kThreads) unitsKernel(BoxSearch s) {
    const uint32_t chunks = s.boxes.numChunks;
    const uint32_t all = s.rows * chunks;
    const uint32_t visit = blockIdx.x * kThreads + threadIdx.x;
    const uint32_t lane = threadIdx.x % 32;
    uint32_t unit = 0;
    uint32_t count = 0;
    if (visit < all) {
        const uint32_t place = visit % s.rows;
        const uint32_t query = s.order ? s.order[place] : place;
        unit = query * chunks + visit / s.rows;
        if (unit >= s.firstUnit && unit < s.lastUnit) {
            count = s.counts[unit];
        }
    }
    const bool isFew = count > 0 && count <= s.fewResults;
    const bool isMany = count > s.fewResults;
    const uint32_t few = __ballot_sync(kAllLanes, isFew);
    const uint32_t many = __ballot_sync(kAllLanes, isMany);
    uint32_t first = 0;
    if (lane < 2) {
        const uint32_t own = __popc(lane == 0 ? few : many);
        first = own ? atomicAdd(s.listed + lane, own) : 0;
    }
    const uint32_t fewFirst = __shfl_sync(kAllLanes, first, 0);
    const uint32_t manyFirst = __shfl_sync(kAllLanes, first, 1);
    if (isFew) {
        s.units[fewFirst + __popc(few & lanesBefore())] = unit;
    }
    if (isMany) {
        s.units[all - 1 - (manyFirst + __popc(many & lanesBefore()))] = unit;
    }
}

} // namespace

void launchBoxQueryKeys(
        const BoxSearch& s,
        uint32_t* keys,
        uint32_t* numbers,
        cudaStream_t stream) {
    withBoxes(s.boxes, [&]<Metric kMetric, int kDims>() {
        queryKeysKernel<kDims>
                <<<blocksOf(s.rows), kThreads, 0, stream>>>(s, keys, numbers);
    });
    BITS_CUDA_CHECK(cudaGetLastError());
}

void launchBoxCounts(
        const BoxSearch& s,
        int warps,
        int multiprocessors,
        cudaStream_t stream) {
    const uint64_t all = uint64_t(s.rows) * s.boxes.numChunks * warps;
    const unsigned blocks = boxBlocks(all, kCountWarps, multiprocessors);
    withBoxes(s.boxes, [&]<Metric kMetric, int kDims>() {
        if (s.allowedBits) {
            countsKernel<kMetric, kDims, false>
                    <<<blocks, kCountThreads, 0, stream>>>(s, uint32_t(warps));
        } else {
            countsKernel<kMetric, kDims, true>
                    <<<blocks, kCountThreads, 0, stream>>>(s, uint32_t(warps));
        }
    });
    BITS_CUDA_CHECK(cudaGetLastError());
}

void launchBoxBounds(const BoxSearch& s, int64_t* out, cudaStream_t stream) {
    boundsKernel<<<blocksOf(uint64_t(s.rows) + 1), kThreads, 0, stream>>>(
            s, out);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void launchBoxUnits(const BoxSearch& s, cudaStream_t stream) {
    unitsKernel<<<
            blocksOf(uint64_t(s.rows) * s.boxes.numChunks),
            kThreads,
            0,
            stream>>>(s);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits

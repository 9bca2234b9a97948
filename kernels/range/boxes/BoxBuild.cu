// Makes boxes: a sort along a Z-order curve, chunk by chunk, and bounds.

#include <algorithm>

#include <cub/device/device_radix_sort.cuh>

#include "kernels/common/CudaCheck.h"
#include "kernels/device/Entry.cuh"
#include "kernels/range/boxes/BoxKeys.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
/// Of a key, below the chunk's number: the Morton number, and above it a bit
/// for what is in no box.
constexpr int kNumberBits = 47;

unsigned blocksOf(uint64_t threads) {
    return unsigned((threads + kThreads - 1) / kThreads);
}

int bitsFor(uint64_t count) {
    int bits = 0;
    while ((uint64_t(1) << bits) < count) {
        ++bits;
    }
    return bits;
}

__device__ __forceinline__ float infinity() {
    return __int_as_float(0x7f800000);
}

template <int kDims>
struct Row {
    float x[kDims];
    bool isFinite = true; // else it is in no range

    __device__ __forceinline__ Row(const float* rows, int d, uint32_t id) {
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            x[c] = c < d ? rows[int64_t(id) * d + c] : 0.0f;
            isFinite = isFinite && fabsf(x[c]) < infinity();
        }
    }
};

/// extent as ordered integers: [dims][least, greatest], of finite vectors.
template <int kDims>
__global__ void __launch_bounds__(kThreads)
        extentKernel(const float* rows, int d, uint32_t n, uint32_t* extent) {
    uint32_t least[kDims];
    uint32_t greatest[kDims];
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        least[c] = ~0u;
        greatest[c] = 0;
    }
    for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < n;
         i += gridDim.x * kThreads) {
        const Row<kDims> row(rows, d, i);
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            if (row.isFinite) {
                least[c] = min(least[c], orderedKey(row.x[c]));
                greatest[c] = max(greatest[c], orderedKey(row.x[c]));
            }
        }
    }
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        const uint32_t low = __reduce_min_sync(kAllLanes, least[c]);
        const uint32_t high = __reduce_max_sync(kAllLanes, greatest[c]);
        if (threadIdx.x % 32 == 0 && low <= high) {
            atomicMin(extent + 2 * c, low);
            atomicMax(extent + 2 * c + 1, high);
        }
    }
}

/// To floats; 0 and 0 where no vector is finite.
__global__ void extentEndKernel(const uint32_t* extent, int dims, float* out) {
    const int c = threadIdx.x;
    if (c < dims) {
        const bool isThere = extent[2 * c] <= extent[2 * c + 1];
        out[2 * c] = isThere ? keyValue(extent[2 * c]) : 0.0f;
        out[2 * c + 1] = isThere ? keyValue(extent[2 * c + 1]) : 0.0f;
    }
}

template <int kDims>
__global__ void __launch_bounds__(kThreads)
        keysKernel(RangeBoxes b, uint64_t* keys, uint32_t* ids) {
    const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= b.shape.n) {
        return;
    }
    const Row<kDims> row(b.rows, b.shape.d, i);
    const uint64_t number = !row.isFinite
            ? uint64_t(1) << kNumberBits
            : mortonOf<kDims>(
                      [&](int c) { return row.x[c]; },
                      b.extent,
                      b.shape.d,
                      kNumberBits);
    keys[i] = uint64_t(i / b.chunkIds) << (kNumberBits + 1) | number;
    ids[i] = i;
}

/// A warp a box: its vectors, and its bounds.
template <int kDims>
__global__ void __launch_bounds__(kThreads)
        boxesKernel(RangeBoxes b, const uint32_t* sorted) {
    const uint32_t box = blockIdx.x * kWarps + threadIdx.x / 32;
    if (box >= b.numLarge * kLargeBoxes) {
        return;
    }
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t slot = box * kBoxVectors + lane;
    const uint32_t id = slot < b.shape.n ? sorted[slot] : 0;
    const Row<kDims> row(b.rows, b.shape.d, id);
    const bool isThere = slot < b.shape.n && row.isFinite;
    const float nan = __int_as_float(0x7fffffff);
    float* x = b.components + size_t(box) * (kDims * kBoxVectors);
    float* bounds = b.boxes +
            size_t(box / kLargeBoxes) * (2 * kDims * kLargeBoxes) +
            box % kLargeBoxes;
    const uint32_t there = __ballot_sync(kAllLanes, isThere);
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        x[c * kBoxVectors + lane] = isThere ? row.x[c] : nan;
        const uint32_t least = __reduce_min_sync(
                kAllLanes, isThere ? orderedKey(row.x[c]) : ~0u);
        const uint32_t greatest = __reduce_max_sync(
                kAllLanes, isThere ? orderedKey(row.x[c]) : 0u);
        if (lane == 0) {
            // An empty box is nowhere near.
            bounds[2 * c * kLargeBoxes] = there ? keyValue(least) : infinity();
            bounds[(2 * c + 1) * kLargeBoxes] =
                    there ? keyValue(greatest) : infinity();
        }
    }
    b.ids[slot] = id - slot / b.chunkIds * b.chunkIds;
    if (lane == 0 && there == kAllLanes) {
        atomicOr(b.full + box / kLargeBoxes, 1u << box % kLargeBoxes);
    }
}

/// The bounds of 32 boxes together, a warp each: of `parts`, to `wholes`.
template <int kDims>
__global__ void __launch_bounds__(kThreads)
        wholesKernel(const float* parts, float* wholes, uint32_t count) {
    const uint32_t whole = blockIdx.x * kWarps + threadIdx.x / 32;
    if (whole >= count) {
        return;
    }
    const uint32_t lane = threadIdx.x % 32;
    const BoxBounds<kDims> own(
            parts + size_t(whole) * (2 * kDims * kLargeBoxes), lane);
    float* bounds = wholes +
            size_t(whole / kLargeBoxes) * (2 * kDims * kLargeBoxes) +
            whole % kLargeBoxes;
    const bool isThere = own.least[0] < infinity(); // else it is empty
    const uint32_t there = __ballot_sync(kAllLanes, isThere);
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        const uint32_t least = __reduce_min_sync(
                kAllLanes, isThere ? orderedKey(own.least[c]) : ~0u);
        const uint32_t greatest = __reduce_max_sync(
                kAllLanes, isThere ? orderedKey(own.greatest[c]) : 0u);
        if (lane == 0) {
            bounds[2 * c * kLargeBoxes] = there ? keyValue(least) : infinity();
            bounds[(2 * c + 1) * kLargeBoxes] =
                    there ? keyValue(greatest) : infinity();
        }
    }
}

struct BuildScratch {
    uint32_t* extent;
    uint64_t* keys[2];
    uint32_t* ids[2];
    void* temp;
    size_t tempBytes = 0;

    BuildScratch(idx_t n, WorkspaceSlices& slices) {
        extent = slices.take<uint32_t>(2 * kMostBoxDims);
        for (int i = 0; i < 2; ++i) {
            keys[i] = slices.take<uint64_t>(size_t(n));
            ids[i] = slices.take<uint32_t>(size_t(n));
        }
        cub::DoubleBuffer<uint64_t> k;
        cub::DoubleBuffer<uint32_t> v;
        BITS_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(
                nullptr, tempBytes, k, v, int(n)));
        temp = slices.take<uint8_t>(tempBytes);
    }
};

template <int kDims>
void build(const RangeBoxes& b, BuildScratch& s, cudaStream_t stream) {
    const uint32_t n = uint32_t(b.shape.n);
    for (int c = 0; c < kMostBoxDims; ++c) {
        BITS_CUDA_CHECK(cudaMemsetAsync(
                s.extent + 2 * c, 0xFF, sizeof(uint32_t), stream));
        BITS_CUDA_CHECK(cudaMemsetAsync(
                s.extent + 2 * c + 1, 0, sizeof(uint32_t), stream));
    }
    extentKernel<kDims><<<std::min(blocksOf(n), 1024u), kThreads, 0, stream>>>(
            b.rows, b.shape.d, n, s.extent);
    BITS_CUDA_CHECK(cudaGetLastError());
    extentEndKernel<<<1, 32, 0, stream>>>(s.extent, kDims, b.extent);
    BITS_CUDA_CHECK(cudaGetLastError());
    keysKernel<kDims>
            <<<blocksOf(n), kThreads, 0, stream>>>(b, s.keys[0], s.ids[0]);
    BITS_CUDA_CHECK(cudaGetLastError());
    cub::DoubleBuffer<uint64_t> keys(s.keys[0], s.keys[1]);
    cub::DoubleBuffer<uint32_t> ids(s.ids[0], s.ids[1]);
    BITS_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(
            s.temp,
            s.tempBytes,
            keys,
            ids,
            int(n),
            0,
            kNumberBits + 1 + bitsFor(b.numChunks),
            stream));
    BITS_CUDA_CHECK(
            cudaMemsetAsync(b.full, 0, b.numLarge * sizeof(uint32_t), stream));
    boxesKernel<kDims>
            <<<blocksOf(uint64_t(b.numLarge) * kLargeBoxes * kBoxVectors),
               kThreads,
               0,
               stream>>>(b, ids.Current());
    BITS_CUDA_CHECK(cudaGetLastError());
    const auto joinBoxes = [&](const float* parts,
                               float* wholes,
                               uint32_t count) {
        wholesKernel<kDims>
                <<<blocksOf(uint64_t(count) * 32), kThreads, 0, stream>>>(
                        parts, wholes, count);
        BITS_CUDA_CHECK(cudaGetLastError());
    };
    joinBoxes(b.boxes, b.large, b.numLarge);
    joinBoxes(b.large, b.huge, b.numLarge / kLargeBoxes);
}

} // namespace

size_t rangeBoxesScratchBytes(const RangeBoxesShape& shape) {
    WorkspaceSlices slices;
    BuildScratch(shape.n, slices);
    return slices.used();
}

void runRangeBoxes(
        const RangeBoxes& boxes,
        Workspace scratch,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(
            boxes.rows && boxes.components,
            "boxes have no memory: rows or components is a null pointer");
    WorkspaceSlices slices(scratch);
    BuildScratch s(boxes.shape.n, slices);
    if (boxes.dims == 3) {
        build<3>(boxes, s, stream);
    } else {
        build<4>(boxes, s, stream);
    }
}

} // namespace faiss_bits

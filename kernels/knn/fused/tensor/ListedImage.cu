#include "kernels/knn/fused/tensor/ListedImage.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/knn/fused/tensor/FiniteSize.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;

struct ListParams {
    TensorImage from;
    SpreadRows rows; // of that
    TensorImage to;
    const int32_t* ids;
    idx_t n;
    idx_t capacity;
    int slabs;
    int pieces; // of 16 bytes, of a row of a slab
};

/// Where a piece of a row lies in an image, counted in pieces; the rows of a
/// slab are swizzled as TensorImageLayout says.
__device__ __forceinline__ idx_t
pieceAt(idx_t row, int slab, int piece, int slabs, int pieces) {
    constexpr int kRows = TensorImageLayout::kTileRows;
    const int rowInTile = int(row % kRows);
    const int swizzled = piece ^ (rowInTile * pieces / 8 % pieces);
    return ((row / kRows * slabs + slab) * kRows + rowInTile) * pieces +
            swizzled;
}

/// The two pieces of a norm step: the first one has the number.
__device__ __forceinline__ void putNormStep(
        const TensorImage& to,
        idx_t row,
        const uint4& step) {
    auto* steps = static_cast<uint4*>(to.normSteps);
    steps[pieceAt(row, 0, 0, 1, 2)] = step;
    steps[pieceAt(row, 0, 1, 1, 2)] = {0, 0, 0, 0};
}

/// Of a row that is there, from >= 0, or else infinity.
__device__ __forceinline__ uint4
normStepOf(const TensorImage& image, idx_t from) {
    constexpr uint32_t kInfiniteHalf = 0x7c00;
    return from >= 0 ? static_cast<const uint4*>(
                               image.normSteps)[pieceAt(from, 0, 0, 1, 2)]
                     : uint4{kInfiniteHalf, 0, 0, 0};
}

/// A thread a piece of a row, and one more for the row's norm.
__global__ __launch_bounds__(kThreads) void listedImageKernel(
        const ListParams params) {
    const int perRow = params.slabs * params.pieces + 1;
    const idx_t count = params.capacity * perRow;
    const auto* from = static_cast<const uint4*>(params.from.pieces);
    auto* to = static_cast<uint4*>(params.to.pieces);
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
         i += idx_t(gridDim.x) * kThreads) {
        const idx_t row = i / perRow;
        const int part = int(i % perRow);
        const idx_t vector = row < params.n ? params.ids[row] : -1;
        const idx_t id =
                vector >= 0 ? idx_t(params.rows.rowOf(uint32_t(vector))) : -1;
        if (part + 1 < perRow) {
            const int slab = part / params.pieces;
            const int piece = part % params.pieces;
            uint4 value = {0, 0, 0, 0};
            if (id >= 0) {
                value = from[pieceAt(
                        id, slab, piece, params.slabs, params.pieces)];
            }
            to[pieceAt(row, slab, piece, params.slabs, params.pieces)] = value;
            continue;
        }
        params.to.norms[row] = id >= 0 ? params.from.norms[id]
                                       : __uint_as_float(kInfinityBits);
        putNormStep(params.to, row, normStepOf(params.from, id));
    }
}

__global__ __launch_bounds__(kThreads) void allowedNormsKernel(
        TensorImage image,
        const int32_t* ids,
        idx_t n,
        idx_t capacity,
        const uint32_t* allowedBits,
        TensorImage to,
        uint32_t* allowed) {
    const idx_t row = idx_t(blockIdx.x) * kThreads + threadIdx.x;
    const int32_t vector = row < n ? ids[row] : -1;
    const bool isAllowed =
            vector >= 0 && (allowedBits[vector / 32] >> (vector % 32) & 1);
    if (row < capacity) {
        const idx_t from = isAllowed ? row : -1;
        to.norms[row] =
                isAllowed ? image.norms[row] : __uint_as_float(kInfinityBits);
        putNormStep(to, row, normStepOf(image, from));
    }
    const int count = __syncthreads_count(isAllowed);
    if (allowed && threadIdx.x == 0 && count > 0) {
        atomicAdd(allowed, uint32_t(count));
    }
}

} // namespace

void runListedImage(
        const TensorImage& from,
        const SpreadRows& rows,
        int d,
        const int32_t* ids,
        idx_t n,
        const TensorImage& to,
        cudaStream_t stream) {
    const TensorImageLayout layout(n, d);
    if (layout.capacity == 0) {
        return;
    }
    const ListParams params{
            from,
            rows,
            to,
            ids,
            n,
            layout.capacity,
            layout.slabs,
            layout.rowBytes / 16};
    const idx_t threads =
            layout.capacity * (idx_t(layout.slabs) * params.pieces + 1);
    const auto blocks = unsigned(
            std::min<idx_t>((threads + kThreads - 1) / kThreads, 1 << 16));
    listedImageKernel<<<blocks, kThreads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runAllowedNorms(
        const TensorImage& from,
        const int32_t* ids,
        idx_t n,
        const uint32_t* allowedBits,
        const TensorImage& to,
        uint32_t* allowed,
        cudaStream_t stream) {
    if (allowed) {
        BITS_CUDA_CHECK(cudaMemsetAsync(allowed, 0, sizeof(uint32_t), stream));
    }
    // Whether there are components or not: norms have 32 bytes a row.
    const idx_t capacity = TensorImageLayout(n, 1).capacity;
    if (capacity == 0) {
        return;
    }
    const auto blocks = unsigned((capacity + kThreads - 1) / kThreads);
    allowedNormsKernel<<<blocks, kThreads, 0, stream>>>(
            from, ids, n, capacity, allowedBits, to, allowed);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits

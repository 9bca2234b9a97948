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
        const auto* fromSteps =
                static_cast<const uint4*>(params.from.normSteps);
        auto* toSteps = static_cast<uint4*>(params.to.normSteps);
        // The first of the two pieces has the number: infinity in float16.
        const uint4 step = id >= 0 ? fromSteps[pieceAt(id, 0, 0, 1, 2)]
                                   : uint4{0x7c00, 0, 0, 0};
        toSteps[pieceAt(row, 0, 0, 1, 2)] = step;
        toSteps[pieceAt(row, 0, 1, 1, 2)] = {0, 0, 0, 0};
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

} // namespace faiss_bits

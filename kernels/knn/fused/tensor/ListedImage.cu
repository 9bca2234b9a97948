#include "kernels/knn/fused/tensor/ListedImage.h"

#include "kernels/common/CudaCheck.h"
#include "kernels/common/Error.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/knn/fused/ByteSearch.h"
#include "kernels/knn/fused/tensor/FiniteSize.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kRowsAtOnce = 4; // of a group of lanes: all on their way together

struct ListParams {
    ListedImages images;
    idx_t capacity; // rows of `to`
    int slabs;
    int pieces; // of 16 bytes, of a row of a slab: 2, 4 or 8
    int byteSlabs;
};

/// ListedImages::makes.
constexpr uint32_t kOfHalves = 1;
constexpr uint32_t kOfBytes = 2;

/// What copies take, counted in what a scan in 8 bits saves of a tile of
/// queries: by arithmetic 0.15 and 0.07 of 0.04 ns a vector.
constexpr int64_t kTilesOfHalves = 4;
constexpr int64_t kTilesOfBytes = 2;

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

/// Whether all tiles are scanned in 8 bits: where that and its copy take no
/// longer than 16 bits and theirs. All lanes of the warp call it. While
/// decide() writes, it finds the same from costs old and new.
__device__ __forceinline__ bool bytesPay(
        const ListedImages& images,
        uint32_t made) {
    const volatile uint32_t* costs = images.costs;
    const int64_t most = images.mostCost;
    int64_t lost = 0;
    bool isFar = false;
    for (uint32_t i = threadIdx.x % 32; i < images.tiles; i += 32) {
        const uint32_t cost = costs[i];
        lost += int64_t(cost) - most;
        isFar |= cost >= ByteSearch::kFar;
    }
#pragma unroll
    for (int lanes = 16; lanes >= 1; lanes /= 2) {
        lost += __shfl_xor_sync(kFullWarp, lost, lanes);
    }
    const int64_t copies = (made & kOfHalves ? 0 : kTilesOfHalves) -
            (made & kOfBytes ? 0 : kTilesOfBytes);
    return !__any_sync(kFullWarp, isFar) && lost <= copies * most;
}

/// Bits of what has to be made. All threads of the block call it.
__device__ __forceinline__ uint32_t decide(const ListedImages& images) {
    const uint32_t made = images.made ? *images.made : 0;
    const bool isOfBytes = images.costs && bytesPay(images, made);
    const uint32_t wanted = isOfBytes ? kOfBytes : kOfHalves;
    if (blockIdx.x == 0 && threadIdx.x < 32) {
        if (images.makes && threadIdx.x == 0) {
            *images.makes = made | wanted;
        }
        // Lower ones where they are low enough, and higher where too high.
        volatile uint32_t* costs = images.costs;
        for (uint32_t i = threadIdx.x; costs && i < images.tiles; i += 32) {
            const uint32_t cost = costs[i];
            costs[i] = isOfBytes ? min(cost, images.mostCost)
                                 : max(cost, ByteSearch::kFar);
        }
    }
    return wanted & ~made;
}

/// Rows `from` to rows row, row + step ..., zeros where one is below 0: the
/// piece that is this lane's of each slab.
__device__ __forceinline__ void copyPieces(
        const void* fromPieces,
        void* toPieces,
        const idx_t (&from)[kRowsAtOnce],
        idx_t row,
        idx_t step,
        idx_t capacity,
        int slabs,
        int pieces) {
    const int piece = int(threadIdx.x) % pieces;
    for (int slab = 0; slab < slabs; ++slab) {
        uint4 values[kRowsAtOnce];
#pragma unroll
        for (int i = 0; i < kRowsAtOnce; ++i) {
            values[i] = {0, 0, 0, 0};
            if (from[i] >= 0) {
                values[i] = static_cast<const uint4*>(fromPieces)[pieceAt(
                        from[i], slab, piece, slabs, pieces)];
            }
        }
#pragma unroll
        for (int i = 0; i < kRowsAtOnce; ++i) {
            if (row + i * step < capacity) {
                static_cast<uint4*>(toPieces)[pieceAt(
                        row + i * step, slab, piece, slabs, pieces)] =
                        values[i];
            }
        }
    }
}

/// A group of as many lanes as a slab's row has pieces takes some rows.
__global__ __launch_bounds__(kThreads) void listedImageKernel(
        const __grid_constant__ ListParams params) {
    const ListedImages& images = params.images;
    const uint32_t wanted = decide(images);
    if (wanted == 0) {
        return;
    }
    const idx_t step = kThreads / params.pieces;
    const idx_t row = idx_t(blockIdx.x) * step * kRowsAtOnce +
            int(threadIdx.x) / params.pieces;
    idx_t from[kRowsAtOnce];
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
        const idx_t at = row + i * step;
        from[i] = at < images.n ? images.ids[at] : -1;
    }
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
        from[i] =
                from[i] >= 0 ? idx_t(images.rows.rowOf(uint32_t(from[i]))) : -1;
    }
    if (wanted & kOfHalves) {
        copyPieces(
                images.from.pieces,
                images.to.pieces,
                from,
                row,
                step,
                params.capacity,
                params.slabs,
                params.pieces);
    }
    if (wanted & kOfBytes) {
        copyPieces(
                images.fromBytes.pieces,
                images.toBytes.pieces,
                from,
                row,
                step,
                params.capacity,
                params.byteSlabs,
                params.pieces);
    }
    if (threadIdx.x % params.pieces != 0) {
        return;
    }
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
        const idx_t at = row + i * step;
        if (at >= params.capacity) {
            continue;
        }
        // Scans in 8 bits read them too, where they have no own.
        images.to.norms[at] = from[i] >= 0 ? images.from.norms[from[i]]
                                           : __uint_as_float(kInfinityBits);
        if (wanted & kOfHalves) {
            putNormStep(images.to, at, normStepOf(images.from, from[i]));
        }
        if (wanted & kOfBytes && images.toBytes.norms) {
            images.toBytes.norms[at] = from[i] >= 0
                    ? images.fromBytes.norms[from[i]]
                    : -ByteNorms::kNone;
        }
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

/// A thread a piece, as they lie in memory.
__global__ __launch_bounds__(kThreads) void allowedRowsKernel(
        const uint4* from,
        const int32_t* ids,
        uint32_t n,
        uint32_t pieces,
        uint32_t ofRow,  // in a slab
        uint32_t ofTile, // in all slabs
        const uint32_t* allowedBits,
        uint4* to) {
    constexpr uint32_t kRows = TensorImageLayout::kTileRows;
    constexpr uint32_t kNans = 0x7fff7fff;
    const uint32_t piece = blockIdx.x * kThreads + threadIdx.x;
    if (piece >= pieces) {
        return;
    }
    const uint32_t row = piece / ofTile * kRows + piece / ofRow % kRows;
    const int32_t vector = row < n ? ids[row] : -1;
    const bool isAllowed =
            vector >= 0 && (allowedBits[vector / 32] >> (vector % 32) & 1);
    to[piece] = isAllowed ? from[piece] : uint4{kNans, kNans, kNans, kNans};
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
    ListedImages images;
    images.from = from;
    images.to = to;
    images.rows = rows;
    images.d = d;
    images.ids = ids;
    images.n = n;
    runListedImages(images, stream);
}

void runListedImages(const ListedImages& images, cudaStream_t stream) {
    const TensorImageLayout layout(images.n, images.d);
    if (layout.capacity == 0) {
        return;
    }
    const ListParams params{
            images,
            layout.capacity,
            layout.slabs,
            layout.rowBytes / 16,
            ByteImageLayout(images.n, images.d).slabs};
    const idx_t ofBlock = kThreads / params.pieces * kRowsAtOnce;
    const auto blocks = unsigned((layout.capacity + ofBlock - 1) / ofBlock);
    listedImageKernel<<<blocks, kThreads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runAllowedRows(
        const TensorImage& from,
        int d,
        const int32_t* ids,
        idx_t n,
        const uint32_t* allowedBits,
        const TensorImage& to,
        cudaStream_t stream) {
    const TensorImageLayout layout(n, d);
    const size_t pieces = layout.pieceBytes() / sizeof(uint4);
    BITS_THROW_IF_NOT_FMT(
            pieces < size_t(1) << 32,
            "n = %lld rows of d = %d are too many",
            (long long)n,
            d);
    if (pieces == 0) {
        return;
    }
    const auto ofRow = uint32_t(layout.rowBytes / sizeof(uint4));
    const auto blocks = unsigned((pieces + kThreads - 1) / kThreads);
    allowedRowsKernel<<<blocks, kThreads, 0, stream>>>(
            static_cast<const uint4*>(from.pieces),
            ids,
            uint32_t(n),
            uint32_t(pieces),
            ofRow,
            ofRow * TensorImageLayout::kTileRows * uint32_t(layout.slabs),
            allowedBits,
            static_cast<uint4*>(to.pieces));
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

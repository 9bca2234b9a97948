#include "kernels/knn/fused/tensor/ByteImage.h"

#include <algorithm>

#include <cuda_fp16.h>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Workspace.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/knn/fused/ByteSearch.h"
#include "kernels/knn/fused/tensor/TensorImageKernel.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kBytePiece = 16; // components
/// Pieces that a lane has of a row.
constexpr int kMostPieces = kMostByteComponents / kBytePiece / kWarpSize;
constexpr float kLeastByte = -128.0f;
constexpr float kMostByte = 127.0f;
/// Steps: their products are normal numbers.
constexpr float kLeastStep = 0x1p-60f;
constexpr float kMostStep = 0x1p66f;

struct ByteParams {
    TensorImage from;
    ByteImage to;
    idx_t rows; // padding included
    int halfSlabs;
    int slabs;
    uint32_t* costs;
    const TensorImageFacts* vectors; // whose step queries have, or nullptr
};

/// Of numbers from -greatest to greatest. Such that the integers from -128 to
/// 127, as bytes are without their mean, are held exactly; so the largest
/// numbers lose up to a step, and what is larger is cut. The residual says.
__device__ __forceinline__ float stepFor(float greatest) {
    const float step = greatest / -kLeastByte;
    return greatest > 0.0f ? fminf(fmaxf(step, kLeastStep), kMostStep) : 1.0f;
}

__global__ void startByteFactsKernel(
        const TensorImageFacts* from,
        const float* greatest,
        bool hasNorms,
        TensorImageFacts* to) {
    const float step = stepFor(fminf(*greatest, 65504.0f * from->inverse));
    *to = {};
    to->inverse = step;
    to->scale = 1.0f / step;
    // Half of a unit of the norms, of two squared steps, and what the quotient
    // is rounded by.
    to->normError = hasNorms ? step * step * (1.0f + 0x1p-18f) : 0.0f;
    to->greatestLength = from->greatestLength;
}

/// ByteImage::norms of a squared norm.
__device__ __forceinline__ int32_t byteNormOf(float norm, float step) {
    constexpr float kMostFloat = 3.402823466e+38f;
    if (!(norm <= kMostFloat)) {
        return norm > 0.0f ? -ByteNorms::kNone : ByteNorms::kNone;
    }
    const double units = double(norm) / (2.0 * step * step);
    return -int32_t(rint(fmax(
            fmin(units, double(ByteNorms::kMost)), -double(ByteNorms::kNone))));
}

/// The 16 components of a piece; 0 for what is not finite.
__device__ __forceinline__ void readHalves(
        const ByteParams& params,
        idx_t row,
        int piece,
        float inverse,
        float (&x)[kBytePiece]) {
    constexpr int kRows = TensorImageLayout::kTileRows;
    const int rowInTile = int(row % kRows);
    const int slab = piece / 4;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int place = (piece % 4 * 2 + h) ^ (rowInTile % 8);
        const idx_t at =
                ((row / kRows * params.halfSlabs + slab) * kRows + rowInTile) *
                        8 +
                place;
        uint4 words{};
        if (slab < params.halfSlabs) {
            words = static_cast<const uint4*>(params.from.pieces)[at];
        }
        const __half* halves = reinterpret_cast<const __half*>(&words);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float value = __half2float(halves[i]) * inverse;
            x[8 * h + i] = fabsf(value) < __builtin_huge_valf() ? value : 0.0f;
        }
    }
}

/// A warp a row.
template <bool kAreQueries>
__global__ __launch_bounds__(kThreads) void byteImageKernel(
        const __grid_constant__ ByteParams params) {
    allowNext();
    waitForPrevious();
    constexpr int kRows = TensorImageLayout::kTileRows;
    const int lane = threadIdx.x % kWarpSize;
    const int pieces = params.slabs * 8;
    const idx_t warps = idx_t(gridDim.x) * (kThreads / kWarpSize);
    float most = 0.0f;
    for (idx_t row = (idx_t(blockIdx.x) * kThreads + threadIdx.x) / kWarpSize;
         row < params.rows;
         row += warps) {
        const float inverse = kAreQueries ? params.from.inverses[row]
                                          : params.from.facts->inverse;
        float x[kMostPieces][kBytePiece];
        float greatest = 0.0f;
#pragma unroll
        for (int p = 0; p < kMostPieces; ++p) {
            const int piece = p * kWarpSize + lane;
            if (piece < pieces) {
                readHalves(params, row, piece, inverse, x[p]);
            }
#pragma unroll
            for (int i = 0; i < kBytePiece; ++i) {
                x[p][i] = piece < pieces ? x[p][i] : 0.0f;
                greatest = fmaxf(greatest, fabsf(x[p][i]));
            }
        }
        float step;
        if (kAreQueries && params.vectors) {
            step = params.vectors->inverse;
        } else if (kAreQueries) {
            step = stepFor(__uint_as_float(
                    __reduce_max_sync(kFullWarp, __float_as_uint(greatest))));
        } else {
            step = params.to.facts->inverse;
        }
        const float scale = 1.0f / step;
        const int rowInTile = int(row % kRows);
        float squares = 0.0f; // in steps
#pragma unroll
        for (int p = 0; p < kMostPieces; ++p) {
            const int piece = p * kWarpSize + lane;
            alignas(16) int8_t bytes[kBytePiece];
#pragma unroll
            for (int i = 0; i < kBytePiece; ++i) {
                const float byte = fminf(
                        fmaxf(rintf(x[p][i] * scale), kLeastByte), kMostByte);
                const float off = fmaf(-step, byte, x[p][i]) * scale;
                squares = fmaf(off, off, squares);
                bytes[i] = int8_t(int(byte));
            }
            if (piece < pieces) {
                const idx_t at =
                        ((row / kRows * params.slabs + piece / 8) * kRows +
                         rowInTile) *
                                8 +
                        (piece % 8 ^ rowInTile % 8);
                static_cast<uint4*>(params.to.pieces)[at] =
                        *reinterpret_cast<const uint4*>(bytes);
            }
        }
#pragma unroll
        for (int distance = kWarpSize / 2; distance >= 1; distance /= 2) {
            squares += __shfl_xor_sync(kFullWarp, squares, distance);
        }
        // Up: what sums, roots and scales are rounded by, and squares below
        // 2^-126; and what the image of 16 bits lost.
        constexpr float kUp = 1.0f + (kMostByteComponents + 32) * 0x1p-22f;
        const float lost = kAreQueries ? params.from.residuals[row]
                                       : params.from.facts->residual;
        const float residual =
                ((sqrtf(squares) * kUp + kMostByteComponents * 0x1p-60f) *
                         step +
                 lost) *
                (1.0f + 0x1p-21f);
        if (kAreQueries) {
            if (lane == 0) {
                params.to.steps[row] = step;
                params.to.residuals[row] = residual;
                if (row % ByteSearch::kTileQueries == 0) {
                    params.costs[row / ByteSearch::kTileQueries] = 0;
                }
            }
        } else {
            most = fmaxf(most, residual);
            if (params.to.norms && lane == 0) {
                params.to.norms[row] = byteNormOf(params.from.norms[row], step);
            }
        }
    }
    if (!kAreQueries) {
        raiseTo(&params.to.facts->residual, most);
    }
}

template <bool kAreQueries>
void launch(
        const TensorImage& from,
        idx_t rows,
        int d,
        const ByteImage& to,
        uint32_t* costs,
        const TensorImageFacts* vectors,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(
            d >= 1 && d <= kMostByteComponents,
            "d = %d is outside 1..%d",
            d,
            kMostByteComponents);
    const TensorImageLayout halves(rows, d);
    BITS_THROW_IF_NOT_FMT(
            halves.rowBytes == 128, "d = %d has slabs of fewer bytes", d);
    const ByteImageLayout layout(rows, d);
    const ByteParams params{
            from,
            to,
            layout.capacity,
            halves.slabs,
            layout.slabs,
            costs,
            vectors};
    constexpr idx_t kWarps = kThreads / kWarpSize;
    const auto blocks = unsigned(
            std::min<idx_t>((layout.capacity + kWarps - 1) / kWarps, 1 << 14));
    launchAfterPrevious(
            byteImageKernel<kAreQueries>, blocks, kThreads, 0, stream, params);
}

ByteImage take(WorkspaceSlices& slices, idx_t rows, int d, bool areQueries) {
    const ByteImageLayout layout(rows, d);
    ByteImage image;
    image.pieces = slices.take<uint8_t>(layout.pieceBytes());
    if (areQueries) {
        image.steps = slices.take<float>(layout.capacity);
        image.residuals = slices.take<float>(layout.capacity);
    } else {
        image.facts = slices.take<TensorImageFacts>(1);
        if (hasByteNorms(d)) {
            image.norms = slices.take<int32_t>(layout.capacity);
        }
    }
    return image;
}

} // namespace

size_t byteImageBytes(idx_t rows, int d, bool areQueries) {
    WorkspaceSlices slices;
    take(slices, rows, d, areQueries);
    return slices.used();
}

ByteImage byteImageAt(void* memory, idx_t rows, int d, bool areQueries) {
    WorkspaceSlices slices({memory, byteImageBytes(rows, d, areQueries)});
    return take(slices, rows, d, areQueries);
}

void runByteImage(
        const TensorImage& from,
        idx_t rows,
        int d,
        const float* greatest,
        const ByteImage& to,
        cudaStream_t stream) {
    startByteFactsKernel<<<1, 1, 0, stream>>>(
            from.facts, greatest, hasByteNorms(d), to.facts);
    BITS_CUDA_CHECK(cudaGetLastError());
    launch<false>(from, rows, d, to, nullptr, nullptr, stream);
}

void runByteQueries(
        const TensorImage& from,
        idx_t rows,
        int d,
        const TensorImageFacts* vectors,
        const ByteImage& to,
        uint32_t* costs,
        cudaStream_t stream) {
    launch<true>(
            from,
            rows,
            d,
            to,
            costs,
            hasByteNorms(d) ? vectors : nullptr,
            stream);
}

} // namespace faiss_bits

/// The kernel that writes rows into an image.
#pragma once

#include <cstdint>

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"
#include "kernels/knn/fused/tensor/FiniteSize.cuh"
#include "kernels/knn/fused/tensor/SpreadRows.h"
#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

constexpr int kImageThreads = 256;
constexpr int kImagePiece = 8; // components, 16 bytes

struct ImageParams {
    const void* rows;
    idx_t n;
    idx_t first;
    idx_t end; // of what is written: rows and padding behind them
    int d;
    int rowBytes;
    int slabs;
    bool aligned; // pieces of rows can be read 16 bytes at a time
    const float* norms;
    const float* inverseNorms;
    const float* center;
    const TensorImageFacts* vectorFacts;
    bool dropsInfinite;
    TensorImage image;
    SpreadRows spread; // vectors: which of the given rows its rows hold
    float* outNorms;
    __nv_bfloat16* outRounded;
    const float* productCenter;
    CenterProduct* outProducts;
};

__device__ __forceinline__ float powerOfTwo(int exponent) {
    return __int_as_float((exponent + 127) << 23);
}

/// Of what brings `greatest` to [2^8, 2^9), between `least` and `most`.
__device__ __forceinline__ int exponentFor(
        float greatest,
        int least,
        int most) {
    const int exponent = greatest > 0.0f ? 8 - ilogbf(greatest) : 0;
    return min(max(exponent, least), most);
}

/// The given row that a row of the image holds.
__device__ __forceinline__ idx_t
sourceOf(const ImageParams& params, idx_t row) {
    const SpreadRows& spread = params.spread;
    return spread.tiles > 0 ? spread.vectorOf(uint32_t(row)) : row;
}

/// Components of a row, times a factor.
template <class T>
__device__ __forceinline__ void readPiece(
        const ImageParams& params,
        idx_t row,
        int component,
        float factor,
        float (&out)[kImagePiece]) {
    const T* x = static_cast<const T*>(params.rows) + row * params.d;
    if (params.aligned) { // then d is a multiple of a piece
        constexpr int kPerLoad = 16 / sizeof(T);
        T values[kImagePiece];
#pragma unroll
        for (int i = 0; i < kImagePiece / kPerLoad; ++i) {
            reinterpret_cast<uint4*>(values)[i] =
                    reinterpret_cast<const uint4*>(x + component)[i];
        }
#pragma unroll
        for (int i = 0; i < kImagePiece; ++i) {
            out[i] = toFloat(values[i]) * factor;
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < kImagePiece; ++i) {
        out[i] = component + i < params.d ? toFloat(x[component + i]) * factor
                                          : 0.0f;
    }
}

/// A component at a time lanes would read the center from eight lines of L1
/// each.
__device__ __forceinline__ void subtractPiece(
        const float* center,
        int d,
        int component,
        float (&x)[kImagePiece]) {
    const bool isAligned = reinterpret_cast<uintptr_t>(center) % 16 == 0;
    if (isAligned && component + kImagePiece <= d) {
        const auto* from = reinterpret_cast<const float4*>(center + component);
        const float4 fours[] = {from[0], from[1]};
#pragma unroll
        for (int c = 0; c < kImagePiece; ++c) {
            x[c] -= reinterpret_cast<const float*>(fours)[c];
        }
        return;
    }
#pragma unroll
    for (int c = 0; c < kImagePiece; ++c) {
        if (component + c < d) {
            x[c] -= center[component + c];
        }
    }
}

/// What searches want of a query beside its image: `Lanes` lanes a row.
template <int Lanes>
struct QueryExtras {
    double product = 0;
    double sizes = 0; // of the product's terms

    __device__ __forceinline__ void add(
            const ImageParams& params,
            idx_t row,
            int component,
            const float (&x)[kImagePiece]) {
#pragma unroll
        for (int c = 0; c < kImagePiece; ++c) {
            if (component + c >= params.d) {
                break;
            }
            if (params.outRounded) {
                params.outRounded[row * params.d + component + c] =
                        __float2bfloat16(x[c]);
            }
            if (params.productCenter) {
                const double term =
                        double(params.productCenter[component + c]) * x[c];
                product += term;
                sizes += fabs(term);
            }
        }
    }

    __device__ __forceinline__ void write(
            const ImageParams& params,
            idx_t row,
            float norm,
            bool isFirstLane) {
#pragma unroll
        for (int distance = Lanes / 2; distance >= 1; distance /= 2) {
            product += __shfl_xor_sync(kFullWarp, product, distance);
            sizes += __shfl_xor_sync(kFullWarp, sizes, distance);
        }
        if (!isFirstLane) {
            return;
        }
        if (params.outNorms) {
            params.outNorms[row] = norm;
        }
        if (params.outProducts) {
            // Of the sum, and of what is subtracted from it and added to it
            // later; products of two float32 are exact.
            params.outProducts[row] = {
                    product, (params.d + 64) * 0x1p-52 * sizes};
        }
    }
};

/// Three numbers of 11 bits hold the 24 bits of a float, down to 2^-25. NaN
/// stays. isMark: an infinity that is to be one.
__device__ __forceinline__ void writeNormStep(
        const TensorImage& image,
        idx_t row,
        float norm,
        bool isMark) {
    float rest = norm * image.facts->normScale;
    __half parts[kImagePiece] = {};
    if (isMark) {
        parts[0] = __float2half_rn(rest);
    } else if (rest > 65504.0f) {
        parts[0] = __float2half_rn(65504.0f);
    } else {
#pragma unroll
        for (int i = 0; i < 3; ++i) {
            parts[i] = __float2half_rn(rest);
            rest -= __half2float(parts[i]);
        }
    }
    const int rowInTile = int(row % TensorImageLayout::kTileRows);
    uint4* step = static_cast<uint4*>(image.normSteps) + row * 2;
    const int first = rowInTile / 4 % 2; // 32-byte swizzle
    step[first] = *reinterpret_cast<const uint4*>(parts);
    step[1 - first] = uint4{0, 0, 0, 0};
}

/// TensorImageProblem::inverseNorms says of what.
__device__ __forceinline__ float normalizedNorm(
        float inverse,
        float norm,
        bool isQuery) {
    const float mark = __uint_as_float(kInfinityBits);
    return inverse < 0.0f     ? (isQuery ? mark : -mark)
            : inverse == 0.0f ? norm + 1.0f
                              : norm;
}

/// *out = the greatest of it and the values of all lanes, none below 0.
__device__ __forceinline__ void raiseTo(float* out, float value) {
    const uint32_t bits = __reduce_max_sync(kFullWarp, __float_as_uint(value));
    if (threadIdx.x % kWarpSize == 0 && bits > 0) {
        atomicMax(reinterpret_cast<unsigned*>(out), bits);
    }
}

/// `Lanes` lanes a row, each a piece of 8 components at a time.
template <class T, int Lanes, bool AreQueries>
__global__ void __launch_bounds__(kImageThreads)
        tensorImageKernel(const ImageParams params) {
    allowNext();
    waitForPrevious();
    const idx_t step = idx_t(gridDim.x) * kImageThreads / Lanes;
    const int lane = threadIdx.x % Lanes;
    const int pieces = params.rowBytes / 16 * params.slabs;
    const int piecesOfRow = params.rowBytes / 16;
    const idx_t count = params.end - params.first;
    const idx_t rounded = (count + kWarpSize - 1) / kWarpSize * kWarpSize;
    float most = 0.0f; // residual of this thread's rows
    float longest = 0.0f;
    const float sharedScale = AreQueries ? 1.0f : params.image.facts->scale;
    // Inverse scales and norms are normal numbers, and so are their products.
    int leastExponent = -60;
    int mostExponent = 60;
    if (AreQueries && params.vectorFacts) {
        const int norms = ilogbf(params.vectorFacts->normInverse) +
                ilogbf(params.vectorFacts->scale);
        leastExponent = max(leastExponent, -23 - norms);
        mostExponent = min(mostExponent, 16 - norms);
    }
    // Whole warps stay in the loop, for the shuffles.
    for (idx_t i = (idx_t(blockIdx.x) * kImageThreads + threadIdx.x) / Lanes;
         i < rounded;
         i += step) {
        const bool present = i < params.n;
        const idx_t from =
                AreQueries || i >= params.n ? i : sourceOf(params, i);
        float factor = 1.0f;
        bool isHeld = present;
        if (present && params.inverseNorms) {
            factor = params.inverseNorms[from];
            // Of what always passes: a query is no number, a vector zeros.
            isHeld = AreQueries || !(factor < 0.0f);
            factor = factor < 0.0f ? __uint_as_float(0x7fc00000u) : factor;
        }
        float scale = sharedScale;
        float held[kImagePiece] = {}; // the first piece: all of a short row
        if (AreQueries) {
            uint32_t greatest = 0;
            for (int p = lane; present && p * kImagePiece < params.d;
                 p += Lanes) {
                float x[kImagePiece];
                readPiece<T>(params, i, p * kImagePiece, factor, x);
                if (params.center) {
                    subtractPiece(params.center, params.d, p * kImagePiece, x);
                }
#pragma unroll
                for (int c = 0; c < kImagePiece; ++c) {
                    greatest = max(greatest, finiteSize(x[c]));
                    held[c] = p == lane ? x[c] : held[c];
                }
            }
#pragma unroll
            for (int distance = Lanes / 2; distance >= 1; distance /= 2) {
                greatest =
                        max(greatest,
                            __shfl_xor_sync(kFullWarp, greatest, distance));
            }
            scale = powerOfTwo(exponentFor(
                    __uint_as_float(greatest), leastExponent, mostExponent));
        }
        const idx_t row = params.first + i;
        uint8_t* slab = static_cast<uint8_t*>(params.image.pieces) +
                row / TensorImageLayout::kTileRows * params.slabs *
                        (TensorImageLayout::kTileRows * params.rowBytes);
        const int rowInTile = int(row % TensorImageLayout::kTileRows);
        float squares = 0.0f;
        float norm = 0.0f; // squared, of what is left of the center
        bool finite = true;
        QueryExtras<Lanes> extras;
        for (int p = lane; i < count && p < pieces; p += Lanes) {
            float x[kImagePiece] = {};
            if (isHeld && p * kImagePiece < params.d) {
                if (AreQueries && p == lane) {
#pragma unroll
                    for (int c = 0; c < kImagePiece; ++c) {
                        x[c] = held[c];
                    }
                } else {
                    readPiece<T>(params, from, p * kImagePiece, factor, x);
                    if (params.center) {
                        subtractPiece(
                                params.center, params.d, p * kImagePiece, x);
                    }
                }
#pragma unroll
                for (int c = 0; c < kImagePiece; ++c) {
                    norm = fmaf(x[c], x[c], norm);
                }
                if (AreQueries) {
                    extras.add(params, i, p * kImagePiece, x);
                }
            }
            __half halves[kImagePiece];
#pragma unroll
            for (int c = 0; c < kImagePiece; ++c) {
                // Exact, or beyond the range and cut, or below 2^-126.
                const float scaled = x[c] * scale;
                const bool isFinite = finiteSize(x[c]) ==
                        (__float_as_uint(x[c]) & 0x7fffffffu);
                finite &= isFinite;
                const bool isDropped = !AreQueries && params.dropsInfinite &&
                        !isFinite && x[c] == x[c];
                halves[c] = __float2half_rn(
                        isFinite ? fminf(fmaxf(scaled, -65504.0f), 65504.0f)
                                : isDropped ? 0.0f
                                            : scaled);
                const float off = scaled - __half2float(halves[c]);
                squares = fmaf(off, off, squares);
            }
            const int at = rowInTile * params.rowBytes;
            const int piece = p % piecesOfRow;
            const int swizzled = piece ^ (at / 128 % piecesOfRow);
            *reinterpret_cast<uint4*>(
                    slab +
                    size_t(p / piecesOfRow) * TensorImageLayout::kTileRows *
                            params.rowBytes +
                    at + swizzled * 16) = *reinterpret_cast<uint4*>(halves);
        }
#pragma unroll
        for (int distance = Lanes / 2; distance >= 1; distance /= 2) {
            squares += __shfl_xor_sync(kFullWarp, squares, distance);
            norm += __shfl_xor_sync(kFullWarp, norm, distance);
            finite &= bool(__shfl_xor_sync(kFullWarp, int(finite), distance));
        }
        // Up: d + 8 roundings of the sum and the root; a square below 2^-126
        // is a component of 2^-63 at most, in the image's units, and so is
        // what scaling lost.
        const float rounding = 1.0f + float(params.d + 8) * 0x1p-23f;
        const float residual =
                (sqrtf(squares) * rounding + float(params.d) * 0x1p-60f) /
                        scale * (1.0f + 0x1p-22f) +
                // Each difference was rounded by 2^-24 of itself.
                (params.center ? sqrtf(norm) * (1.0f + rounding) * 0x1p-24f
                               : 0.0f);
        if (AreQueries) {
            if (lane == 0 && i < count) {
                params.image.inverses[row] = 1.0f / scale;
                params.image.residuals[row] =
                        finite ? residual : __uint_as_float(kInfinityBits);
            }
            extras.write(
                    params,
                    i,
                    present && params.inverseNorms
                            ? normalizedNorm(params.inverseNorms[i], norm, true)
                            : norm,
                    lane == 0 && present);
        } else {
            if (present && finite) {
                most = fmaxf(most, residual);
                // Squares below 2^-126 are of components below 2^-63.
                longest = fmaxf(
                        longest,
                        sqrtf(norm) * rounding + float(params.d) * 0x1p-63f);
            }
            if (lane == 0 && i < count) {
                const float written = !present ? __uint_as_float(kInfinityBits)
                        : params.inverseNorms
                        ? normalizedNorm(params.inverseNorms[from], norm, false)
                        : params.center ? norm
                        : params.norms  ? params.norms[from]
                                        : 0.0f;
                // A norm may be infinite where no component is.
                const bool isFar = params.dropsInfinite && !finite &&
                        norm == __uint_as_float(kInfinityBits);
                params.image.norms[row] = isFar ? norm : written;
                writeNormStep(
                        params.image,
                        row,
                        isFar ? norm : written,
                        isFar || !isHeld);
            }
        }
    }
    if (!AreQueries) {
        raiseTo(&params.image.facts->residual, most);
        raiseTo(&params.image.facts->greatestLength, longest);
    }
}

} // namespace faiss_bits

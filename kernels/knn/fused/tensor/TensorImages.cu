#include <algorithm>
#include <cstdint>

#include "kernels/common/CudaCheck.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"
#include "kernels/knn/fused/tensor/FiniteSize.cuh"
#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kPiece = 8; // components, 16 bytes

unsigned blocksFor(idx_t threads) {
    return unsigned(std::clamp<idx_t>(
            (threads + kThreads - 1) / kThreads, 1, idx_t(1) << 20));
}

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
    TensorImage image;
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

template <class T>
__device__ __forceinline__ void readPiece(
        const ImageParams& params,
        idx_t row,
        int component,
        float factor,
        float (&out)[kPiece]) {
    const T* x = static_cast<const T*>(params.rows) + row * params.d;
    if (params.aligned) { // then d is a multiple of a piece
        constexpr int kPerLoad = 16 / sizeof(T);
        T values[kPiece];
#pragma unroll
        for (int i = 0; i < kPiece / kPerLoad; ++i) {
            reinterpret_cast<uint4*>(values)[i] =
                    reinterpret_cast<const uint4*>(x + component)[i];
        }
#pragma unroll
        for (int i = 0; i < kPiece; ++i) {
            out[i] = toFloat(values[i]) * factor;
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < kPiece; ++i) {
        out[i] = component + i < params.d ? toFloat(x[component + i]) * factor
                                          : 0.0f;
    }
}

/// Three numbers of 11 bits hold the 24 bits of a float, down to 2^-25. NaN
/// stays.
__device__ __forceinline__ void writeNormStep(
        const TensorImage& image,
        idx_t row,
        float norm,
        bool present) {
    float rest = norm * image.facts->normScale;
    __half parts[kPiece] = {};
    if (!present) {
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

/// `Lanes` lanes a row, each a piece of 8 components at a time.
template <class T, int Lanes, bool AreQueries>
__global__ void __launch_bounds__(kThreads)
        tensorImageKernel(const ImageParams params) {
    const idx_t step = idx_t(gridDim.x) * kThreads / Lanes;
    const int lane = threadIdx.x % Lanes;
    const int pieces = params.rowBytes / 16 * params.slabs;
    const int piecesOfRow = params.rowBytes / 16;
    const idx_t count = params.end - params.first;
    const idx_t rounded = (count + kWarpSize - 1) / kWarpSize * kWarpSize;
    float most = 0.0f; // residual of this thread's rows
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
    for (idx_t i = (idx_t(blockIdx.x) * kThreads + threadIdx.x) / Lanes;
         i < rounded;
         i += step) {
        const bool present = i < params.n;
        float factor = 1.0f;
        if (present && params.inverseNorms) {
            factor = params.inverseNorms[i];
            factor = factor < 0.0f ? __uint_as_float(0x7fc00000u) : factor;
        }
        float scale = sharedScale;
        if (AreQueries) {
            uint32_t greatest = 0;
            for (int p = lane; present && p * kPiece < params.d; p += Lanes) {
                float x[kPiece];
                readPiece<T>(params, i, p * kPiece, factor, x);
#pragma unroll
                for (int c = 0; c < kPiece; ++c) {
                    greatest = max(greatest, finiteSize(x[c]));
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
        for (int p = lane; i < count && p < pieces; p += Lanes) {
            float x[kPiece] = {};
            if (present && p * kPiece < params.d) {
                readPiece<T>(params, i, p * kPiece, factor, x);
                if (params.center) {
#pragma unroll
                    for (int c = 0; c < kPiece; ++c) {
                        if (p * kPiece + c < params.d) {
                            x[c] -= params.center[p * kPiece + c];
                        }
                        norm = fmaf(x[c], x[c], norm);
                    }
                }
            }
            __half halves[kPiece];
#pragma unroll
            for (int c = 0; c < kPiece; ++c) {
                // Exact, or beyond the range and cut, or below 2^-126.
                const float scaled = x[c] * scale;
                const bool isFinite = finiteSize(x[c]) ==
                        (__float_as_uint(x[c]) & 0x7fffffffu);
                finite &= isFinite;
                halves[c] = __float2half_rn(
                        isFinite ? fminf(fmaxf(scaled, -65504.0f), 65504.0f)
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
        } else {
            if (present && finite) {
                most = fmaxf(most, residual);
            }
            if (lane == 0 && i < count) {
                const float written = !present ? __uint_as_float(kInfinityBits)
                        : params.center        ? norm
                        : params.norms         ? params.norms[i]
                                               : 0.0f;
                params.image.norms[row] = written;
                writeNormStep(params.image, row, written, present);
            }
        }
    }
    if (!AreQueries) {
        const uint32_t bits =
                __reduce_max_sync(kFullWarp, __float_as_uint(most));
        if (threadIdx.x % kWarpSize == 0 && bits > 0) {
            atomicMax(
                    reinterpret_cast<unsigned*>(&params.image.facts->residual),
                    bits);
        }
    }
}

/// Normalised rows have components of at most 1, but for roundings.
__global__ void startFactsKernel(
        TensorImageFacts* facts,
        const float* greatest,
        int d) {
    const int scale = exponentFor(greatest ? *greatest : 1.0f, -50, 60);
    // d components below 2^(9 - scale): the sum of their squares to 2^15.
    const int log2d = 32 - __clz(d - 1);
    const int norm = min(log2d + 2 * (9 - scale) - 15, 110);
    *facts = {
            powerOfTwo(scale),
            powerOfTwo(-scale),
            0.0f,
            powerOfTwo(-norm),
            powerOfTwo(norm),
            // Half of the least float16.
            powerOfTwo(max(norm - 25, -126))};
}

template <class T, int Lanes>
void launch(const ImageParams& params, bool areQueries, cudaStream_t stream) {
    const unsigned blocks =
            std::min(blocksFor((params.end - params.first) * Lanes), 16384u);
    if (areQueries) {
        tensorImageKernel<T, Lanes, true>
                <<<blocks, kThreads, 0, stream>>>(params);
    } else {
        tensorImageKernel<T, Lanes, false>
                <<<blocks, kThreads, 0, stream>>>(params);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class T>
void launchFor(ImageParams params, bool areQueries, cudaStream_t stream) {
    params.aligned = params.d % kPiece == 0 &&
            reinterpret_cast<uintptr_t>(params.rows) % 16 == 0;
    switch (params.rowBytes / 16 * std::min(params.slabs, 4)) {
        case 2:
            return launch<T, 2>(params, areQueries, stream);
        case 4:
            return launch<T, 4>(params, areQueries, stream);
        case 8:
            return launch<T, 8>(params, areQueries, stream);
        case 16:
            return launch<T, 16>(params, areQueries, stream);
        default:
            return launch<T, 32>(params, areQueries, stream);
    }
}

void check(const TensorImageProblem& problem) {
    BITS_THROW_IF_NOT_FMT(
            problem.n >= 0, "n = %lld is negative", (long long)problem.n);
    BITS_THROW_IF_NOT_FMT(problem.d >= 1, "d = %d is below 1", problem.d);
    BITS_THROW_IF_NOT_FMT(
            problem.first >= 0,
            "first = %lld is negative",
            (long long)problem.first);
    BITS_THROW_IF_NOT_FMT(problem.rows || problem.n == 0, "rows = nullptr");
    BITS_THROW_IF_NOT_FMT(problem.image.pieces, "image.pieces = nullptr");
    BITS_THROW_IF_NOT_FMT(
            reinterpret_cast<uintptr_t>(problem.image.pieces) % 16 == 0,
            "image.pieces = %p is not aligned to 16",
            problem.image.pieces);
    if (problem.areQueries) {
        BITS_THROW_IF_NOT_FMT(
                problem.first == 0,
                "first = %lld, but images of queries are written as a whole",
                (long long)problem.first);
        BITS_THROW_IF_NOT_FMT(
                problem.image.inverses, "image.inverses = nullptr");
        BITS_THROW_IF_NOT_FMT(
                problem.image.residuals, "image.residuals = nullptr");
        return;
    }
    BITS_THROW_IF_NOT_FMT(problem.image.norms, "image.norms = nullptr");
    BITS_THROW_IF_NOT_FMT(problem.image.normSteps, "image.normSteps = nullptr");
    BITS_THROW_IF_NOT_FMT(problem.image.facts, "image.facts = nullptr");
    BITS_THROW_IF_NOT_FMT(
            problem.greatest || problem.inverseNorms || problem.first > 0,
            "greatest = nullptr");
}

} // namespace

void runTensorImage(const TensorImageProblem& problem, cudaStream_t stream) {
    check(problem);
    const TensorImageLayout layout(problem.first + problem.n, problem.d);
    const ImageParams params{
            problem.rows,
            problem.n,
            problem.first,
            layout.capacity,
            problem.d,
            layout.rowBytes,
            layout.slabs,
            false,
            problem.norms,
            problem.inverseNorms,
            problem.center,
            problem.vectorFacts,
            problem.image};
    if (!problem.areQueries && problem.first == 0) {
        startFactsKernel<<<1, 1, 0, stream>>>(
                problem.image.facts,
                problem.inverseNorms ? nullptr : problem.greatest,
                problem.d);
        BITS_CUDA_CHECK(cudaGetLastError());
    }
    if (params.end == params.first) {
        return;
    }
    switch (problem.type) {
        case DataType::Float32:
            return launchFor<float>(params, problem.areQueries, stream);
        case DataType::Float16:
            return launchFor<__half>(params, problem.areQueries, stream);
        case DataType::BFloat16:
            return launchFor<__nv_bfloat16>(params, problem.areQueries, stream);
    }
    throw Error(formatMessage("type = %d is unknown", int(problem.type)));
}

} // namespace faiss_bits

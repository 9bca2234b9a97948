#include "kernels/knn/RowFacts.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr idx_t kMaxBlocks = 1 << 20; // the kernels stride over the rest

/// A sum over a row and whether the row is fit, by kind.
template <RowFacts kKind>
struct FactOfRow {
    float sum = 0;
    bool fit = true;

    __device__ __forceinline__ void add(float x) {
        if constexpr (kKind == RowFacts::Sum) {
            fit = fit && x >= 0;
            sum += x;
        } else if constexpr (kKind == RowFacts::CanberraRange) {
            const float size = fabsf(x);
            fit = fit && (x == 0 || (size >= 0x1p-40f && size <= 0x1p60f));
        } else if constexpr (kKind == RowFacts::JensenShannonRange) {
            fit = fit && (x == 0 || (x >= 0x1p-100f && x <= 0x1p100f));
        } else {
            sum = fmaf(x, x, sum);
            fit = fit && x == 0; // only zeros: their squares say less
        }
    }

    __device__ __forceinline__ void join(float otherSum, bool otherFit) {
        sum += otherSum;
        fit = fit && otherFit;
    }

    __device__ __forceinline__ float fact() const {
        if constexpr (kKind == RowFacts::Sum) {
            return fit && sum <= 0x1p126f ? sum + 0.0f : -1.0f;
        } else if constexpr (kKind == RowFacts::InverseNorm) {
            return fit ? 0.0f
                    : sum >= 0x1p-80f && sum <= 0x1p120f
                    ? __frcp_rn(__fsqrt_rn(sum))
                    : -1.0f;
        } else {
            return fit ? 0.0f : -1.0f;
        }
    }
};

/// Sums of |x| and x^2 of a row.
struct SumsOfRow {
    float sum = 0;
    float squares = 0;

    __device__ __forceinline__ void add(float x) {
        sum += fabsf(x);
        squares = fmaf(x, x, squares);
    }
    __device__ __forceinline__ void join(float otherSum, float otherSquares) {
        sum += otherSum;
        squares += otherSquares;
    }
};

/// Row i's components to `of`, `Lanes` lanes a row; every lane has the whole
/// then. Row-major.
template <int Lanes, class T, class Of, class Second>
__device__ __forceinline__ void takeRow(
        const T* rows,
        bool exists,
        idx_t i,
        int d,
        Of& of,
        Second Of::*second) {
    const int lane = threadIdx.x % Lanes;
    for (int c = lane; exists && c < d; c += Lanes) {
        of.add(toFloat(rows[i * d + c]));
    }
#pragma unroll
    for (int distance = Lanes / 2; distance >= 1; distance /= 2) {
        const float otherSum = __shfl_xor_sync(kFullWarp, of.sum, distance);
        const Second other = __shfl_xor_sync(kFullWarp, of.*second, distance);
        of.join(otherSum, other);
    }
}

template <RowFacts kKind, class T, int Lanes>
__global__ void rowFactsKernel(const T* rows, idx_t n, int d, float* facts) {
    const idx_t step = idx_t(gridDim.x) * kThreads / Lanes;
    // Whole warps stay in the loop, for the shuffles.
    const idx_t rounded = (n + kWarpSize - 1) / kWarpSize * kWarpSize;
    for (idx_t i = (idx_t(blockIdx.x) * kThreads + threadIdx.x) / Lanes;
         i < rounded;
         i += step) {
        FactOfRow<kKind> of;
        takeRow<Lanes>(rows, i < n, i, d, of, &FactOfRow<kKind>::fit);
        if (threadIdx.x % Lanes == 0 && i < n) {
            facts[i] = of.fact();
        }
    }
}

template <RowFacts kKind, class T>
__global__ void columnFactsKernel(const T* rows, idx_t n, int d, float* facts) {
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < n;
         i += idx_t(gridDim.x) * kThreads) {
        FactOfRow<kKind> of;
        for (int c = 0; c < d; ++c) {
            of.add(toFloat(rows[c * n + i]));
        }
        facts[i] = of.fact();
    }
}

/// Of numbers that are not below 0, and NaN as infinity: their bits have their
/// order.
__device__ __forceinline__ void raise(float* maximum, float value) {
    const float number = value <= 0x1.fffffep127f ? value : INFINITY;
    atomicMax(reinterpret_cast<int*>(maximum), __float_as_int(number));
}

template <class T, int Lanes>
__global__ void rowMaximaKernel(const T* rows, idx_t n, int d, RowMaxima* out) {
    const idx_t step = idx_t(gridDim.x) * kThreads / Lanes;
    const idx_t rounded = (n + kWarpSize - 1) / kWarpSize * kWarpSize;
    float sum = 0;
    float squares = 0;
    for (idx_t i = (idx_t(blockIdx.x) * kThreads + threadIdx.x) / Lanes;
         i < rounded;
         i += step) {
        SumsOfRow of;
        takeRow<Lanes>(rows, i < n, i, d, of, &SumsOfRow::squares);
        // NaN takes the place of all numbers.
        sum = of.sum <= sum ? sum : of.sum;
        squares = of.squares <= squares ? squares : of.squares;
    }
    raise(&out->sum, sum);
    raise(&out->squares, squares);
}

template <class T>
__global__ void columnMaximaKernel(
        const T* rows,
        idx_t n,
        int d,
        RowMaxima* out) {
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < n;
         i += idx_t(gridDim.x) * kThreads) {
        SumsOfRow of;
        for (int c = 0; c < d; ++c) {
            of.add(toFloat(rows[c * n + i]));
        }
        raise(&out->sum, of.sum);
        raise(&out->squares, of.squares);
    }
}

unsigned blocksFor(idx_t threads, idx_t most = kMaxBlocks) {
    return unsigned(
            std::clamp<idx_t>((threads + kThreads - 1) / kThreads, 1, most));
}

template <RowFacts kKind, class T>
void runFactsOf(
        const void* data,
        bool rowMajor,
        idx_t n,
        int d,
        float* facts,
        cudaStream_t stream) {
    const T* rows = static_cast<const T*>(data);
    if (!rowMajor) {
        columnFactsKernel<kKind>
                <<<blocksFor(n), kThreads, 0, stream>>>(rows, n, d, facts);
    } else if (d <= 32) {
        rowFactsKernel<kKind, T, 4>
                <<<blocksFor(n * 4), kThreads, 0, stream>>>(rows, n, d, facts);
    } else {
        rowFactsKernel<kKind, T, 32>
                <<<blocksFor(n * 32), kThreads, 0, stream>>>(rows, n, d, facts);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class T>
void runMaximaOf(
        const void* data,
        bool rowMajor,
        idx_t n,
        int d,
        RowMaxima* out,
        cudaStream_t stream) {
    // Each thread ends with two atomics on the same words.
    constexpr idx_t kMostBlocks = 2048;
    const T* rows = static_cast<const T*>(data);
    if (!rowMajor) {
        columnMaximaKernel<<<blocksFor(n, kMostBlocks), kThreads, 0, stream>>>(
                rows, n, d, out);
    } else if (d <= 32) {
        rowMaximaKernel<T, 4>
                <<<blocksFor(n * 4, kMostBlocks), kThreads, 0, stream>>>(
                        rows, n, d, out);
    } else {
        rowMaximaKernel<T, 32>
                <<<blocksFor(n * 32, kMostBlocks), kThreads, 0, stream>>>(
                        rows, n, d, out);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

/// Calls run(T()) with the type in memory.
template <class Run>
void withType(DataType type, Run run) {
    switch (type) {
        case DataType::Float32:
            return run(float());
        case DataType::Float16:
            return run(__half());
        case DataType::BFloat16:
            return run(__nv_bfloat16());
    }
    throw Error(formatMessage("dataType = %d is unknown", int(type)));
}

void checkRows(const void* rows, idx_t n, int d) {
    BITS_THROW_IF_NOT_FMT(n >= 0, "n = %lld is negative", (long long)n);
    BITS_THROW_IF_NOT_FMT(d >= 1, "d = %d is below 1", d);
    BITS_THROW_IF_NOT_FMT(rows || n == 0, "rows = nullptr");
}

} // namespace

void runRowFacts(
        RowFacts kind,
        const void* rows,
        DataType dataType,
        bool rowMajor,
        idx_t n,
        int d,
        float* facts,
        cudaStream_t stream) {
    checkRows(rows, n, d);
    if (n == 0 || kind == RowFacts::None) {
        return;
    }
    BITS_THROW_IF_NOT_FMT(facts, "facts = nullptr");
    withType(dataType, [&](auto component) {
        using T = decltype(component);
        const auto run = kind == RowFacts::Sum ? runFactsOf<RowFacts::Sum, T>
                : kind == RowFacts::CanberraRange
                ? runFactsOf<RowFacts::CanberraRange, T>
                : kind == RowFacts::JensenShannonRange
                ? runFactsOf<RowFacts::JensenShannonRange, T>
                : runFactsOf<RowFacts::InverseNorm, T>;
        run(rows, rowMajor, n, d, facts, stream);
    });
}

void runRowMaxima(
        const void* rows,
        DataType dataType,
        bool rowMajor,
        idx_t n,
        int d,
        RowMaxima* out,
        cudaStream_t stream) {
    checkRows(rows, n, d);
    BITS_THROW_IF_NOT_FMT(out, "out = nullptr");
    BITS_CUDA_CHECK(cudaMemsetAsync(out, 0, sizeof(*out), stream));
    if (n == 0) {
        return;
    }
    withType(dataType, [&](auto component) {
        using T = decltype(component);
        runMaximaOf<T>(rows, rowMajor, n, d, out, stream);
    });
}

} // namespace faiss_bits

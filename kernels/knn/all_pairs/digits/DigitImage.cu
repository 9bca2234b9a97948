#include "kernels/knn/all_pairs/digits/DigitImage.h"

#include <algorithm>
#include <type_traits>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Error.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/knn/certified/PairEstimate.cuh"

namespace faiss_bits {

namespace {

using Layout = DigitImageLayout;
constexpr int kMostDigits = Layout::kMostDigits;

constexpr int kThreads = 256;
constexpr int kBlocks = 4;   // of a multiprocessor
constexpr int kTogether = 4; // components of a lane, side by side
constexpr int kStep = kTogether * kWarpSize;

__device__ __forceinline__ double warpSum(double value) {
#pragma unroll
    for (int distance = kWarpSize / 2; distance >= 1; distance /= 2) {
        value += __shfl_xor_sync(kFullWarp, value, distance);
    }
    return value;
}

__device__ __forceinline__ double warpGreatest(double value) {
#pragma unroll
    for (int distance = kWarpSize / 2; distance >= 1; distance /= 2) {
        value = fmax(value, __shfl_xor_sync(kFullWarp, value, distance));
    }
    return value;
}

__device__ __forceinline__ double powerOfTwo(int exponent) {
    return __hiloint2double((exponent + 1023) << 20, 0);
}

/// Of all lanes' numbers, from 0; -1: none.
__device__ __forceinline__ int lowestBit(int64_t ones) {
    const uint32_t low = __reduce_or_sync(kFullWarp, uint32_t(ones));
    const uint32_t high = __reduce_or_sync(kFullWarp, uint32_t(ones >> 32));
    return __ffsll((long long)(uint64_t(high) << 32 | low)) - 1;
}

/// 0 of what is not far within float32.
__device__ __forceinline__ float powerOfTwoFloat(int exponent) {
    return exponent > -120 && exponent < 120
            ? __int_as_float((exponent + 127) << 23)
            : 0.0f;
}

/// Whether a multiple of a unit by a power of two is one by an integer: 0 where
/// a small number vanished is not taken for one.
__device__ __forceinline__ bool isWhole(float x, float multiple) {
    return x == 0.0f ||
            (fabsf(multiple) >= 1.0f && fabsf(multiple) < 0x1p50f &&
             rintf(multiple) == multiple);
}

/// Components of a lane, side by side.
template <class T>
struct alignas(kTogether * sizeof(T)) Components {
    T values[kTogether];
};

/// From component c on; 0 behind the last of d.
template <class T>
__device__ __forceinline__ void readComponents(
        float (&to)[kTogether],
        const T* x,
        int c,
        int d) {
    const bool areAligned =
            reinterpret_cast<uintptr_t>(x) % sizeof(Components<T>) == 0;
    if (areAligned && c + kTogether <= d) {
        const auto from = *reinterpret_cast<const Components<T>*>(x + c);
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            to[i] = toFloat(from.values[i]);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
        to[i] = c + i < d ? toFloat(x[c + i]) : 0.0f;
    }
}

/// The digits of four integers, the greatest first: those of one number in the
/// bytes of one word become those of one digit.
template <int kDigits>
__device__ __forceinline__ void takeDigits(
        uint32_t (&words)[kDigits],
        const int64_t (&from)[kTogether]) {
    static_assert(kTogether == 4 && (kDigits == 4 || kDigits == 5));
    // With 128 more each, a digit is a byte: none is below 0.
    constexpr int64_t kMore = kDigits == 5 ? 0x8080808080 : 0x80808080;
    uint32_t low[kTogether];
    uint32_t high[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
        low[i] = uint32_t(from[i] + kMore);
        high[i] = uint32_t(uint64_t(from[i] + kMore) >> 32);
    }
    const uint32_t low01 = __byte_perm(low[0], low[1], 0x5140);
    const uint32_t low23 = __byte_perm(low[2], low[3], 0x5140);
    const uint32_t high01 = __byte_perm(low[0], low[1], 0x7362);
    const uint32_t high23 = __byte_perm(low[2], low[3], 0x7362);
    constexpr uint32_t kLess = 0x80808080;
    words[kDigits - 1] = __byte_perm(low01, low23, 0x5410) ^ kLess;
    words[kDigits - 2] = __byte_perm(low01, low23, 0x7632) ^ kLess;
    words[kDigits - 3] = __byte_perm(high01, high23, 0x5410) ^ kLess;
    words[kDigits - 4] = __byte_perm(high01, high23, 0x7632) ^ kLess;
    if constexpr (kDigits == 5) {
        words[0] = __byte_perm(
                           __byte_perm(high[0], high[1], 0x0040),
                           __byte_perm(high[2], high[3], 0x0040),
                           0x5410) ^
                kLess;
    }
}

/// A warp a row.
template <Metric kMetric, int kDigits, class T>
struct DigitsOfRow {
    static constexpr bool kIsL2 = kMetric == Metric::L2; // less a center

    const DigitImageParams& params;
    const T* x;
    int d; // 0 behind the last row

    /// Of each component the one in the middle of three vectors.
    __device__ __forceinline__ void readCenter(float (&to)[kTogether], int c)
            const {
        withVectors(params.centers, [&](const auto* data) {
            const int64_t stride = params.centers.rowStride;
            float some[3][kTogether];
#pragma unroll
            for (int j = 0; j < 3; ++j) {
                readComponents(
                        some[j], data + params.centerRows[j] * stride, c, d);
            }
#pragma unroll
            for (int i = 0; i < kTogether; ++i) {
                const float least = fminf(some[0][i], some[1][i]);
                const float most = fmaxf(some[0][i], some[1][i]);
                const float middle = fmaxf(least, fminf(most, some[2][i]));
                to[i] = isfinite(middle) ? middle : 0.0f;
            }
        });
    }

    __device__ __forceinline__ void run(idx_t row) const {
        const int lane = threadIdx.x % kWarpSize;
        double greatest = 0;
        double square = 0;
        bool finite = true;
#pragma unroll 2
        for (int c = lane * kTogether; c < d; c += kStep) {
            float components[kTogether];
            float from[kTogether] = {};
            readComponents(components, x, c, d);
            if constexpr (kIsL2) {
                readCenter(from, c);
            }
#pragma unroll
            for (int i = 0; i < kTogether; ++i) {
                double value = components[i];
                if constexpr (kIsL2) {
                    value -= double(from[i]);
                }
                finite = finite && isfinite(components[i]);
                greatest = fmax(greatest, fabs(value));
                square = __fma_rn(value, value, square);
            }
        }
        finite = __all_sync(kFullWarp, finite);
        greatest = finite ? warpGreatest(greatest) : 0.0;
        square = warpSum(square);
        // |x| / 2^exponent is 127 / 128 at most: the first digit fits.
        int exponent = 0;
        if (greatest > 0) {
            exponent = (__double2hiint(greatest) >> 20) - 1022;
            if (greatest > powerOfTwo(exponent) * (127.0 / 128)) {
                ++exponent;
            }
        }
        constexpr int kBits = 8 * kDigits - 1;
        const double inverse =
                greatest > 0 ? powerOfTwo(kBits - exponent) : 0.0;
        // Of what is a multiple of the second digit nothing is lost.
        const float unit = greatest > 0 ? powerOfTwoFloat(15 - exponent) : 0.0f;
        bool isShort = unit > 0.0f;
        double rest = 0;
        int squares[kDigits] = {}; // of the digits
        int64_t ones = 0;          // bits that some component has
        const idx_t tile = row / Layout::kTileRows;
        const int inTile = int(row % Layout::kTileRows);
        constexpr int kSlabBytes = kDigits * Layout::kDigitBytes;
        uint8_t* const out = params.to.pieces +
                tile * params.slabs * kSlabBytes +
                inTile * Layout::kSlabComponents;
        const int end = params.slabs * Layout::kSlabComponents;
        for (int c = lane * kTogether; c < end; c += kStep) {
            float components[kTogether] = {};
            float from[kTogether] = {};
            if (finite) {
                readComponents(components, x, c, d);
                if constexpr (kIsL2) {
                    readCenter(from, c);
                }
            }
            int64_t integers[kTogether];
#pragma unroll
            for (int i = 0; i < kTogether; ++i) {
                double value = components[i];
                if constexpr (kIsL2) {
                    value -= double(from[i]);
                    if (isShort) {
                        isShort =
                                isWhole(components[i], components[i] * unit) &&
                                isWhole(from[i], from[i] * unit);
                    }
                }
                const double multiple = value * inverse;
                constexpr double kInteger = 0x1.8p52; // its last bit is 1
                const double rounded = multiple + kInteger;
                const double off = multiple - (rounded - kInteger);
                rest = __fma_rn(off, off, rest);
                integers[i] = __double_as_longlong(rounded) -
                        __double_as_longlong(kInteger);
                ones |= integers[i];
            }
            uint32_t words[kDigits];
            takeDigits(words, integers);
            const int slab = c / Layout::kSlabComponents;
            const int byte = c % Layout::kSlabComponents;
            const int place = ((byte / 16) ^ (inTile / 2 % 4)) * 16 + byte % 16;
#pragma unroll
            for (int digit = 0; digit < kDigits; ++digit) {
                const int word = int(words[digit]);
                squares[digit] = __dp4a(word, word, squares[digit]);
                *reinterpret_cast<uint32_t*>(
                        out + slab * kSlabBytes + digit * Layout::kDigitBytes +
                        place) = words[digit];
            }
        }
        isShort = __all_sync(kFullWarp, isShort);
        rest = warpSum(rest);
        double parts[kMostDigits] = {};
        uint32_t used = 1;
#pragma unroll
        for (int digit = 1; digit < kDigits; ++digit) {
            const int sum = __reduce_add_sync(kFullWarp, squares[digit]);
            used = sum > 0 ? digit + 1 : used;
            parts[digit] = greatest > 0
                    ? sqrt(double(sum)) * powerOfTwo(exponent - 7 - 8 * digit)
                    : 0.0;
        }
        if constexpr (!kIsL2) {
            isShort = rest == 0 && parts[3] + parts[4] == 0;
        }
        const int unitBits = max(lowestBit(ones), 0);
        if (lane != 0) {
            return;
        }
        // Up: what sums and roots are rounded by.
        constexpr double kUp = 1 + 0x1p-30;
        const auto up = [&](double value) {
            return __double2float_ru(value * kUp);
        };
        DigitRow facts;
        facts.size = EstimateRow<kMetric>::sizeOf(square);
        facts.scale = greatest > 0 ? powerOfTwo(exponent - 23) : 0.0;
        const double off = isShort || greatest == 0
                ? 0.0
                : sqrt(rest) * powerOfTwo(exponent - kBits) * kUp +
                        facts.scale * 0x1p-22;
        facts.length = up(sqrt(square) + off);
        facts.rest = finite ? up(off) : INFINITY;
        facts.parts[0] = up(parts[1]);
        facts.parts[1] = up(parts[2] + parts[3] + parts[4]);
        facts.parts[2] = up(parts[3] + parts[4]);
        facts.parts[3] = up(parts[4]);
        facts.ones = !isShort || !finite || kIsL2
                ? INFINITY
                : up(sqrt(square) * inverse * powerOfTwo(-unitBits));
        params.to.rows[row] = facts;
        // Mostly another row has said so.
        if (*reinterpret_cast<volatile uint32_t*>(params.to.used) < used) {
            atomicMax(params.to.used, used);
        }
    }
};

template <Metric kMetric, int kDigits>
__global__ void __launch_bounds__(kThreads, kBlocks)
        digitImageKernel(const __grid_constant__ DigitImageParams params) {
    waitForPrevious();
    const idx_t thread = idx_t(blockIdx.x) * kThreads + threadIdx.x;
    const idx_t threads = idx_t(gridDim.x) * kThreads;
    if (thread == 0 && params.clearOne) {
        *params.clearOne = 0;
    }
    for (idx_t i = thread; i < params.numClear; i += threads) {
        params.clear[i] = 0;
    }
    for (idx_t row = thread / kWarpSize; row < params.capacity;
         row += threads / kWarpSize) {
        withVectors(params.from, [&](const auto* data) {
            using T = std::remove_cvref_t<decltype(*data)>;
            DigitsOfRow<kMetric, kDigits, T>{
                    params,
                    data + row * params.from.rowStride,
                    row < params.numRows ? params.d : 0}
                    .run(row);
        });
    }
}

template <Metric kMetric>
auto kernelOf(int digits) {
    switch (digits) {
        case 4:
            return digitImageKernel<kMetric, 4>;
        case 5:
            return digitImageKernel<kMetric, 5>;
        default:
            throw Error(
                    formatMessage("digits = %d are neither 4 nor 5", digits));
    }
}

auto kernelOf(const DigitImageParams& params) {
    switch (params.metric) {
        case Metric::InnerProduct:
            return kernelOf<Metric::InnerProduct>(params.digits);
        case Metric::Cosine:
            return kernelOf<Metric::Cosine>(params.digits);
        default:
            return kernelOf<Metric::L2>(params.digits);
    }
}

} // namespace

void launchDigitImage(const DigitImageParams& params, cudaStream_t stream) {
    constexpr idx_t kWarps = kThreads / kWarpSize;
    constexpr idx_t kMostBlocks = 1 << 14;
    launchAfterPrevious(
            kernelOf(params),
            unsigned(std::min(
                    (params.capacity + kWarps - 1) / kWarps, kMostBlocks)),
            kThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits

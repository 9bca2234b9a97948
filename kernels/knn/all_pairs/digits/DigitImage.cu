#include "kernels/knn/all_pairs/digits/DigitImage.h"

#include <algorithm>
#include <type_traits>

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/knn/certified/PairEstimate.cuh"

namespace faiss_bits {

namespace {

using Layout = DigitImageLayout;
constexpr int kMostDigits = Layout::kMostDigits;

constexpr int kThreads = 256;
constexpr int kTogether = 4; // components of a lane, side by side
constexpr int kAhead = 8;    // components on their way
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

/// A warp a row.
template <class T>
struct DigitsOfRow {
    const DigitImageParams& params;
    const T* x;
    int d; // 0 behind the last row

    __device__ __forceinline__ float centerAt(int c) const {
        if (!params.center.data) {
            return 0.0f;
        }
        float value = 0.0f;
        withVectors(params.center, [&](const auto* center) {
            value = toFloat(center[c]);
        });
        return isfinite(value) ? value : 0.0f;
    }

    __device__ __forceinline__ double sizeOf(double square) const {
        switch (params.metric) {
            case Metric::InnerProduct:
                return EstimateRow<Metric::InnerProduct>::sizeOf(square);
            case Metric::Cosine:
                return EstimateRow<Metric::Cosine>::sizeOf(square);
            default:
                return EstimateRow<Metric::L2>::sizeOf(square);
        }
    }

    __device__ __forceinline__ void run(idx_t row) const {
        const int lane = threadIdx.x % kWarpSize;
        double greatest = 0;
        double square = 0;
        bool finite = true;
        for (int first = lane; first < d; first += kAhead * kWarpSize) {
            float components[kAhead];
            float from[kAhead];
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                const int c = first + i * kWarpSize;
                components[i] = c < d ? toFloat(x[c]) : 0.0f;
                from[i] = c < d ? centerAt(c) : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                const double value = double(components[i]) - double(from[i]);
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
        const int digits = params.digits;
        const int bits = 8 * digits - 1;
        const double inverse = greatest > 0 ? powerOfTwo(bits - exponent) : 0.0;
        // Of what is a multiple of the second digit nothing is lost.
        const float unit = greatest > 0 ? powerOfTwoFloat(15 - exponent) : 0.0f;
        bool isShort = unit > 0.0f;
        double rest = 0;
        int squares[kMostDigits] = {}; // of the digits
        int64_t ones = 0;              // bits that some component has
        const idx_t tile = row / Layout::kTileRows;
        const int inTile = int(row % Layout::kTileRows);
        const int slabBytes = digits * Layout::kDigitBytes;
        uint8_t* const out = params.to.pieces +
                tile * params.slabs * slabBytes +
                inTile * Layout::kSlabComponents;
        for (int first = 0; first < params.slabs * Layout::kSlabComponents;
             first += kStep) {
            const int c = first + lane * kTogether;
            uint32_t words[kMostDigits] = {};
#pragma unroll
            for (int i = 0; i < kTogether; ++i) {
                const bool isThere = c + i < d && finite;
                const float component = isThere ? toFloat(x[c + i]) : 0.0f;
                const float from = isThere ? centerAt(c + i) : 0.0f;
                isShort = isShort && isWhole(component, component * unit) &&
                        isWhole(from, from * unit);
                const double multiple =
                        (double(component) - double(from)) * inverse;
                constexpr double kInteger = 0x1.8p52; // its last bit is 1
                const double rounded = multiple + kInteger;
                const double off = multiple - (rounded - kInteger);
                rest = __fma_rn(off, off, rest);
                int64_t left = __double_as_longlong(rounded) -
                        __double_as_longlong(kInteger);
                ones |= left;
#pragma unroll
                for (int digit = kMostDigits - 1; digit >= 0; --digit) {
                    if (digit < digits) {
                        const int value = int8_t(left);
                        left = (left - value) >> 8;
                        words[digit] |= uint32_t(value & 0xff) << 8 * i;
                        squares[digit] += value * value;
                    }
                }
            }
            const int slab = c / Layout::kSlabComponents;
            if (slab < params.slabs) {
                const int byte = c % Layout::kSlabComponents;
                const int place =
                        ((byte / 16) ^ (inTile / 2 % 4)) * 16 + byte % 16;
#pragma unroll
                for (int digit = 0; digit < kMostDigits; ++digit) {
                    if (digit < digits) {
                        *reinterpret_cast<uint32_t*>(
                                out + slab * slabBytes +
                                digit * Layout::kDigitBytes + place) =
                                words[digit];
                    }
                }
            }
        }
        isShort = __all_sync(kFullWarp, isShort);
        rest = warpSum(rest);
        double parts[kMostDigits];
        uint32_t used = 1;
#pragma unroll
        for (int digit = 1; digit < kMostDigits; ++digit) {
            const int sum = __reduce_add_sync(kFullWarp, squares[digit]);
            used = sum > 0 ? digit + 1 : used;
            parts[digit] = greatest > 0
                    ? sqrt(double(sum)) * powerOfTwo(exponent - 7 - 8 * digit)
                    : 0.0;
        }
        if (params.metric != Metric::L2) {
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
        facts.size = sizeOf(square);
        facts.scale = greatest > 0 ? powerOfTwo(exponent - 23) : 0.0;
        const double off = isShort || greatest == 0
                ? 0.0
                : sqrt(rest) * powerOfTwo(exponent - bits) * kUp +
                        facts.scale * 0x1p-22;
        facts.length = up(sqrt(square) + off);
        facts.rest = finite ? up(off) : INFINITY;
        facts.parts[0] = up(parts[1]);
        facts.parts[1] = up(parts[2] + parts[3] + parts[4]);
        facts.parts[2] = up(parts[3] + parts[4]);
        facts.parts[3] = up(parts[4]);
        facts.ones = !isShort || !finite || params.metric == Metric::L2
                ? INFINITY
                : up(sqrt(square) * inverse * powerOfTwo(-unitBits));
        params.to.rows[row] = facts;
        // Mostly another row has said so.
        if (*reinterpret_cast<volatile uint32_t*>(params.to.used) < used) {
            atomicMax(params.to.used, used);
        }
    }
};

/// It spills 48 bytes a thread (sm_90, CUDA 13.0), beside reads of whole rows.
__global__ void __launch_bounds__(kThreads)
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
            DigitsOfRow<T>{
                    params,
                    data + row * params.from.rowStride,
                    row < params.numRows ? params.d : 0}
                    .run(row);
        });
    }
}

} // namespace

void launchDigitImage(const DigitImageParams& params, cudaStream_t stream) {
    constexpr idx_t kWarps = kThreads / kWarpSize;
    constexpr idx_t kMostBlocks = 1 << 14;
    launchAfterPrevious(
            digitImageKernel,
            unsigned(std::min(
                    (params.capacity + kWarps - 1) / kWarps, kMostBlocks)),
            kThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits

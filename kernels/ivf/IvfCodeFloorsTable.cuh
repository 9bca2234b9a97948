/// What IvfCodeFloors.cuh has of a list: numbers of float16 that codes are
/// multiplied with.
#pragma once

#include "kernels/device/MmaFloat16.cuh"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/IvfFloorBound.h"
#include "kernels/ivf/IvfFloors.h"

namespace faiss_bits {

template <Metric kMetric>
struct IvfCodeFloorsTable {
    static constexpr int kChunk = 16; // components of a matrix instruction
    static constexpr int kStep = 64;  // that are read together

    /// Of a list, beside its numbers.
    struct Scales {
        float inverse; // 1 / S
        float base;    // what all keys have; of inner products
    };

    /// 16 bytes: four for a component, of whole steps; of L2 behind them two
    /// more for each.
    BITS_HOST_DEVICE static constexpr int words(int d) {
        return kMetric == Metric::L2 ? ofEntries(d) / 2 * 3 : ofEntries(d);
    }

    static constexpr int kOfLane = kMostFloorDims / kWarpSize;

    /// Of a list's centroid what a lane has of it.
    struct Center {
        float values[kOfLane] = {};

        __device__ __forceinline__ void read(
                const IvfParams& search,
                uint32_t list) {
            const float* from = search.lists.decoding.centroids;
            if (from) {
                from += int64_t(list) * search.d;
#pragma unroll
                for (int i = 0; i < kOfLane; ++i) {
                    const int c = int(threadIdx.x % kWarpSize) + i * kWarpSize;
                    values[i] = c < search.d ? __ldg(from + c) : 0.0f;
                }
            }
        }
    };

    /// By a warp; zeros behind the last component. Returns what the lane adds
    /// to the list's bound. query, starts and steps: in shared memory, as what
    /// is written.
    __device__ __forceinline__ static float make(
            const Center& center,
            int d,
            const float* query,
            const float* starts,
            const float* steps,
            uint4* table,
            Scales& scales) {
        const int lane = int(threadIdx.x) % kWarpSize;
        ivf_code::PairSums sums;
        ivf_code::Component components[kOfLane];
        float greatest = 0;
#pragma unroll
        for (int i = 0; i < kOfLane; ++i) {
            const int c = lane + i * kWarpSize;
            components[i] = {0, 0, 0};
            if (c < d) {
                components[i] = ivf_code::componentOf<kMetric>(
                        starts[c], steps[c], center.values[i], query[c], sums);
                greatest =
                        fmaxf(greatest,
                              ivf_code::magnitudeOf<kMetric>(components[i]));
            }
        }
        // Ordered as integers are.
        greatest = __uint_as_float(
                __reduce_max_sync(kFullWarp, __float_as_uint(greatest)));
        const float scale = ivf_code::scaleOf<kMetric>(greatest);
        auto* halves = reinterpret_cast<uint16_t*>(table);
#pragma unroll
        for (int i = 0; i < kOfLane; ++i) {
            const int c = lane + i * kWarpSize;
            ivf_code::Entry entry = {0, 0, 0};
            if (c < d) {
                entry = ivf_code::entryOf<kMetric>(components[i], scale, sums);
            }
            if (c < 4 * ofEntries(d)) {
                const int at = placeOf(c);
                uint16_t* to = halves + at / 4 * 8 + at % 4;
                to[0] = uint16_t(toFloat16(entry.first, 0));
                to[4] = uint16_t(toFloat16(entry.second, 0));
                if constexpr (kMetric == Metric::L2) {
                    halves[8 * ofEntries(d) + at] =
                            uint16_t(toFloat16(entry.code, 0));
                }
            }
        }
        const float base = kMetric == Metric::L2 ? 0.0f : sumOfLanes(sums.base);
        if (lane == 0) {
            scales = {ivf_code::inverseOf(scale), base};
        }
        return sums.size;
    }

    /// The list's bound, of what all lanes add to it.
    __device__ __forceinline__ static float boundOf(
            float ofLane,
            const Scales& scales,
            int d) {
        return ivf_code::boundOf<kMetric>(
                sumOfLanes(ofLane), scales.inverse, d);
    }

    /// Of the lane's components of a chunk: (2 t, 2 t + 1) and (2 t + 8, 2 t +
    /// 9) of lane t of four.
    struct Numbers {
        uint32_t factors[2];
        uint32_t terms[2];
        uint32_t codes[2]; ///< of L2
        /// Of inner products: the first column of a matrix has the first parts,
        /// the second one the others.
        uint32_t query[2];
    };

    __device__ __forceinline__ static Numbers numbersOf(
            const uint4* table,
            int d,
            int chunk) {
        const int at = chunk * 4 + int(threadIdx.x) % 4;
        const uint4 words = table[at];
        Numbers numbers = {{words.x, words.y}, {words.z, words.w}, {}, {}};
        if constexpr (kMetric == Metric::L2) {
            const uint2 codes =
                    reinterpret_cast<const uint2*>(table + ofEntries(d))[at];
            numbers.codes[0] = codes.x;
            numbers.codes[1] = codes.y;
        } else {
            const uint32_t column = threadIdx.x % kWarpSize / 4;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                numbers.query[i] = column == 0 ? numbers.factors[i]
                        : column == 1          ? numbers.terms[i]
                                               : 0;
            }
        }
        return numbers;
    }

    /// What a matrix instruction has of two codes: differences, or the codes.
    __device__ __forceinline__ static uint32_t valueOf(
            uint32_t codes,
            const Numbers& numbers,
            int i) {
        if constexpr (kMetric == Metric::L2) {
            const auto halvesOf = [](const uint32_t& word) -> const __half2& {
                return reinterpret_cast<const __half2&>(word);
            };
            const __half2 value = __hfma2(
                    __hsub2(halvesOf(codes), halvesOf(numbers.codes[i])),
                    halvesOf(numbers.factors[i]),
                    halvesOf(numbers.terms[i]));
            return reinterpret_cast<const uint32_t&>(value);
        } else {
            return codes;
        }
    }

    /// Of inner products: of what two columns have.
    __device__ __forceinline__ static float sumOf(float first, float second) {
        return fmaf(second, ivf_code::kOfRest, first);
    }

    __device__ __forceinline__ static float keyOf(
            float sum,
            const Scales& scales) {
        return ivf_code::keyOfCodes<kMetric>(sum, scales.inverse, scales.base);
    }

   private:
    BITS_HOST_DEVICE static constexpr int ofEntries(int d) {
        return (d + kStep - 1) / kStep * kStep / 4;
    }

    /// Four components that a lane has of a chunk lie side by side.
    __device__ __forceinline__ static int placeOf(int c) {
        return c / kChunk * kChunk + c % 8 / 2 * 4 + c % kChunk / 8 * 2 + c % 2;
    }

    __device__ __forceinline__ static float sumOfLanes(float value) {
#pragma unroll
        for (int lanes = kWarpSize / 2; lanes >= 1; lanes /= 2) {
            value += __shfl_xor_sync(kFullWarp, value, lanes);
        }
        return value;
    }
};

} // namespace faiss_bits

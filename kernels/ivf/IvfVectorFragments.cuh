/// Vectors of a list less its center as a warp's matrix instructions take them,
/// 32 of them, in float16 and in registers.
///
/// Vectors 4 g to 4 g + 3 are rows g and g + 8 of two products, g = lane / 4:
/// of interleaved lists a lane reads the four in one load.
#pragma once

#include "kernels/device/MmaFloat16.cuh"
#include "kernels/ivf/IvfEstimateTerms.cuh"
#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

template <Metric kMetric, class Vectors, int kDepth>
struct IvfVectorFragments {
    static constexpr int kSteps = kDepth / 16;

    uint32_t values[2][kSteps][4];
    /// What bounds of keys have of a vector: for L2 a term, else a length. NaN:
    /// there is no bound, or no vector.
    float terms[4];
    float scale;   // of values, a power of two
    float inverse; // 1 / scale

    // Of a warp: place.first is its first vector, and the list has numVectors
    // from there on. centerAt(c): component c of the center, 0 behind the last.

    /// All components, of no more than kDepth, with their terms.
    template <class Center>
    __device__ __forceinline__ void loadWhole(
            const Vectors& vectors,
            const TilePlace& place,
            int numVectors,
            const IvfParams& params,
            bool isLower,
            const Center& centerAt) {
        // A scale from some of the components; where it does not suit all, they
        // are read again.
        const int middle = (params.d + 15) / 16 / 2 * 16;
        float squares[4] = {};
        readSixteen(
                vectors,
                place,
                numVectors,
                middle,
                params.d,
                [&](int i, float4 x) {
                    addSquares(squares, x, centerAt(middle + component(i)));
                });
        scale = ivf_estimate::scaleOf(
                ivf_estimate::kSampledSquares * float(params.d) *
                greatestOf(squares, numVectors));
        for (;;) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                squares[j] = 0;
            }
            loadPart<true>(
                    vectors, place, numVectors, 0, params.d, centerAt, squares);
            const float greatest = greatestOf(squares, numVectors);
            const float suited = ivf_estimate::scaleOf(greatest);
            if (ivf_estimate::isSuited(scale, suited)) {
                setTerms(squares, greatest, numVectors, params, isLower);
                return;
            }
            scale = suited;
        }
    }

    /// Sums of all components, and the scale; without values.
    template <class Center>
    __device__ __forceinline__ void measure(
            const Vectors& vectors,
            const TilePlace& place,
            int numVectors,
            const IvfParams& params,
            bool isLower,
            const Center& centerAt) {
        float squares[4] = {};
#pragma unroll 2
        for (int begin = 0; begin < params.d; begin += 16) {
            readSixteen(
                    vectors,
                    place,
                    numVectors,
                    begin,
                    params.d,
                    [&](int i, float4 x) {
                        addSquares(squares, x, centerAt(begin + component(i)));
                    });
        }
        const float greatest = greatestOf(squares, numVectors);
        scale = ivf_estimate::scaleOf(greatest);
        setTerms(squares, greatest, numVectors, params, isLower);
    }

    /// After measure(): components `begin` to begin + kDepth - 1, zeros behind
    /// the last.
    template <class Center>
    __device__ __forceinline__ void load(
            const Vectors& vectors,
            const TilePlace& place,
            int numVectors,
            int begin,
            int d,
            const Center& centerAt) {
        float squares[4];
        loadPart<false>(
                vectors, place, numVectors, begin, d, centerAt, squares);
    }

    /// Of this lane's four, among the warp's.
    __device__ __forceinline__ static int firstVector() {
        return int(threadIdx.x) % kWarpSize / 4 * 4;
    }

   private:
    /// A lane's four components of 16.
    __device__ __forceinline__ static int component(int i) {
        return int(threadIdx.x) % 4 * 2 + offsetOf(i);
    }
    __device__ __forceinline__ static constexpr int offsetOf(int i) {
        return i % 2 + i / 2 * 8;
    }

    /// body(i, x): component `component(i)` from `begin` on of the lane's four
    /// vectors, 0 behind the last.
    template <class Body>
    __device__ __forceinline__ static void readSixteen(
            const Vectors& vectors,
            const TilePlace& place,
            int numVectors,
            int begin,
            int d,
            const Body& body) {
        float4 x[4] = {};
        if (numVectors > 0) {
            const int first = begin + component(0);
            const auto fours =
                    foursOf(vectors, place, firstVector(), numVectors, first);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if (first + offsetOf(i) < d) {
                    x[i] = fours(offsetOf(i));
                }
            }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            body(i, x[i]);
        }
    }

    __device__ __forceinline__ static void addSquares(
            float (&squares)[4],
            const float4& x,
            float center) {
        const auto add = [&](int j, float value) {
            const float r = value - center;
            squares[j] = __fmaf_rn(r, r, squares[j]);
        };
        add(0, x.x);
        add(1, x.y);
        add(2, x.z);
        add(3, x.w);
    }

    /// Sums over the four lanes of a vector; the greatest of the warp's that
    /// has a bound.
    __device__ __forceinline__ static float greatestOf(
            float (&squares)[4],
            int numVectors) {
        float most = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int distance = 1; distance < 4; distance *= 2) {
                squares[j] += __shfl_xor_sync(kFullWarp, squares[j], distance);
            }
            if (firstVector() + j < numVectors &&
                squares[j] <= ivf_estimate::kGreatest) {
                most = fmaxf(most, squares[j]);
            }
        }
#pragma unroll
        for (int distance = 4; distance < kWarpSize; distance *= 2) {
            most = fmaxf(most, __shfl_xor_sync(kFullWarp, most, distance));
        }
        return most;
    }

    __device__ __forceinline__ void setTerms(
            const float (&squares)[4],
            float greatest,
            int numVectors,
            const IvfParams& params,
            bool isLower) {
        inverse = ivf_estimate::inverseOf(scale);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            terms[j] = firstVector() + j < numVectors ? ivf_estimate::ofVector(
                                                                kMetric,
                                                                params.bound,
                                                                squares[j],
                                                                greatest,
                                                                isLower)
                                                      : float(NAN);
        }
    }

    template <bool kSums, class Center>
    __device__ __forceinline__ void loadPart(
            const Vectors& vectors,
            const TilePlace& place,
            int numVectors,
            int begin,
            int d,
            const Center& centerAt,
            float (&squares)[4]) {
        const int first = begin + component(0);
        const auto fours =
                foursOf(vectors, place, firstVector(), numVectors, first);
#pragma unroll
        for (int s = 0; s < kSteps; ++s) {
            float4 x[4] = {};
            if (numVectors > 0 && begin + s * 16 < d) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int offset = s * 16 + offsetOf(i);
                    if (first + offset < d) {
                        x[i] = fours(offset);
                    }
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const float center = centerAt(first + s * 16 + offsetOf(i));
                    const auto move = [&](int j, float& value) {
                        const float r = value - center;
                        if constexpr (kSums) {
                            squares[j] = __fmaf_rn(r, r, squares[j]);
                        }
                        value = r * scale;
                    };
                    move(0, x[i].x);
                    move(1, x[i].y);
                    move(2, x[i].z);
                    move(3, x[i].w);
                }
            }
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float4& one = x[2 * i];
                const float4& two = x[2 * i + 1];
                values[0][s][2 * i] = toFloat16(one.x, two.x);
                values[0][s][2 * i + 1] = toFloat16(one.y, two.y);
                values[1][s][2 * i] = toFloat16(one.z, two.z);
                values[1][s][2 * i + 1] = toFloat16(one.w, two.w);
            }
        }
    }
};

} // namespace faiss_bits

/// Vectors of a list less its center as a warp's matrix instructions take them,
/// 32 of them, in float16 and in registers.
///
/// Vectors 4 g to 4 g + 3 are rows g and g + 8 of two products, g = lane / 4: a
/// lane reads the four together (ListBlocks.cuh).
#pragma once

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/device/MmaFloat16.cuh"
#include "kernels/ivf/IvfEstimateTerms.cuh"
#include "kernels/ivf/IvfVectorReads.cuh"
#include "kernels/ivf/ListBlocks.cuh"

namespace faiss_bits {

template <Metric kMetric, class Vectors, int kDepth>
struct IvfVectorFragments : IvfVectorReads {
    static constexpr int kSteps = kDepth / 16;

    uint32_t values[2][kSteps][4];
    /// What bounds of keys have of a vector: for L2 a term, else a length. NaN:
    /// there is no bound, or no vector.
    float terms[4];
    float scale;   // of values, a power of two
    float inverse; // 1 / scale
    /// slackOfVectors(), of the warp's; infinite where one has no bound.
    float slack;

    // Of a warp: place.first is its first vector, and the list has numVectors
    // from there on. tables: ListTables.cuh.

    /// Of shared memory, while loadWhole() runs.
    static constexpr int kSlicesBytes =
            Vectors::kCoding == ListCoding::Product ? 2 << 14 : 0;

    /// All components, of no more than kDepth, with their terms. All threads of
    /// the block call it, of one list, behind a barrier; slices: kSlicesBytes.
    template <class Tables>
    __device__ __forceinline__ void loadWhole(
            const Vectors& vectors,
            const TilePlace& place,
            int numVectors,
            const IvfParams& params,
            bool isLower,
            const Tables& tables,
            float* slices) {
        withBlocks(
                vectors,
                place,
                firstVector(),
                numVectors,
                params,
                component(),
                [&](const auto& blocks) {
                    loadWhole(
                            blocks,
                            numVectors,
                            params,
                            isLower,
                            tables,
                            slices);
                });
    }

    /// Sums of all components, and the scale; without values.
    template <class Tables>
    __device__ __forceinline__ void measure(
            const Vectors& vectors,
            const TilePlace& place,
            int numVectors,
            const IvfParams& params,
            bool isLower,
            const Tables& tables) {
        float squares[4] = {};
        withBlocks(
                vectors,
                place,
                firstVector(),
                numVectors,
                params,
                component(),
                [&](const auto& blocks) {
#pragma unroll 2
                    for (int begin = 0; begin < params.d; begin += 16) {
                        addSquares(blocks, begin, numVectors, tables, squares);
                    }
                });
        const float greatest = greatestOf(squares, numVectors);
        scale = ivf_estimate::scaleOf(greatest);
        setTerms(squares, greatest, numVectors, params, isLower);
    }

    /// After measure(): components `begin` to begin + kDepth - 1, zeros behind
    /// the last.
    template <class Tables>
    __device__ __forceinline__ void load(
            const Vectors& vectors,
            const TilePlace& place,
            int numVectors,
            int begin,
            const IvfParams& params,
            const Tables& tables) {
        float squares[4];
        withBlocks(
                vectors,
                place,
                firstVector(),
                numVectors,
                params,
                begin + component(),
                [&](const auto& blocks) {
                    loadPart<false>(blocks, numVectors, begin, tables, squares);
                });
    }

   private:
    template <class Blocks>
    static constexpr int kAhead = kSteps < kWordsAhead<Blocks> / Blocks::kWords
            ? kSteps
            : kWordsAhead<Blocks> / Blocks::kWords;

    template <class Blocks, class Tables>
    __device__ __forceinline__ void loadWhole(
            const Blocks& blocks,
            int numVectors,
            const IvfParams& params,
            bool isLower,
            const Tables& tables,
            float* slices) {
        // A scale from some of the components; where it does not suit all, they
        // are read again.
        const int middle = (params.d + 15) / 16 / 2 * 16;
        float squares[4] = {};
        if constexpr (kHasSlices<Blocks>) {
            float* second = slices + Blocks::kSliceFloats;
            blocks.copySlice(middle, params.d, second);
            blocks.copySlice(0, params.d, slices);
            waitForCopies<1>();
            __syncthreads();
            addSquares(
                    blocks,
                    middle,
                    numVectors,
                    tables,
                    squares,
                    static_cast<const float*>(second));
        } else {
            addSquares(blocks, middle, numVectors, tables, squares);
        }
        scale = ivf_estimate::scaleOf(
                ivf_estimate::kSampledSquares * float(params.d) *
                greatestOf(squares, numVectors));
        for (;;) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                squares[j] = 0;
            }
            if constexpr (kHasSlices<Blocks>) {
                // Else addresses of all steps are kept, in memory, for a second
                // time that hardly comes.
                Blocks now = blocks;
                asm volatile("" : "+r"(now.first));
                loadInSlices(
                        now, numVectors, params.d, tables, squares, slices);
            } else {
                loadPart<true>(blocks, numVectors, 0, tables, squares);
            }
            const float greatest = greatestOf(squares, numVectors);
            const float suited = ivf_estimate::scaleOf(greatest);
            const bool isSuited = ivf_estimate::isSuited(scale, suited);
            if (isSuited) {
                setTerms(squares, greatest, numVectors, params, isLower);
            } else {
                scale = suited;
            }
            // Slices are all warps'; behind the barrier nobody reads them.
            if (kHasSlices<Blocks> ? !__syncthreads_or(!isSuited) : isSuited) {
                return;
            }
            if constexpr (kHasSlices<Blocks>) {
                blocks.copySlice(0, params.d, slices);
            }
        }
    }

    __device__ __forceinline__ void setTerms(
            const float (&squares)[4],
            float greatest,
            int numVectors,
            const IvfParams& params,
            bool isLower) {
        inverse = ivf_estimate::inverseOf(scale);
        bool haveBounds = true;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            haveBounds &= !(firstVector() + j < numVectors) ||
                    squares[j] <= ivf_estimate::kGreatest;
        }
        slack = __all_sync(kFullWarp, haveBounds)
                ? ivf_estimate::slackOfVectors(kMetric, params.bound, greatest)
                : INFINITY;
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

    /// All components; the first slice is on its way. One is copied while the
    /// one before it is used.
    template <class Blocks, class Tables>
    __device__ __forceinline__ void loadInSlices(
            const Blocks& blocks,
            int numVectors,
            int d,
            const Tables& tables,
            float (&squares)[4],
            float* slices) {
        static_assert(Blocks::kSliceDims == 16); // a step
        static_assert(2 * sizeof(float) * Blocks::kSliceFloats == kSlicesBytes);
        loadPart<true>(blocks, numVectors, 0, tables, squares, [&](int s) {
            if (s * 16 < d) {
                waitForCopies<0>();
                // All have it, and have read the one before.
                __syncthreads();
                if ((s + 1) * 16 < d) {
                    blocks.copySlice(
                            (s + 1) * 16,
                            d,
                            slices + (s + 1) % 2 * Blocks::kSliceFloats);
                }
            }
            return static_cast<const float*>(
                    slices + s % 2 * Blocks::kSliceFloats);
        });
    }

    /// Components `begin` and on, where blocks begin. sliceOf(s): nothing, or
    /// the slice of step s, which is there then.
    template <bool kSums, class Blocks, class Tables, class... SliceOf>
    __device__ __forceinline__ void loadPart(
            const Blocks& blocks,
            int numVectors,
            int begin,
            const Tables& tables,
            float (&squares)[4],
            const SliceOf&... sliceOf) {
        constexpr int kAtOnce = kAhead<Blocks>;
        typename Blocks::Raw raws[kAtOnce];
#pragma unroll
        for (int s = 0; s < kAtOnce - 1; ++s) {
            raws[s] = readOf(blocks, s * 16, numVectors);
        }
#pragma unroll
        for (int s = 0; s < kSteps; ++s) {
            const int next = s + kAtOnce - 1;
            if (next < kSteps) {
                raws[next % kAtOnce] = readOf(blocks, next * 16, numVectors);
            }
            float4 values4[4];
            decode(
                    blocks,
                    raws[s % kAtOnce],
                    s * 16,
                    begin + s * 16 + component(),
                    tables,
                    [&](int i, const float4& r) {
                        if constexpr (kSums) {
                            addSquares(squares, r);
                        }
                        values4[i] = {
                                r.x * scale,
                                r.y * scale,
                                r.z * scale,
                                r.w * scale};
                    },
                    sliceOf(s)...);
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float4& one = values4[2 * i];
                const float4& two = values4[2 * i + 1];
                values[0][s][2 * i] = toFloat16(one.x, two.x);
                values[0][s][2 * i + 1] = toFloat16(one.y, two.y);
                values[1][s][2 * i] = toFloat16(one.z, two.z);
                values[1][s][2 * i + 1] = toFloat16(one.w, two.w);
            }
        }
    }
};

} // namespace faiss_bits

/// Products of vectors, decoded to float32, with the queries of a tile of
/// IvfFewEstimates.cuh, and what their bounds have of vectors.
///
/// Bound by: instructions that decode, or the read of the list.
#pragma once

#include <type_traits>

#include "kernels/ivf/HeldProductRows.cuh"
#include "kernels/ivf/IvfFewTables.cuh"

namespace faiss_bits {

template <
        Metric kMetric,
        class Shape,
        class Queries,
        class Tables,
        class Products>
struct IvfDecodedProducts {
    using Reads = IvfVectorReads;

    /// Steps that are on their way, and one that is used; they divide kSteps.
    template <class Blocks>
    static constexpr int kAtOnce =
            std::is_same_v<Blocks, HeldProductRows> ? 2 : 4;

    const IvfParams& params;
    const Queries& queries;
    const Tables& tables;
    Products& products;
    IvfFewVectorTerms& vectors;
    const float* codebook; // in shared memory, of codes that have slices

    /// Products with the queries; returns the slack.
    template <class Blocks>
    __device__ __forceinline__ float multiply(
            const Blocks& blocks,
            int numVectors) const {
        // A scale from some of the components; where it does not suit all, they
        // are read again.
        const int middle = (params.d + 15) / 16 / 2 * 16;
        float squares[4] = {};
        const auto sample = blocks.read(middle);
        typename Blocks::Raw raws[kAtOnce<Blocks>];
        readAhead(blocks, raws);
        decode(blocks, sample, middle, [&](int, const float4& r) {
            Reads::addSquares(squares, r);
        });
        float scale = ivf_estimate::scaleOf(
                ivf_estimate::kSampledSquares * float(params.d) *
                Reads::greatestOf(squares, numVectors));
        for (;;) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                squares[j] = 0;
            }
            products.clear();
            multiplySteps(blocks, raws, scale, squares);
            const float greatest = Reads::greatestOf(squares, numVectors);
            const float suited = ivf_estimate::scaleOf(greatest);
            if (ivf_estimate::isSuited(scale, suited)) {
                vectors.inverse = ivf_estimate::inverseOf(scale);
                return setTerms(squares, greatest, numVectors);
            }
            scale = suited;
            readAhead(blocks, raws);
        }
    }

   private:
    template <class Blocks>
    __device__ __forceinline__ static void readAhead(
            const Blocks& blocks,
            typename Blocks::Raw (&raws)[kAtOnce<Blocks>]) {
#pragma unroll
        for (int s = 0; s < kAtOnce<Blocks> - 1; ++s) {
            raws[s] = blocks.read(s * 16);
        }
    }

    template <class Blocks>
    __device__ __forceinline__ void multiplySteps(
            const Blocks& blocks,
            typename Blocks::Raw (&raws)[kAtOnce<Blocks>],
            float scale,
            float (&squares)[4]) const {
        constexpr int kTurn = kAtOnce<Blocks>;
        static_assert(Shape::kSteps % kTurn == 0);
        // Not unrolled as a whole: the compiler would read all steps at once,
        // and keep them in local memory.
#pragma unroll 1
        for (int first = 0; first < params.d; first += kTurn * 16) {
#pragma unroll
            for (int s = 0; s < kTurn; ++s) {
                // Behind the last component there is nothing to read.
                raws[(s + kTurn - 1) % kTurn] =
                        blocks.read(first + (s + kTurn - 1) * 16);
                multiplyStep(blocks, raws[s], first + s * 16, scale, squares);
            }
        }
    }

    template <class Blocks>
    __device__ __forceinline__ void multiplyStep(
            const Blocks& blocks,
            const typename Blocks::Raw& raw,
            int offset,
            float scale,
            float (&squares)[4]) const {
        float4 values4[4];
        decode(blocks, raw, offset, [&](int i, const float4& r) {
            Reads::addSquares(squares, r);
            values4[i] = {r.x * scale, r.y * scale, r.z * scale, r.w * scale};
        });
        uint32_t values[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const float4& one = values4[2 * i];
            const float4& two = values4[2 * i + 1];
            values[0][2 * i] = toFloat16(one.x, two.x);
            values[0][2 * i + 1] = toFloat16(one.y, two.y);
            values[1][2 * i] = toFloat16(one.z, two.z);
            values[1][2 * i + 1] = toFloat16(one.w, two.w);
        }
#pragma unroll
        for (int b = 0; b < Queries::kQueries / 8; b += 2) {
            uint32_t q[4];
            queries.load(q, b * 8, offset / 16);
#pragma unroll
            for (int a = 0; a < 2; ++a) {
                mmaFloat16(products.sums[a][b], values[a], q);
                mmaFloat16(products.sums[a][b + 1], values[a], q + 2);
            }
        }
    }

    template <class Blocks, class Body>
    __device__ __forceinline__ void decode(
            const Blocks& blocks,
            const typename Blocks::Raw& raw,
            int offset,
            const Body& body) const {
        const int c = offset + Reads::component();
        if constexpr (Reads::kHasSlices<Blocks>) {
            const float* slice = codebook + offset / 16 * Shape::kSliceFloats;
            Reads::decode(blocks, raw, offset, c, tables, body, slice);
        } else {
            Reads::decode(blocks, raw, offset, c, tables, body);
        }
    }

    /// Returns the slack.
    __device__ __forceinline__ float setTerms(
            const float (&squares)[4],
            float greatest,
            int numVectors) const {
        bool haveBounds = true;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const bool isThere = Reads::firstVector() + j < numVectors;
            haveBounds &= !isThere || squares[j] <= ivf_estimate::kGreatest;
            vectors.terms[j] = isThere ? ivf_estimate::ofVector(
                                                 kMetric,
                                                 params.bound,
                                                 squares[j],
                                                 greatest,
                                                 params.isLower)
                                       : float(NAN);
        }
        return __all_sync(kFullWarp, haveBounds)
                ? ivf_estimate::slackOfVectors(kMetric, params.bound, greatest)
                : INFINITY;
    }
};

} // namespace faiss_bits

/// Products of 8-bit codes with the queries of a tile of IvfFewEstimates.cuh,
/// and what their bounds have of vectors.
///
/// Bound by: instructions, some 65 of a warp for 16 components of 32 vectors
/// and up to 8 queries.
#pragma once

#include "kernels/ivf/IvfCodeTables.cuh"
#include "kernels/ivf/IvfFewTables.cuh"

namespace faiss_bits {

template <class Queries, class Tables, class Products>
struct IvfCodeProducts {
    /// Steps of 16 components: some on their way, and one that is used.
    static constexpr int kAhead = 4;
    static_assert(Queries::kParts % kAhead == 0);
    static_assert(16 * Queries::kParts <= ivf_estimate::kMostCodeDims);

    const IvfParams& params;
    const Queries& queries;
    const Tables& tables;
    Products& products;
    IvfFewVectorTerms& vectors;
    uint32_t words[kAhead][4];

    __device__ __forceinline__ void readFirst(const CodeReads& reads) {
#pragma unroll
        for (int s = 0; s < kAhead - 1; ++s) {
            reads.read(words[s], 0, s);
        }
    }

    /// After readFirst(); returns the slack.
    __device__ __forceinline__ float multiply(
            const CodeReads& reads,
            int numVectors,
            int numRows) {
        constexpr uint32_t kOnes[2] = {0x3C003C00, 0x3C003C00}; // float16
        float sums[2][4] = {}; // of squares, in each column
        products.clear();
        const int steps = (params.d + 15) / 16;
#pragma unroll 1
        for (int step = 0; step < steps; step += kAhead) {
#pragma unroll
            for (int s = 0; s < kAhead; ++s) {
                // Behind the last component there is nothing to read.
                reads.read(
                        words[(s + kAhead - 1) % kAhead], step, s + kAhead - 1);
                uint32_t values[2][4];
                componentsOfCodes(
                        words[s],
                        tables.twos(
                                (step + s) * 16 + IvfVectorReads::component()),
                        values);
#pragma unroll
                for (int b = 0; b < Queries::kQueries / 8; b += 2) {
                    if (b > 0 && numRows <= b * 8) {
                        break;
                    }
                    uint32_t q[4];
                    queries.load(q, b * 8, step + s);
                    const bool isBoth = numRows > (b + 1) * 8;
#pragma unroll
                    for (int a = 0; a < 2; ++a) {
                        mmaFloat16(products.sums[a][b], values[a], q);
                        if (isBoth) {
                            mmaFloat16(
                                    products.sums[a][b + 1], values[a], q + 2);
                        }
                    }
                }
#pragma unroll
                for (int a = 0; a < 2; ++a) {
                    uint32_t squares[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        const auto& value =
                                reinterpret_cast<const __half2&>(values[a][i]);
                        const __half2 square = __hmul2(value, value);
                        squares[i] = reinterpret_cast<const uint32_t&>(square);
                    }
                    mmaFloat16(sums[a], squares, kOnes);
                }
            }
        }
        vectors.inverse = tables.inverse();
        return setTerms(sums, numVectors);
    }

   private:
    /// Of sums of scaled squares, which all columns have. Returns the slack.
    __device__ __forceinline__ float setTerms(
            const float (&sums)[2][4],
            int numVectors) {
        const float factor =
                ivf_estimate::kSquaresOfCodes * params.bound.squares;
        const float least = tables.slack();
        bool haveBounds = least <= ivf_estimate::kGreatest;
        float greatest = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float square =
                    sums[j / 2][j % 2 * 2] * vectors.inverse * vectors.inverse;
            const bool isThere = IvfVectorReads::firstVector() + j < numVectors;
            const bool hasBound = square <= ivf_estimate::kGreatest;
            const float slack = __fmaf_ru(factor, square, least);
            vectors.terms[j] = !isThere || !hasBound ? float(NAN)
                    : params.isLower                 ? __fsub_rd(square, slack)
                                                     : __fadd_ru(square, slack);
            haveBounds &= !isThere || hasBound;
            greatest = isThere && hasBound ? fmaxf(greatest, square) : greatest;
        }
        greatest = __uint_as_float(
                __reduce_max_sync(kFullWarp, __float_as_uint(greatest)));
        return __all_sync(kFullWarp, haveBounds)
                ? __fmaf_ru(factor, greatest, least)
                : INFINITY;
    }
};

} // namespace faiss_bits

/// Products of a warp's vectors with a tile's queries, and the bounds that they
/// become: those of keys, which are appended or written (IvfEstimates.cuh).
#pragma once

#include <cfloat>

#include "kernels/device/MmaFloat16.cuh"
#include "kernels/device/RegisterArray.cuh"
#include "kernels/ivf/IvfEstimateTerms.cuh"
#include "kernels/ivf/IvfFoundBuffer.cuh"
#include "kernels/ivf/IvfTileOrder.cuh"

namespace faiss_bits {

/// kAcross: products of 8 queries.
template <Metric kMetric, class Queries, class Fragments, int kAcross>
struct IvfEstimateProducts {
    float sums[2][kAcross][4];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int a = 0; a < 2; ++a) {
#pragma unroll
            for (int b = 0; b < kAcross; ++b) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    sums[a][b][i] = 0;
                }
            }
        }
    }

    /// Queries `first` and on of the tile of `slot`, in one step more.
    __device__ __forceinline__ void multiply(
            const Queries& queries,
            const Fragments& fragments,
            int slot,
            int first) {
#pragma unroll
        for (int step = 0; step < Fragments::kSteps; ++step) {
#pragma unroll
            for (int b = 0; b < kAcross; b += 2) {
                uint32_t q[4];
                queries.load(q, slot, first + b * 8, step);
#pragma unroll
                for (int a = 0; a < 2; ++a) {
                    mmaFloat16(sums[a][b], fragments.values[a][step], q);
                    mmaFloat16(
                            sums[a][b + 1], fragments.values[a][step], q + 2);
                }
            }
        }
    }

    /// Products b and b + 1: what is within its row's limit is appended. q: the
    /// first of this lane's queries; wanted: bits of its four vectors, of which
    /// the first is `vector` of the list.
    __device__ __forceinline__ void append(
            IvfFoundBuffer& found,
            const Fragments& fragments,
            const typename Queries::Facts& facts,
            int b,
            int q,
            const IvfWork& work,
            uint32_t wanted,
            uint32_t vector,
            int numRows) const {
        uint32_t mask = 0;
        float values[16];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const float4 tests =
                    *reinterpret_cast<const float4*>(facts.tests[q + i * 8]);
            const float rest[2] = {
                    tests.y * fragments.scale, tests.w * fragments.scale};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float term = fragments.terms[j] * fragments.scale;
                const int bit = i * 8 + j * 2;
                values[bit] = product(b + i, j, 0);
                values[bit + 1] = product(b + i, j, 1);
                // Without a bound, of itself or for the row, it passes.
                if (!(values[bit] < __fmaf_rn(tests.x, term, rest[0]))) {
                    mask |= 1u << bit;
                }
                if (!(values[bit + 1] < __fmaf_rn(tests.z, term, rest[1]))) {
                    mask |= 2u << bit;
                }
            }
        }
        if (wanted != 0xf || q + 9 >= numRows) {
            mask &= present(wanted, numRows - q);
        }
        found.append(mask, [&](int bit) {
            const int row = q + bit / 8 * 8 + bit % 2;
            const int j = bit / 2 % 4;
            const float terms[4] = {
                    fragments.terms[0],
                    fragments.terms[1],
                    fragments.terms[2],
                    fragments.terms[3]};
            const float key = ivf_estimate::boundOf<kMetric>(
                    selected(values, bit),
                    selected(terms, j),
                    fragments.inverse * facts.inverses[row],
                    facts.terms[row],
                    facts.factors[row]);
            // What has no bound may be the nearest.
            return IvfFoundBuffer::Entry{
                    facts.rows[row],
                    work.place.listNumber,
                    vector + j,
                    key == key ? key : -INFINITY};
        });
    }

    /// To the rows' columns; kFours: the least of four vectors' bounds alone.
    /// count: vectors from this lane's first on, in the columns `column` and
    /// on.
    template <bool kFours>
    __device__ __forceinline__ void writeAll(
            const IvfParams& params,
            const Fragments& fragments,
            const typename Queries::Facts& facts,
            int q,
            uint32_t wanted,
            uint32_t column,
            int count,
            int numRows) const {
#pragma unroll
        for (int b = 0; b < kAcross; ++b) {
            write<kFours>(
                    params,
                    fragments,
                    facts,
                    b,
                    q + b * 8,
                    wanted,
                    column,
                    count,
                    numRows);
        }
    }

   private:
    /// Bits of append(), of such vectors and so many rows.
    __device__ __forceinline__ static uint32_t present(
            uint32_t vectors,
            int rows) {
        uint32_t mask = 0;
#pragma unroll
        for (int bit = 0; bit < 16; ++bit) {
            if ((vectors >> bit / 2 % 4 & 1) && bit / 8 * 8 + bit % 2 < rows) {
                mask |= 1u << bit;
            }
        }
        return mask;
    }

    /// kFours: the least of four vectors' bounds.
    template <bool kFours>
    __device__ __forceinline__ void write(
            const IvfParams& params,
            const Fragments& fragments,
            const typename Queries::Facts& facts,
            int b,
            int q,
            uint32_t wanted,
            uint32_t column,
            int count,
            int numRows) const {
        // What may be the nearest, as it has no bound.
        const float none = params.isLower ? -INFINITY : float(NAN);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            if (q + i >= numRows || count <= 0) {
                continue;
            }
            const float inverse = fragments.inverse * facts.inverses[q + i];
            float keys[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float key = ivf_estimate::boundOf<kMetric>(
                        product(b, j, i),
                        fragments.terms[j],
                        inverse,
                        facts.terms[q + i],
                        facts.factors[q + i]);
                keys[j] = key == key ? key : none;
            }
            // Columns of a list begin on sixteen bytes, and what is behind its
            // last one is NaN.
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                keys[j] = wanted >> j & 1 ? keys[j] : float(NAN);
            }
            if constexpr (kFours) {
                static_assert(kIvfColumnStep == 4);
                facts.out[q + i][column / 4] =
                        fminf(fminf(keys[0], keys[1]), fminf(keys[2], keys[3]));
            } else {
                *reinterpret_cast<float4*>(facts.out[q + i] + column) = {
                        keys[0], keys[1], keys[2], keys[3]};
            }
        }
    }

    /// Of the lane's vector j and query i of two.
    __device__ __forceinline__ float product(int b, int j, int i) const {
        return sums[j / 2][b][j % 2 * 2 + i];
    }
};

} // namespace faiss_bits

/// The queries of a tile of product codes, as fragments of matrix instructions;
/// IvfProductBound.h says what they lose.
#pragma once

#include "kernels/ivf/IvfCodebook.cuh"
#include "kernels/ivf/IvfProductBound.h"
#include "kernels/ivf/IvfTileOrder.cuh"

namespace faiss_bits {

template <Metric kMetric>
struct IvfProductQueries {
    static constexpr int kQueries = kIvfProductQueries;
    /// Lanes that have the components of a vector, a quarter each.
    static constexpr int kLanes = 4;
    /// Components of a lane in a product, four of each lane's quarter.
    static constexpr int kDims = 4;
    /// Fours of components of a query that a lane has.
    static constexpr int kFours = kIvfProductMostDims / kDims / kWarpSize;
    static_assert(kQueries == 8);

    /// Of this lane's two queries: what its estimates are made of, and where
    /// they go.
    struct Query {
        float base = 0;   // |s'|^2, or - <c, q>
        float factor = 0; // of products
        uint32_t row = 0;
        uint32_t column = 0; // of the list's first vector
        bool isThere = false;
    };

    const IvfDirectParams& params;
    uint2* fragments; // [d / 16, 32], of this warp, in shared memory

    /// Of the codebook.
    float inverse = 1; // of its scale
    ivf_product::CodebookNorms norms;

    /// Norms and the scale of the codebook, by every warp.
    __device__ __forceinline__ void measure() {
        const int parts = params.search.lists.decoding.numParts;
        const float longest = params.codebookNorms[0];
        float lost = 0;
        for (int part = int(threadIdx.x % kWarpSize); part < parts;
             part += kWarpSize) {
            lost += params.codebookNorms[1 + part];
        }
        lost = sumOfLanes(lost);
        inverse = ivf_estimate::inverseOf(ivfCodebookScale(longest));
        // Without bounds there are no estimates (base).
        norms.longest = longest <= ivf_estimate::kGreatest
                ? sqrtf(longest) * ivf_product::kUp
                : NAN;
        norms.lost = sqrtf(lost) * inverse * ivf_product::kUp;
    }

    /// The queries of a tile, as fragments; and what lanes have of theirs.
    __device__ __forceinline__ void prepare(
            const IvfWork& work,
            Query (&mine)[2]) {
        const IvfParams& search = params.search;
        const int lane = int(threadIdx.x % kWarpSize);
        const int count = int(min(work.place.numRows, uint32_t(kQueries)));
        uint32_t row = 0;
        uint32_t column = 0;
        if (lane < count) {
            row = work.place.rows[lane];
            column = work.columns[lane];
        }
        const float* centroids = search.lists.decoding.centroids;
        const float* centroid = centroids
                ? centroids + int64_t(work.place.listNumber) * search.d
                : nullptr;
        const int steps = search.d / (kLanes * kDims);
        constexpr int kAhead = 4;
        for (int first = 0; first < kQueries; first += kAhead) {
            float4 s[kAhead][kFours];
            float products[kAhead] = {};
            float sizes[kAhead] = {}; // of products
            float center = 0;
#pragma unroll
            for (int f = 0; f < kFours; ++f) {
                const int c = (f * kWarpSize + lane) * kDims;
                float4 of = {0, 0, 0, 0};
                if (centroid && c < search.d) {
                    of = loadFour(centroid + c);
                }
                center = addSquares(of, center);
#pragma unroll
                for (int i = 0; i < kAhead; ++i) {
                    const uint32_t from =
                            __shfl_sync(kFullWarp, row, first + i);
                    s[i][f] = {0, 0, 0, 0};
                    if (first + i < count && c < search.d) {
                        s[i][f] = loadFour(
                                search.queries + int64_t(from) * search.d + c);
                    }
                    if constexpr (kMetric == Metric::L2) {
                        s[i][f] = {
                                __fsub_rn(s[i][f].x, of.x),
                                __fsub_rn(s[i][f].y, of.y),
                                __fsub_rn(s[i][f].z, of.z),
                                __fsub_rn(s[i][f].w, of.w)};
                    } else {
                        const float terms[4] = {
                                s[i][f].x * of.x,
                                s[i][f].y * of.y,
                                s[i][f].z * of.z,
                                s[i][f].w * of.w};
#pragma unroll
                        for (int j = 0; j < 4; ++j) {
                            products[i] += terms[j];
                            sizes[i] += fabsf(terms[j]);
                        }
                    }
                }
            }
            center = sumOfLanes(center);
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                const int q = first + i;
                if (q < count) {
                    ivf_product::PairNorms pair;
                    pair.centroid = sqrtf(center);
                    pair.products = sumOfLanes(sizes[i]);
                    const float product = sumOfLanes(products[i]);
                    const Query query = store(s[i], q, steps, product, pair);
                    const uint32_t of = __shfl_sync(kFullWarp, row, q);
                    const uint32_t at = __shfl_sync(kFullWarp, column, q);
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        if (q == lane % kLanes * 2 + j) {
                            mine[j] = query;
                            mine[j].row = of;
                            mine[j].column = at;
                            mine[j].isThere = true;
                        }
                    }
                    // The tiles of a pair have the same bound.
                    if (work.place.first == 0 && lane == 0) {
                        keepBound(of, pair);
                    }
                } else {
#pragma unroll
                    for (int f = 0; f < kFours; ++f) {
                        put(q, f, steps, make_uint2(0, 0));
                    }
                }
            }
        }
    }

   private:
    __device__ __forceinline__ static float sumOfLanes(float value) {
#pragma unroll
        for (int lanes = kWarpSize / 2; lanes >= 1; lanes /= 2) {
            value += __shfl_xor_sync(kFullWarp, value, lanes);
        }
        return value;
    }

    /// Writes the fragments of query q, and returns what it is multiplied with.
    __device__ __forceinline__ Query
    store(const float4 (&s)[kFours],
          int q,
          int steps,
          float product,
          ivf_product::PairNorms& pair) const {
        float square = 0;
#pragma unroll
        for (int f = 0; f < kFours; ++f) {
            square = addSquares(s[f], square);
        }
        square = sumOfLanes(square);
        const bool isBounded = square <= ivf_estimate::kGreatest &&
                pair.centroid <= ivf_estimate::kGreatest;
        const float scale = isBounded ? ivf_estimate::scaleOf(square) : 1.0f;
        float kept = 0;
        float lost = 0;
#pragma unroll
        for (int f = 0; f < kFours; ++f) {
            float4 off;
            uint2 halves;
            halves.x = roundToFloat16(
                    s[f].x * scale, s[f].y * scale, off.x, off.y);
            halves.y = roundToFloat16(
                    s[f].z * scale, s[f].w * scale, off.z, off.w);
            const float4 back = {
                    s[f].x * scale - off.x,
                    s[f].y * scale - off.y,
                    s[f].z * scale - off.z,
                    s[f].w * scale - off.w};
            kept = addSquares(back, kept);
            lost = addSquares(off, lost);
            put(q, f, steps, halves);
        }
        kept = sumOfLanes(kept);
        lost = sumOfLanes(lost);
        const float unscale = ivf_estimate::inverseOf(scale);
        pair.query = sqrtf(square);
        pair.rounded = sqrtf(kept) * unscale;
        pair.lost = sqrtf(lost) * unscale;
        Query query;
        if constexpr (kMetric == Metric::L2) {
            query.base = kept * unscale * unscale;
            query.factor = -2 * unscale;
        } else {
            query.base = -product;
            query.factor = -unscale;
        }
        if (!isBounded || !(norms.longest == norms.longest)) {
            query.base = NAN;
        }
        return query;
    }

    __device__ __forceinline__ static float addSquares(
            const float4& x,
            float sum) {
        sum = __fmaf_rn(x.x, x.x, sum);
        sum = __fmaf_rn(x.y, x.y, sum);
        sum = __fmaf_rn(x.z, x.z, sum);
        return __fmaf_rn(x.w, x.w, sum);
    }

    /// Four components of query q, number f of this lane.
    __device__ __forceinline__ void put(
            int q,
            int f,
            int steps,
            const uint2& halves) const {
        const int four = f * kWarpSize + int(threadIdx.x % kWarpSize);
        if (four < steps * kLanes) {
            fragments[four % steps * kWarpSize + q * kLanes + four / steps] =
                    halves;
        }
    }

    __device__ __forceinline__ void keepBound(
            uint32_t row,
            ivf_product::PairNorms pair) const {
        pair.query *= ivf_product::kUp;
        pair.rounded *= ivf_product::kUp;
        pair.lost *= ivf_product::kUp;
        pair.centroid *= ivf_product::kUp;
        pair.products *= ivf_product::kUp;
        const ivf_product::Bound bound =
                ivf_product::boundOf<kMetric>(norms, pair, params.search.d);
        // None is negative; what is no number is greater than all.
        atomicMax(&params.bounds[2 * row], __float_as_uint(bound.root));
        atomicMax(&params.bounds[2 * row + 1], __float_as_uint(bound.square));
    }
};

} // namespace faiss_bits

/// What scans of product codes in rows with tables of lists
/// (IvfBookTables.cuh, IvfHeldTables.cuh) share: where a block's columns are,
/// what is in a table, and the bound.
#pragma once

#include "kernels/ivf/IvfBookScan.cuh"
#include "kernels/ivf/IvfFloorBound.h"
#include "kernels/ivf/IvfFloors.h"
#include "kernels/ivf/IvfKeptEstimates.cuh"

namespace faiss_bits {

/// Of a block. It asks for its codes when its lists are known.
template <Metric kMetric>
struct IvfBookLookUps {
    using Lists = IvfDirectListsBy<kIvfBookThreads>;
    static constexpr int kThreads = kIvfBookThreads;
    static constexpr int kWarps = kThreads / kWarpSize;
    static constexpr int kRows = kIvfCodebookRows;

    /// Of a warp: 32 columns of a probe.
    struct Place {
        uint32_t at; // of the row, in 32s
        uint32_t probe;
    };

    const typename Lists::Tables& lists;
    const IvfDirectParams& params;
    uint32_t row;
    uint32_t begin; // 32s of columns of the row: the block's part
    uint32_t end;

    /// With the block in step, which has found its lists: block blockIdx.x of
    /// gridDim.x.
    __device__ __forceinline__ IvfBookLookUps(
            const typename Lists::Tables& ofLists,
            const IvfDirectParams& ofSearch,
            uint32_t ofRow)
            : lists(ofLists), params(ofSearch), row(ofRow) {
        const typename Lists::Part part(lists.first[params.search.nprobe]);
        begin = part.begin;
        end = part.end;
    }

    /// Of 32 columns, of this probe or one behind it.
    __device__ __forceinline__ uint32_t
    probeOf(uint32_t at, uint32_t probe) const {
        while (at >= lists.first[probe + 1]) {
            ++probe;
        }
        return probe;
    }

    __device__ __forceinline__ int numParts() const {
        return params.search.lists.decoding.numParts;
    }

    /// The block's first place of a warp.
    __device__ __forceinline__ Place firstOf(uint32_t probe) const {
        Place place = {begin + threadIdx.x / kWarpSize, probe};
        enter(place);
        return place;
    }

    /// To the warp's next place.
    __device__ __forceinline__ void advance(Place& place) const {
        place.at += kWarps;
        enter(place);
    }

    /// From behind a list to the warp's columns of the next one that has some.
    __device__ __forceinline__ void enter(Place& place) const {
        while (place.at >= lists.first[place.probe + 1] &&
               lists.first[place.probe + 1] < end) {
            ++place.probe;
            place.at = lists.first[place.probe] + threadIdx.x / kWarpSize;
        }
    }

    /// Where the block's columns of a probe end.
    __device__ __forceinline__ uint32_t lastOf(uint32_t probe) const {
        return min(end, lists.first[probe + 1]);
    }

    /// This lane's vector of 32 columns of a probe.
    __device__ __forceinline__ uint32_t
    vectorOf(uint32_t at, uint32_t probe) const {
        return (at - lists.first[probe]) * kListGroup + threadIdx.x % kWarpSize;
    }

    /// Vectors of a list from one on; and from that one on which the thread has
    /// a turn of the block later.
    __device__ __forceinline__ uint32_t
    leftOf(uint32_t vector, uint32_t probe) const {
        const uint32_t length = lists.lengths[probe];
        return length - min(vector, length);
    }
    __device__ __forceinline__ static uint32_t afterTurn(uint32_t left) {
        return max(left, uint32_t(kThreads)) - kThreads;
    }

    /// Asks for the block's codes, the first of which are of this probe.
    __device__ __forceinline__ void prefetch(uint32_t probe) const {
        constexpr uint32_t kLine = 128;
        const auto parts = uint32_t(params.search.lists.decoding.numParts);
        for (uint32_t at = begin; at < end; ++probe) {
            const uint32_t last = min(end, lists.first[probe + 1]);
            const uint32_t first = (at - lists.first[probe]) * kListGroup;
            const uint32_t there =
                    min(lists.lengths[probe] - first, (last - at) * kListGroup);
            const auto* from =
                    static_cast<const uint8_t*>(lists.vectors[probe]) +
                    int64_t(first) * parts;
            for (uint32_t byte = threadIdx.x * kLine; byte < there * parts;
                 byte += kThreads * kLine) {
                prefetchToL2(from + byte);
            }
            at = last;
        }
    }

    /// A component of the centroid of a probe.
    __device__ __forceinline__ float centerOf(uint32_t probe, int c) const {
        const float* centroids = params.search.lists.decoding.centroids;
        return centroids && c < params.search.d
                ? __ldg(centroids +
                        int64_t(lists.numbers[probe]) * params.search.d + c)
                : 0.0f;
    }

    /// A component of what a list's table is of, or else its base.
    __device__ __forceinline__ static float numberOf(
            float query,
            float center) {
        return kMetric == Metric::L2 ? query - center : center;
    }

    /// What all keys of a list have beside the entries of its table.
    __device__ __forceinline__ float baseOf(
            const float* list,
            const float* query) const {
        return kMetric == Metric::L2 ? 0.0f : productOf(list, query);
    }

    /// What a row y of the codebook adds to estimates.
    template <int kPartDims>
    __device__ __forceinline__ static float entryOf(
            const float (&s)[kPartDims],
            const float (&y)[kPartDims]) {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < kPartDims; ++i) {
            if constexpr (kMetric == Metric::L2) {
                const float t = s[i] - y[i];
                sum = __fmaf_rn(t, t, sum);
            } else {
                sum = __fmaf_rn(s[i], y[i], sum);
            }
        }
        return sum;
    }

    /// The square of a row, as bits in the order of squares: none is negative,
    /// and what is no number is greater than all.
    template <int kPartDims>
    __device__ __forceinline__ static uint32_t squareBitsOf(
            const float (&y)[kPartDims]) {
        float square = 0;
#pragma unroll
        for (int i = 0; i < kPartDims; ++i) {
            square = __fmaf_rn(y[i], y[i], square);
        }
        return __float_as_uint(square) & 0x7fffffff;
    }

    /// By all lanes, each of which has one of a part's rows, or more: the
    /// greatest square of them all.
    __device__ __forceinline__ static void keepSquare(
            uint32_t& greatest,
            uint32_t squareBits) {
        const uint32_t most = __reduce_max_sync(kFullWarp, squareBits);
        if (threadIdx.x % kWarpSize == 0) {
            atomicMax(&greatest, most);
        }
    }

    /// Components of a part.
    template <int kPartDims>
    __device__ __forceinline__ static void load(
            const float* from,
            float (&xs)[kPartDims]) {
        if constexpr (kPartDims == 2) {
            const float2 two = *reinterpret_cast<const float2*>(from);
            xs[0] = two.x;
            xs[1] = two.y;
        } else {
#pragma unroll
            for (int i = 0; i < kPartDims; i += 4) {
                const float4 four = *reinterpret_cast<const float4*>(from + i);
                xs[i] = four.x;
                xs[i + 1] = four.y;
                xs[i + 2] = four.z;
                xs[i + 3] = four.w;
            }
        }
    }

    /// Over components, in all lanes.
    __device__ __forceinline__ float productOf(const float* x, const float* y)
            const {
        float sum = 0;
        for (int c = int(threadIdx.x % kWarpSize); c < params.search.d;
             c += kWarpSize) {
            sum = __fmaf_rn(x[c], y[c], sum);
        }
        return sumOfLanes(sum);
    }

    __device__ __forceinline__ static float sumOfLanes(float value) {
#pragma unroll
        for (int lanes = kWarpSize / 2; lanes >= 1; lanes /= 2) {
            value += __shfl_xor_sync(kFullWarp, value, lanes);
        }
        return value;
    }

    /// By a warp, of the greatest squares of each part; longest: square of a
    /// norm.
    __device__ __forceinline__ void keepBound(
            const float* query,
            float longest,
            const uint32_t* ofParts) const {
        const int d = params.search.d;
        float squares = 0;
        for (int part = int(threadIdx.x % kWarpSize);
             part < params.search.lists.decoding.numParts;
             part += kWarpSize) {
            squares += __uint_as_float(ofParts[part]);
        }
        const float bound = ivf_code::boundOfTables<kMetric>(
                productOf(query, query), longest, sumOfLanes(squares), d);
        if (threadIdx.x % kWarpSize == 0) {
            atomicMax(&params.bounds[2 * row], __float_as_uint(bound));
        }
    }

    /// 32 columns, a lane each; goes to the next ones. Codes: IvfBookCodes.
    template <class Codes>
    __device__ __forceinline__ void runGroup(
            Place& place,
            float base,
            Codes& codes) const {
        const Place now = place;
        advance(place);
        const uint32_t group = now.at - lists.first[now.probe];
        const uint32_t length = lists.lengths[now.probe];
        const uint32_t selected = IvfGroupWords::ofWarp(
                params.search.lists, lists.numbers[now.probe], group, length);
        if (selected == 0) {
            codes.ask(place);
            keepIvfEstimate<kMetric>(params, row, now.at, 0, false);
            return;
        }
        const float sum = codes.sumOf(now, place);
        const uint32_t lane = threadIdx.x % kWarpSize;
        keepIvfEstimate<kMetric>(
                params,
                row,
                now.at,
                ivf_code::keyOf<kMetric>(sum, base),
                group * kListGroup + lane < length && (selected >> lane & 1));
    }
};

} // namespace faiss_bits

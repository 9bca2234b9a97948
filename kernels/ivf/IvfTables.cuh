/// Tables of whole numbers for the product codes of a list, of up to eight of
/// the queries that probe it: an entry for each part and row of the codebook,
/// and a sum of a vector's entries is an estimate of its key. IvfTableBound.h
/// says of what, and how far it may be from the key. As the tables of Jegou,
/// Douze and Schmid 2011, IV ("asymmetric distances"), in steps of one size
/// (Andre, Kermarrec and Le Scouarnec 2015, "quantized tables"), which are
/// small enough here for exact sums of all entries in 16 bits.
///
/// A block makes them: 2^bits rows times d components times eight queries; or
/// of terms that are there (IvfTableTerms.cu), whatever the components.
///
/// Bound by: those operations of float32, and as long, the codebook that is
/// read once a tile of queries, from the second-level cache. Of terms: reads of
/// these there, 36 bytes for eight entries.
#pragma once

#include "kernels/ivf/IvfBoundedScans.h"
#include "kernels/ivf/IvfTileOrder.cuh"

namespace faiss_bits {

/// Of a query: its estimates are base + step * sum, and where they go.
struct alignas(16) IvfTableFact {
    float base; // not a number: it has no estimates
    float step;
    uint32_t row;
    uint32_t column; // of the list's first vector
};

template <Metric kMetric>
struct IvfTables {
    static constexpr int kQueries = kIvfTableQueries;
    static constexpr int kThreads = kIvfTableThreads;
    static constexpr int kShares = kThreads / kWarpSize / kQueries; // warps
    static constexpr uint32_t kNoBound = 0x7fffffff;                // no number
    static_assert(kQueries == 8 && kShares * kQueries * kWarpSize == kThreads);
    enum { kSquare, kCenter, kProduct, kSize, kSums };

    struct SharedStorage {
        IvfTableFact facts[kQueries];
        float4 inverses[kQueries / 4]; // of steps
        float sums[kSums][kShares][kQueries];
    };

    SharedStorage& shared;
    const IvfDirectParams& params;
    /// In dynamic shared memory, on sixteen bytes.
    uint4* entries;   // [parts, 2^bits]: of queries 2 i and 2 i + 1 in word i
    float* residuals; // [d, kQueries]: s
    float* lows;      // [parts, kQueries]

    __device__ __forceinline__
    IvfTables(SharedStorage& storage, const IvfDirectParams& of, void* memory)
            : shared(storage),
              params(of),
              entries(static_cast<uint4*>(memory)),
              residuals(reinterpret_cast<float*>(
                      entries + (size_t(numParts()) << bits()))),
              lows(residuals + of.search.d * kQueries) {}

    /// Of the queries and the list of `run`, by all threads; ends with the
    /// block in step.
    __device__ __forceinline__ void build(const IvfRun& run) const {
        __syncthreads(); // what was there before is read
        gather(run);
        __syncthreads();
        measureParts();
        __syncthreads();
        if (threadIdx.x / kWarpSize < kQueries) {
            setFact(run, int(threadIdx.x / kWarpSize));
        }
        __syncthreads();
        if (params.queryTerms) {
            addTerms(run);
        } else {
            fill();
        }
        __syncthreads();
    }

   private:
    __device__ __forceinline__ int numParts() const {
        return params.search.lists.decoding.numParts;
    }
    __device__ __forceinline__ int bits() const {
        return params.search.lists.decoding.partBits;
    }
    __device__ __forceinline__ int partDims() const {
        return params.search.d / numParts();
    }

    __device__ __forceinline__ static float sumOfLanes(float value) {
#pragma unroll
        for (int lanes = kWarpSize / 2; lanes >= 1; lanes /= 2) {
            value += __shfl_xor_sync(kFullWarp, value, lanes);
        }
        return value;
    }

    /// Queries less the centroid, and sums of theirs; zeros of those that are
    /// not there.
    __device__ __forceinline__ void gather(const IvfRun& run) const {
        const IvfParams& search = params.search;
        const int q = int(threadIdx.x / kWarpSize) % kQueries;
        const int share = int(threadIdx.x / kWarpSize) / kQueries;
        const int lane = int(threadIdx.x % kWarpSize);
        const bool isThere = uint32_t(q) < run.numRows;
        const uint32_t row = isThere ? run.rows[q] : 0;
        const float* from = search.queries + int64_t(row) * search.d;
        const float* centroids = search.lists.decoding.centroids;
        const float* centroid =
                centroids ? centroids + int64_t(run.list) * search.d : nullptr;
        float sums[kSums] = {};
#pragma unroll 4
        for (int c = share * kWarpSize + lane; c < search.d;
             c += kShares * kWarpSize) {
            const float of = centroid ? centroid[c] : 0.0f;
            const float x = isThere ? from[c] : of;
            float s = x;
            if constexpr (kMetric == Metric::L2) {
                s = __fsub_rn(x, of);
            } else {
                s = isThere ? x : 0.0f;
                const float product = x * of;
                sums[kProduct] += product;
                sums[kSize] += fabsf(product);
            }
            residuals[c * kQueries + q] = s;
            sums[kSquare] = __fmaf_rn(s, s, sums[kSquare]);
            sums[kCenter] = __fmaf_rn(of, of, sums[kCenter]);
        }
#pragma unroll
        for (int i = 0; i < kSums; ++i) {
            const float sum = sumOfLanes(sums[i]);
            if (lane == 0) {
                shared.sums[i][share][q] = sum;
            }
        }
        if (share == 0 && lane == 0) {
            shared.facts[q].row = row;
            shared.facts[q].column = isThere ? run.columns[q] : 0;
        }
    }

    /// Squares of the parts of queries, each by some lanes: few long parts are
    /// few sums.
    __device__ __forceinline__ void measureParts() const {
        constexpr int kLanes = kWarpSize / kQueries;
        const int dims = partDims();
        const int lane = int(threadIdx.x % kWarpSize);
        for (int part = int(threadIdx.x / kWarpSize); part < numParts();
             part += kThreads / kWarpSize) {
            const float* from = residuals + part * dims * kQueries;
            float square = 0;
#pragma unroll 4
            for (int i = lane; i < dims * kQueries; i += kWarpSize) {
                const float s = from[i];
                square = __fmaf_rn(s, s, square);
            }
#pragma unroll
            for (int lanes = kQueries; lanes < kQueries * kLanes; lanes *= 2) {
                square += __shfl_xor_sync(kFullWarp, square, lanes);
            }
            if (lane < kQueries) {
                lows[part * kQueries + lane] = square;
            }
        }
    }

    /// By a warp: the ranges of parts, a query's step, and its bound.
    __device__ __forceinline__ void setFact(const IvfRun& run, int q) const {
        const int lane = int(threadIdx.x % kWarpSize);
        float widths = 0;
        float low = 0;
        float longest = 0;
        for (int part = lane; part < numParts(); part += kWarpSize) {
            const float square = params.turnedSquares[part];
            float& ofPart = lows[part * kQueries + q];
            const ivf_table::Range range = ivf_table::rangeOf<kMetric>(
                    ivf_table::normOf(ofPart), ivf_table::normOf(square));
            ofPart = range.low;
            widths += range.width;
            low += range.low;
            longest += square;
        }
        widths = sumOfLanes(widths);
        low = sumOfLanes(low);
        longest = sumOfLanes(longest);
        if (lane != 0) {
            return;
        }
        float sums[kSums] = {};
#pragma unroll
        for (int share = 0; share < kShares; ++share) {
#pragma unroll
            for (int i = 0; i < kSums; ++i) {
                sums[i] += shared.sums[i][share][q];
            }
        }
        const bool isBounded =
                ivf_table::isBounded(sums[kSquare], sums[kCenter], longest);
        ivf_table::PairNorms pair;
        pair.query = ivf_table::normOf(sums[kSquare]);
        pair.centroid = ivf_table::normOf(sums[kCenter]);
        pair.longest = ivf_table::normOf(longest);
        pair.products = sums[kSize] * ivf_table::kUp;
        const bool areTerms = params.queryTerms != nullptr;
        pair.step = ivf_table::stepOf(widths, numParts());
        if (areTerms) {
            pair.step = ivf_table::stepOfTerms<kMetric>(pair.step, pair);
        }
        const float base = kMetric == Metric::L2 ? sums[kSquare] + low
                                                 : low - sums[kProduct];
        shared.facts[q].base = isBounded ? base : NAN;
        shared.facts[q].step = isBounded ? pair.step : 0.0f;
        reinterpret_cast<float*>(shared.inverses)[q] =
                isBounded ? 1.0f / pair.step : 0.0f;
        // All that scan a part of the list for a pair have the same bound.
        if (run.first == 0 && uint32_t(q) < run.numRows) {
            const ivf_product::Bound bound = ivf_table::boundOf<kMetric>(
                    pair, numParts(), params.search.d, areTerms);
            uint32_t* to = params.bounds + 2 * shared.facts[q].row;
            // None is negative; what is no number is greater than all.
            atomicMax(to, isBounded ? __float_as_uint(bound.root) : kNoBound);
            atomicMax(
                    to + 1,
                    isBounded ? __float_as_uint(bound.square) : kNoBound);
        }
    }

    /// All entries, a thread those of two rows side by side at a time.
    __device__ __forceinline__ void fill() const {
        const int dims = partDims();
        const int half = 1 << (bits() - 1);
        const int items = numParts() * half;
        for (int i = int(threadIdx.x); i < items; i += kThreads) {
            const int part = i >> (bits() - 1);
            const int row = i & (half - 1);
            const auto* from =
                    reinterpret_cast<const float2*>(params.turnedCodebook) +
                    int64_t(part) * dims * half + row;
            const auto* s = reinterpret_cast<const float4*>(residuals) +
                    part * dims * 2;
            float products[2][kQueries] = {};
            float squares[2] = {};
#pragma unroll 4
            for (int c = 0; c < dims; ++c) {
                const float2 both = from[c * half];
                const float y[2] = {both.x, both.y};
                const float4 low = s[2 * c];
                const float4 high = s[2 * c + 1];
                const float of[kQueries] = {
                        low.x,
                        low.y,
                        low.z,
                        low.w,
                        high.x,
                        high.y,
                        high.z,
                        high.w};
#pragma unroll
                for (int r = 0; r < 2; ++r) {
#pragma unroll
                    for (int q = 0; q < kQueries; ++q) {
                        products[r][q] = __fmaf_rn(y[r], of[q], products[r][q]);
                    }
                    if constexpr (kMetric == Metric::L2) {
                        squares[r] = __fmaf_rn(y[r], y[r], squares[r]);
                    }
                }
            }
#pragma unroll
            for (int r = 0; r < 2; ++r) {
#pragma unroll
                for (int q = 0; q < kQueries; ++q) {
                    products[r][q] = kMetric == Metric::L2
                            ? __fmaf_rn(-2.0f, products[r][q], squares[r])
                            : -products[r][q];
                }
                put(2 * i + r, part, products[r]);
            }
        }
    }

    /// The same of terms that are there.
    __device__ __forceinline__ void addTerms(const IvfRun& run) const {
        const int half = 1 << (bits() - 1);
        const int items = numParts() * half;
        const auto* ofQueries =
                reinterpret_cast<const float2*>(params.queryTerms);
        const auto* ofList = reinterpret_cast<const float2*>(params.listTerms);
        if (params.search.lists.decoding.centroids) {
            ofList += int64_t(run.list) * items;
        }
#pragma unroll 1
        for (int i = int(threadIdx.x); i < items; i += kThreads) {
            float2 terms[kQueries];
#pragma unroll
            for (int q = 0; q < kQueries; ++q) {
                // Of queries that are not there those of the first row. All
                // have less than 2^29 numbers.
                terms[q] = ofQueries[shared.facts[q].row * uint32_t(items) + i];
            }
            float2 more = make_float2(0, 0);
            if constexpr (kMetric == Metric::L2) {
                more = ofList[i];
            }
            float low[kQueries];
            float high[kQueries];
#pragma unroll
            for (int q = 0; q < kQueries; ++q) {
                low[q] = __fadd_rn(terms[q].x, more.x);
                high[q] = __fadd_rn(terms[q].y, more.y);
            }
            const int part = i >> (bits() - 1);
            put(2 * i, part, low);
            put(2 * i + 1, part, high);
        }
    }

    /// A row's entries, in steps.
    __device__ __forceinline__ void put(
            int at,
            int part,
            const float (&of)[kQueries]) const {
        const auto* lowest = reinterpret_cast<const float4*>(lows) + part * 2;
        const float4 l = lowest[0];
        const float4 h = lowest[1];
        const float4 a = shared.inverses[0];
        const float4 b = shared.inverses[1];
        entries[at] = make_uint4(
                twoOf(of[0], l.x, a.x, of[1], l.y, a.y),
                twoOf(of[2], l.z, a.z, of[3], l.w, a.w),
                twoOf(of[4], h.x, b.x, of[5], h.y, b.y),
                twoOf(of[6], h.z, b.z, of[7], h.w, b.w));
    }

    /// Those of two queries in a word. What is no number, of a query without
    /// estimates, counts as 0. Numbers below 2^23 are rounded by adding that:
    /// of conversions there are 16 in a cycle and multiprocessor.
    __device__ __forceinline__ static uint32_t twoOf(
            float entry,
            float low,
            float inverse,
            float next,
            float lowOfNext,
            float inverseOfNext) {
        const auto numberOf = [](float scaled) {
            return __float_as_uint(__fadd_rn(scaled, 0x1p23f));
        };
        return __byte_perm(
                numberOf(ivf_table::scaledEntry(entry, low, inverse)),
                numberOf(
                        ivf_table::scaledEntry(next, lowOfNext, inverseOfNext)),
                0x5410);
    }
};

} // namespace faiss_bits

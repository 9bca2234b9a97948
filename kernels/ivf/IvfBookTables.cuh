/// Estimates of the keys of a query's lists, of product codes in rows, in
/// float32: the least of each four vectors. For some queries that seldom meet
/// in a list. IvfFloorBound.h says how far they may be from the keys.
///
/// A block has the codebook in shared memory, as IvfBookScan.cuh, and for a
/// list after another a table of what every row of it adds to an estimate; a
/// lane adds up the entries of a vector.
///
/// Bound by: look-ups in shared memory, 3.5 cycles for those of 32 lanes, so
/// that a vector of 32 parts takes a multiprocessor 3.5 and of 64 seven; and a
/// table, some 2,000 cycles of 128 dimensions, as long as 580 or 290 vectors.
#pragma once

#include <cfloat>

#include "kernels/ivf/IvfBookScan.cuh"
#include "kernels/ivf/IvfFloorBound.h"
#include "kernels/ivf/IvfFloors.h"

namespace faiss_bits {

/// kPartDims: components of a part, 2, 4, 8 or 16.
template <Metric kMetric, int kPartDims>
struct IvfBookTables {
    using Lists = IvfDirectListsBy<kIvfBookThreads>;
    static constexpr int kThreads = kIvfBookThreads;
    static constexpr int kWarps = kThreads / kWarpSize;
    static constexpr int kRows = kIvfCodebookRows;
    static constexpr int kOfFour = kIvfFloorVectors;
    static constexpr int kOfRead = 16; // codes
    static_assert(kThreads % kRows == 0 && kThreads >= kMostBookTableDims);

    struct SharedStorage {
        /// Of inner products a list's centroid, else the query less that.
        float list[kMostBookTableDims];
        float query[kMostBookTableDims];
        uint32_t squares[kMostBookTableDims]; // of each part the greatest
    };

    SharedStorage& shared;
    const Lists::Tables& lists;
    const IvfDirectParams& params;
    const float* book; // [parts, kRows, kPartDims], in shared memory
    float* table;      // [parts, kRows], likewise
    uint32_t row;

    /// Of 32s of columns of the row the part of block blockIdx.x. Begins with
    /// the block in step.
    __device__ __forceinline__ void run() const {
        const uint64_t total = lists.first[params.search.nprobe];
        const uint32_t begin = uint32_t(total * blockIdx.x / gridDim.x);
        const uint32_t end = uint32_t(total * (blockIdx.x + 1) / gridDim.x);
        const int d = params.search.d;
        if (begin >= end) {
            return;
        }
        const int c = int(threadIdx.x);
        if (c < d) {
            shared.query[c] = params.search.queries[int64_t(row) * d + c];
            shared.squares[c] = 0;
        }
        uint32_t probe = 0;
        const auto probeOf = [&](uint32_t at) {
            uint32_t p = probe;
            while (at >= lists.first[p + 1]) {
                ++p;
            }
            return p;
        };
        const auto centerOf = [&](uint32_t p) {
            const float* centroids = params.search.lists.decoding.centroids;
            return centroids && c < d
                    ? __ldg(centroids + int64_t(lists.numbers[p]) * d + c)
                    : 0.0f;
        };
        probe = probeOf(begin);
        float center = centerOf(probe);
        float longest = 0; // norm of a list's numbers, in the last warp
        for (uint32_t at = begin; at < end;) {
            const uint32_t last = min(end, lists.first[probe + 1]);
            __syncthreads(); // all have left the table
            if (c < d) {
                shared.list[c] = kMetric == Metric::L2
                        ? shared.query[c] - center
                        : center;
            }
            __syncthreads();
            if (at == begin) {
                makeTable<true>();
            } else if constexpr (kMetric == Metric::L2) {
                makeTable<false>();
            }
            float base = 0;
            if constexpr (kMetric != Metric::L2) {
                base = productOf(shared.list, shared.query);
            }
            if (threadIdx.x / kWarpSize == kWarps - 1) {
                longest = fmaxf(longest, productOf(shared.list, shared.list));
            }
            const uint32_t now = probe;
            if (last < end) { // on its way while this list is read
                probe = probeOf(last);
                center = centerOf(probe);
            }
            __syncthreads();
            for (uint32_t group = at + threadIdx.x / kWarpSize; group < last;
                 group += kWarps) {
                runGroup(group, now, base);
            }
            at = last;
        }
        if (threadIdx.x / kWarpSize == kWarps - 1) {
            keepBound(longest);
        }
    }

   private:
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

    /// kFirst: and of each part the greatest square of a row. The block is in
    /// step behind the next barrier.
    template <bool kFirst>
    __device__ __forceinline__ void makeTable() const {
        const int parts = params.search.d / kPartDims;
        const float* from = kMetric == Metric::L2 ? shared.list : shared.query;
        const int code = int(threadIdx.x) % kRows;
#pragma unroll 4
        for (int part = int(threadIdx.x) / kRows; part < parts;
             part += kThreads / kRows) {
            float y[kPartDims];
            float s[kPartDims];
            load(book + (part * kRows + code) * kPartDims, y);
            load(from + part * kPartDims, s);
            float sum = 0;
            float square = 0;
#pragma unroll
            for (int i = 0; i < kPartDims; ++i) {
                if constexpr (kMetric == Metric::L2) {
                    const float t = s[i] - y[i];
                    sum = __fmaf_rn(t, t, sum);
                } else {
                    sum = __fmaf_rn(s[i], y[i], sum);
                }
                square = __fmaf_rn(y[i], y[i], square);
            }
            table[part * kRows + code] = sum;
            if constexpr (kFirst) {
                // None is negative; what is no number is greater than all.
                const uint32_t most = __reduce_max_sync(
                        kFullWarp, __float_as_uint(square) & 0x7fffffff);
                if (threadIdx.x % kWarpSize == 0) {
                    atomicMax(&shared.squares[part], most);
                }
            }
        }
    }

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

    /// By the last warp, whose squares are there; longest: square of a norm.
    __device__ __forceinline__ void keepBound(float longest) const {
        const int d = params.search.d;
        float squares = 0;
        for (int part = int(threadIdx.x % kWarpSize); part < d / kPartDims;
             part += kWarpSize) {
            squares += __uint_as_float(shared.squares[part]);
        }
        const float bound = ivf_code::boundOfTables<kMetric>(
                productOf(shared.query, shared.query),
                longest,
                sumOfLanes(squares),
                d);
        if (threadIdx.x % kWarpSize == 0) {
            atomicMax(&params.bounds[2 * row], __float_as_uint(bound));
        }
    }

    /// Sixteen codes, `left` of which are there.
    __device__ __forceinline__ static void loadCodes(
            const uint8_t* from,
            int left,
            bool together,
            uint32_t (&words)[kOfRead / 4]) {
        if (together) {
            loadCodeWords<kOfRead>(from, words);
            return;
        }
#pragma unroll
        for (int w = 0; w < kOfRead / 4; ++w) {
            words[w] = 0;
#pragma unroll
            for (int b = 0; b < 4; ++b) {
                if (4 * w + b < left) {
                    words[w] |= uint32_t(from[4 * w + b]) << 8 * b;
                }
            }
        }
    }

    /// 32 columns of a probe, a lane each.
    __device__ __forceinline__ void runGroup(
            uint32_t at,
            uint32_t probe,
            float base) const {
        const IvfParams& search = params.search;
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t group = at - lists.first[probe];
        const uint32_t length = lists.lengths[probe];
        const uint32_t list = lists.numbers[probe];
        const uint32_t vector = group * kListGroup + lane;
        const uint32_t selected =
                IvfGroupWords::ofWarp(search.lists, list, group, length);
        float least = NAN;
        if (selected != 0) { // else nothing is read
            const int parts = search.d / kPartDims;
            const auto* from =
                    static_cast<const uint8_t*>(lists.vectors[probe]) +
                    int64_t(min(vector, length - 1)) * parts;
            // The same of all vectors of a list.
            const bool together = parts % kOfRead == 0 &&
                    reinterpret_cast<uintptr_t>(lists.vectors[probe]) %
                                    kOfRead ==
                            0;
            float sums[4] = {};
            uint32_t next[kOfRead / 4];
            loadCodes(from, parts, together, next);
            for (int part = 0; part < parts; part += kOfRead) {
                uint32_t words[kOfRead / 4];
#pragma unroll
                for (int w = 0; w < kOfRead / 4; ++w) {
                    words[w] = next[w];
                }
                const int left = parts - part - kOfRead;
                if (left > 0) {
                    loadCodes(from + part + kOfRead, left, together, next);
                }
                add(words, table + part * kRows, parts - part, sums);
            }
            const float key = ivf_code::keyOf<kMetric>(
                    (sums[0] + sums[1]) + (sums[2] + sums[3]), base);
            if (vector < length && (selected >> lane & 1)) {
                // What is not finite may be the nearest.
                least = fabsf(key) <= FLT_MAX ? key : -INFINITY;
            }
        }
        const uint32_t key = least >= -INFINITY ? orderedKey(least) : kNanKey;
#pragma unroll
        for (int lanes = 1; lanes < kOfFour; lanes *= 2) {
            least = fminf(least, __shfl_xor_sync(kFullWarp, least, lanes));
        }
        if (lane % kOfFour == 0) {
            search.distances
                    [int64_t(row) * (search.stride / kOfFour) +
                     (at * kListGroup + lane) / kOfFour] = least;
        }
        const uint32_t leastKey = __reduce_min_sync(kFullWarp, key);
        if (lane == 0) {
            params.least[int64_t(row) * (search.stride / kListGroup) + at] =
                    leastKey;
        }
    }

    /// Entries of some codes, `left` of which are there, to four sums.
    __device__ __forceinline__ static void add(
            const uint32_t (&words)[kOfRead / 4],
            const float* from,
            int left,
            float (&sums)[4]) {
        const auto addAll = [&](auto isThere) {
#pragma unroll
            for (int i = 0; i < kOfRead; ++i) {
                if (isThere(i)) {
                    const uint32_t code = words[i / 4] >> i % 4 * 8 & 0xff;
                    sums[i % 4] += from[i * kRows + code];
                }
            }
        };
        if (left >= kOfRead) {
            addAll([](int) { return true; });
        } else {
            addAll([&](int i) { return i < left; });
        }
    }
};

/// Blocks of a query (x) and queries (y).
template <Metric kMetric, int kPartDims>
__global__ __launch_bounds__(kIvfBookThreads, 1) void ivfBookTablesKernel(
        const __grid_constant__ IvfDirectParams params) {
    using Scan = IvfBookTables<kMetric, kPartDims>;
    using Lists = typename Scan::Lists;
    extern __shared__ __align__(16) uint8_t ivfBookTablesMemory[];
    const IvfParams& search = params.search;
    auto* book = reinterpret_cast<float*>(ivfBookTablesMemory);
    float* table = book + search.d * kIvfCodebookRows;
    auto& shared = *reinterpret_cast<typename Scan::SharedStorage*>(
            table + search.d / kPartDims * kIvfCodebookRows);
    auto& storage =
            *reinterpret_cast<typename Lists::SharedStorage*>(&shared + 1);
    const typename Lists::Tables lists(&storage + 1, search.nprobe);
    // What was there before the kernel of the centroids can be read while that
    // runs.
    if (!params.centroids) {
        waitForPrevious();
    }
    allowNext();
    beginBookCopy(search, book);
    if (params.centroids) {
        Lists::prefetch(
                search.lists,
                blockIdx.y * gridDim.x + blockIdx.x,
                gridDim.x * gridDim.y);
        waitForPrevious();
    }
    Lists{storage, lists, params, blockIdx.y}.find();
    waitForAllCopies();
    __syncthreads();
    Scan{shared, lists, params, book, table, blockIdx.y}.run();
}

} // namespace faiss_bits

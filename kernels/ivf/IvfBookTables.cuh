/// Estimates of the keys of a query's lists, of product codes in rows, in
/// float32. For some queries that seldom meet in a list. IvfFloorBound.h says
/// how far they may be from the keys.
///
/// A block has the codebook in shared memory, as IvfBookScan.cuh, and for a
/// list after another a table of what every row of it adds to an estimate; a
/// lane adds up the entries of a vector. The block's codes are asked for when
/// its lists are known, and a warp loads those of its next group, whatever list
/// that is of, while it looks up the ones before.
///
/// Bound by: look-ups in shared memory, 3.5 cycles for those of 32 lanes, so
/// that a vector of 32 parts takes a multiprocessor 3.5 and of 64 seven; and a
/// table, some 2,000 cycles of 128 dimensions, as long as 580 or 290 vectors.
#pragma once

#include "kernels/ivf/IvfBookCodes.cuh"

namespace faiss_bits {

/// kPartDims: components of a part, 2, 4, 8 or 16.
template <Metric kMetric, int kPartDims>
struct IvfBookTables {
    using LookUps = IvfBookLookUps<kMetric>;
    using Lists = typename LookUps::Lists;
    static constexpr int kThreads = kIvfBookThreads;
    static constexpr int kWarps = kThreads / kWarpSize;
    static constexpr int kRows = kIvfCodebookRows;
    static_assert(kThreads % kRows == 0 && kThreads >= kMostBookTableDims);

    struct SharedStorage {
        /// Of inner products a list's centroid, else the query less that.
        float list[kMostBookTableDims];
        float query[kMostBookTableDims];
        uint32_t squares[kMostBookTableDims]; // of each part the greatest
    };

    SharedStorage& shared;
    const typename Lists::Tables& lists;
    const IvfDirectParams& params;
    const float* book; // [parts, kRows, kPartDims], in shared memory
    float* table;      // [parts, kRows], likewise
    uint32_t row;

    /// Of 32s of columns of the row the part of block blockIdx.x. Begins with
    /// the block in step.
    __device__ __forceinline__ void run() const {
        const LookUps lookUps(lists, params, row);
        const uint32_t end = lookUps.end;
        const int d = params.search.d;
        if (lookUps.begin >= end) {
            return;
        }
        const int c = int(threadIdx.x);
        if (c < d) {
            shared.query[c] = params.search.queries[int64_t(row) * d + c];
            shared.squares[c] = 0;
        }
        uint32_t probe = lists.probeOf(lookUps.begin, params.search.nprobe);
        float center = lookUps.centerOf(probe, c);
        lookUps.prefetch(probe);
        auto place = lookUps.firstOf(probe);
        IvfBookCodes<kMetric> codes(lookUps, table, place);
        float longest = 0; // norm of a list's numbers, in the last warp
        for (uint32_t at = lookUps.begin; at < end;) {
            const uint32_t last = min(end, lists.first[probe + 1]);
            __syncthreads(); // all have left the table
            if (c < d) {
                shared.list[c] = LookUps::numberOf(shared.query[c], center);
            }
            __syncthreads();
            if (at == lookUps.begin) {
                makeTable<true>();
            } else if constexpr (kMetric == Metric::L2) {
                makeTable<false>();
            }
            const float base = lookUps.baseOf(shared.list, shared.query);
            if (threadIdx.x / kWarpSize == kWarps - 1) {
                longest = fmaxf(
                        longest, lookUps.productOf(shared.list, shared.list));
            }
            if (last < end) { // on its way while this list is read
                probe = lookUps.probeOf(last, probe);
                center = lookUps.centerOf(probe, c);
            }
            __syncthreads();
            while (place.at < last) {
                lookUps.runGroup(place, base, codes);
            }
            at = last;
        }
        if (threadIdx.x / kWarpSize == kWarps - 1) {
            lookUps.keepBound(shared.query, longest, shared.squares);
        }
    }

   private:
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
            LookUps::load(book + (part * kRows + code) * kPartDims, y);
            LookUps::load(from + part * kPartDims, s);
            table[part * kRows + code] = LookUps::entryOf(s, y);
            if constexpr (kFirst) {
                LookUps::keepSquare(
                        shared.squares[part], LookUps::squareBitsOf(y));
            }
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

/// Estimates of the keys of a query's lists as IvfBookTables.cuh makes them, of
/// up to 128 dimensions: the codebook lies in the registers of a block, and of
/// two lists after each other it has the tables.
///
/// While half of the warps make the table of the next list, the other half look
/// up the codes of this one; then the other way round. So a list costs one
/// barrier, and what takes arithmetic goes beside what takes shared memory.
///
/// All 128 registers are taken, and four bytes spilled (nvcc 13.0, sm_90).
///
/// Bound by: look-ups in shared memory, 3.5 cycles for those of 32 lanes, so
/// that a vector of 32 parts takes a multiprocessor 3.5 and of 64 seven; and a
/// table, of 128 dimensions 512 cycles of arithmetic and 384 or 768 of shared
/// memory.
#pragma once

#include "kernels/ivf/IvfBookLookUps.cuh"

namespace faiss_bits {

/// kPartDims: components of a part, 2, 4, 8 or 16.
template <Metric kMetric, int kPartDims>
struct IvfHeldTables {
    using LookUps = IvfBookLookUps<kMetric>;
    using Lists = typename LookUps::Lists;
    static constexpr int kThreads = kIvfBookThreads;
    static constexpr int kRows = kIvfCodebookRows;
    /// Rows of a thread, side by side, of some parts.
    static constexpr int kOfThread = 2;
    static constexpr int kOfPart = kRows / kOfThread;    // threads
    static constexpr int kTogether = kThreads / kOfPart; // parts
    static constexpr int kParts = kMostHeldDims / kPartDims / kTogether;
    static_assert(kThreads >= kMostHeldDims && kOfPart % kWarpSize == 0);
    static constexpr uint32_t kNone = ~0u;

    struct SharedStorage {
        /// Of this list and the next: IvfBookLookUps::numberOf.
        float lists[2][kMostHeldDims];
        float query[kMostHeldDims];
        uint32_t squares[kMostHeldDims]; // of each part the greatest
    };

    SharedStorage& shared;
    float* tables; // [2, parts, kRows], in shared memory
    const IvfDirectParams& params;
    float rows[kParts][kOfThread][kPartDims];

    /// Reads the codebook and the query; the block is in step behind the next
    /// barrier.
    __device__ __forceinline__ void begin(uint32_t row) {
        const float* book = params.search.lists.decoding.codebook;
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
#pragma unroll
            for (int j = 0; j < kOfThread; ++j) {
                if (part(i) < numParts()) {
                    LookUps::load(
                            book + (part(i) * kRows + code() + j) * kPartDims,
                            rows[i][j]);
                }
            }
        }
        const int c = int(threadIdx.x);
        if (c < kMostHeldDims) {
            shared.squares[c] = 0;
        }
        if (c < params.search.d) {
            shared.query[c] =
                    params.search.queries[int64_t(row) * params.search.d + c];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            if (part(i) < numParts()) { // in all lanes
#pragma unroll
                for (int j = 0; j < kOfThread; ++j) {
                    LookUps::keepSquare(
                            shared.squares[part(i)],
                            LookUps::squareOf(rows[i][j]));
                }
            }
        }
    }

    /// Of 32s of columns of the row the part of block blockIdx.x. Begins with
    /// the block in step.
    __device__ __forceinline__ void run(
            const typename Lists::Tables& lists,
            uint32_t row) const {
        const LookUps lookUps(lists, params, row);
        if (lookUps.begin >= lookUps.end) {
            return;
        }
        const int c = int(threadIdx.x);
        const bool hasNumber = c < params.search.d;
        uint32_t probe = lookUps.probeOf(lookUps.begin, 0);
        uint32_t next = after(lookUps, probe);
        float center = lookUps.centerOf(probe, c);
        float centerOfNext = next != kNone ? lookUps.centerOf(next, c) : 0.0f;
        lookUps.prefetch(probe);
        typename LookUps::Codes codes;
        auto place = lookUps.enterFirst(probe, codes);
        if (hasNumber) {
            const float x = shared.query[c];
            shared.lists[0][c] = LookUps::numberOf(x, center);
            shared.lists[1][c] = LookUps::numberOf(x, centerOfNext);
        }
        __syncthreads();
        makeTable(0);
        float base = lookUps.baseOf(shared.lists[0], shared.query);
        float longest = longestOf(lookUps, 0); // in the last warp
        __syncthreads();
        // Warps of either half on each quarter of a multiprocessor.
        const uint32_t mine = threadIdx.x / (4 * kWarpSize) % 2;
        for (int turn = 0;; turn ^= 1) {
            // On its way while this list is read.
            const uint32_t further =
                    next != kNone ? after(lookUps, next) : kNone;
            center = further != kNone ? lookUps.centerOf(further, c) : 0.0f;
            const uint32_t last = min(lookUps.end, lists.first[probe + 1]);
            float baseOfNext = 0;
#pragma unroll 1
            for (uint32_t half = 0; half < 2; ++half) {
                if (half == mine) {
                    while (place.at < last) {
                        lookUps.runGroup(place, tableOf(turn), base, codes);
                    }
                } else if (next != kNone) {
                    if constexpr (kMetric == Metric::L2) {
                        makeTable(turn ^ 1);
                    }
                    baseOfNext = lookUps.baseOf(
                            shared.lists[turn ^ 1], shared.query);
                    longest = fmaxf(longest, longestOf(lookUps, turn ^ 1));
                }
            }
            if (next == kNone) {
                break;
            }
            if (hasNumber) { // of no list, it may be
                shared.lists[turn][c] =
                        LookUps::numberOf(shared.query[c], center);
            }
            probe = next;
            next = after(lookUps, probe);
            base = baseOfNext;
            __syncthreads();
        }
        if (isLastWarp()) {
            lookUps.keepBound(shared.query, longest, shared.squares);
        }
    }

   private:
    /// The block's next list that has columns.
    __device__ __forceinline__ static uint32_t after(
            const LookUps& lookUps,
            uint32_t probe) {
        const uint32_t last = lookUps.lists.first[probe + 1];
        return last < lookUps.end ? lookUps.probeOf(last, probe) : kNone;
    }

    __device__ __forceinline__ int numParts() const {
        return params.search.d / kPartDims;
    }

    /// Of a thread its i-th part, and the first of its rows.
    __device__ __forceinline__ static int part(int i) {
        return int(threadIdx.x) / kOfPart + i * kTogether;
    }
    __device__ __forceinline__ static int code() {
        return int(threadIdx.x) % kOfPart * kOfThread;
    }

    __device__ __forceinline__ static bool isLastWarp() {
        return threadIdx.x / kWarpSize == kThreads / kWarpSize - 1;
    }

    /// Of inner products all lists have one.
    __device__ __forceinline__ float* tableOf(int turn) const {
        return kMetric == Metric::L2 ? tables + turn * numParts() * kRows
                                     : tables;
    }

    __device__ __forceinline__ void makeTable(int turn) const {
        const float* from =
                kMetric == Metric::L2 ? shared.lists[turn] : shared.query;
        float* to = tableOf(turn);
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            if (part(i) < numParts()) {
                float s[kPartDims];
                LookUps::load(from + part(i) * kPartDims, s);
                *reinterpret_cast<float2*>(to + part(i) * kRows + code()) = {
                        LookUps::entryOf(s, rows[i][0]),
                        LookUps::entryOf(s, rows[i][1])};
            }
        }
    }

    /// The square of a norm, for the bound.
    __device__ __forceinline__ float longestOf(const LookUps& lookUps, int turn)
            const {
        return isLastWarp()
                ? lookUps.productOf(shared.lists[turn], shared.lists[turn])
                : 0.0f;
    }
};

/// Blocks of a query (x) and queries (y).
template <Metric kMetric, int kPartDims>
__global__ __launch_bounds__(kIvfBookThreads, 1) void ivfHeldTablesKernel(
        const __grid_constant__ IvfDirectParams params) {
    using Scan = IvfHeldTables<kMetric, kPartDims>;
    using Lists = typename Scan::Lists;
    extern __shared__ __align__(16) uint8_t ivfHeldTablesMemory[];
    const IvfParams& search = params.search;
    auto* tables = reinterpret_cast<float*>(ivfHeldTablesMemory);
    auto& shared = *reinterpret_cast<typename Scan::SharedStorage*>(
            tables + 2 * (search.d / kPartDims) * kIvfCodebookRows);
    auto& storage =
            *reinterpret_cast<typename Lists::SharedStorage*>(&shared + 1);
    const typename Lists::Tables lists(&storage + 1, search.nprobe);
    // What was there before the kernel of the centroids can be read while that
    // runs.
    if (!params.centroids) {
        waitForPrevious();
    }
    allowNext();
    Scan scan{shared, tables, params, {}};
    if (params.centroids) {
        Lists::prefetch(
                search.lists,
                blockIdx.y * gridDim.x + blockIdx.x,
                gridDim.x * gridDim.y);
    }
    scan.begin(blockIdx.y);
    if (params.centroids) {
        waitForPrevious();
    }
    Lists{storage, lists, params, blockIdx.y}.find();
    scan.run(lists, blockIdx.y);
}

} // namespace faiss_bits

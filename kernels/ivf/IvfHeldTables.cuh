/// Estimates of the keys of a query's lists as IvfBookTables.cuh makes them, of
/// up to 128 dimensions: the codebook lies in the registers of a block, and of
/// two lists after each other it has the tables.
///
/// While half of the warps make the table of the next list, the other half look
/// up the codes of this one; then the other way round. So a list costs one
/// barrier, and what takes arithmetic goes beside what takes shared memory.
/// There are no registers left for codes: they come through shared memory.
///
/// Bound by: look-ups in shared memory, 3.5 cycles for those of 32 lanes, so
/// that a vector of 32 parts takes a multiprocessor 3.5 and of 64 seven; and a
/// table, of 128 dimensions 512 cycles of arithmetic and 384 or 768 of shared
/// memory.
#pragma once

#include "kernels/ivf/IvfBookLookUps.cuh"
#include "kernels/ivf/IvfCodeRing.cuh"

namespace faiss_bits {

/// kPartDims: components of a part, 2, 4, 8 or 16.
template <Metric kMetric, int kPartDims>
struct IvfHeldTables {
    using LookUps = IvfBookLookUps<kMetric>;
    using Lists = typename LookUps::Lists;
    using Ring = IvfCodeRing<LookUps>;
    static constexpr int kThreads = kIvfBookThreads;
    static constexpr int kRows = kIvfCodebookRows;
    /// Rows of a thread, side by side, of some parts.
    static constexpr int kOfThread = 2;
    static constexpr int kOfPart = kRows / kOfThread;    // threads
    static constexpr int kTogether = kThreads / kOfPart; // parts
    static constexpr int kParts = kMostHeldDims / kPartDims / kTogether;
    /// Of a list: with parts behind the last, which are zeros.
    static constexpr int kTableSize = kMostHeldDims / kPartDims * kRows;
    static_assert(kThreads >= kMostHeldDims && kOfPart % kWarpSize == 0);
    static constexpr uint32_t kNone = ~0u;

    struct SharedStorage {
        /// Of this list and the next: IvfBookLookUps::numberOf.
        float lists[2][kMostHeldDims];
        float query[kMostHeldDims];
        uint32_t squares[kMostHeldDims]; // of each part the greatest
    };

    SharedStorage& shared;
    float* tables;  // [2, kTableSize], in shared memory
    uint8_t* codes; // of a ring, in shared memory
    const IvfDirectParams& params;
    float rows[kParts][kOfThread][kPartDims];

    /// Asks for the codebook, and reads the query.
    __device__ __forceinline__ void begin(uint32_t row) {
        const float* book = params.search.lists.decoding.codebook;
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
#pragma unroll
            for (int j = 0; j < kOfThread; ++j) {
#pragma unroll
                for (int k = 0; k < kPartDims; ++k) {
                    rows[i][j][k] = 0;
                }
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
            const int d = params.search.d;
            shared.query[c] =
                    c < d ? params.search.queries[int64_t(row) * d + c] : 0.0f;
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
        const bool hasNumber = c < kMostHeldDims;
        uint32_t probe = lookUps.probeOf(lookUps.begin, 0);
        uint32_t next = after(lookUps, probe);
        float center = lookUps.centerOf(probe, c);
        float centerOfNext = next != kNone ? lookUps.centerOf(next, c) : 0.0f;
        auto place = lookUps.firstOf(probe);
        Ring ring(lookUps, codes, probe);
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
                        lookUps.runGroup(place, tableOf(turn), base, ring);
                    }
                } else if (next != kNone) {
                    if constexpr (kMetric == Metric::L2) {
                        makeTable(turn ^ 1);
                    }
                    baseOfNext = lookUps.baseOf(
                            shared.lists[turn ^ 1], shared.query);
                    longest = fmaxf(longest, longestOf(lookUps, turn ^ 1));
                } else { // of the last list, once
                    keepSquares();
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
        waitForAllCopies();
        __syncthreads();
        if (isLastWarp()) {
            lookUps.keepBound(shared.query, longest, shared.squares);
        }
    }

   private:
    /// For the bound.
    __device__ __forceinline__ void keepSquares() const {
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            uint32_t greatest = 0;
#pragma unroll
            for (int j = 0; j < kOfThread; ++j) {
                greatest = max(greatest, LookUps::squareBitsOf(rows[i][j]));
            }
            LookUps::keepSquare(shared.squares[part(i)], greatest);
        }
    }

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
        return kMetric == Metric::L2 ? tables + turn * kTableSize : tables;
    }

    __device__ __forceinline__ void makeTable(int turn) const {
        const float* from =
                kMetric == Metric::L2 ? shared.lists[turn] : shared.query;
        float* to = tableOf(turn);
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            float s[kPartDims];
            LookUps::load(from + part(i) * kPartDims, s);
            *reinterpret_cast<float2*>(to + part(i) * kRows + code()) = {
                    LookUps::entryOf(s, rows[i][0]),
                    LookUps::entryOf(s, rows[i][1])};
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
    auto* codes = reinterpret_cast<uint8_t*>(tables + 2 * Scan::kTableSize);
    auto& shared = *reinterpret_cast<typename Scan::SharedStorage*>(
            codes + kIvfCodeStages * kIvfCodeStageBytes);
    auto& storage =
            *reinterpret_cast<typename Lists::SharedStorage*>(&shared + 1);
    const typename Lists::Tables lists(&storage + 1, search.nprobe);
    // What was there before the kernel of the centroids can be read while that
    // runs.
    if (!params.centroids) {
        waitForPrevious();
    }
    allowNext();
    Scan scan{shared, tables, codes, params, {}};
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

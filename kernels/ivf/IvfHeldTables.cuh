/// Estimates of the keys of a query's lists as IvfBookTables.cuh makes them, of
/// up to 128 dimensions: the codebook lies in the registers of a block, and of
/// two lists after each other it has the tables.
///
/// While half of the warps make the table of the next list, the other half look
/// up the codes of this one; then the other way round. So a list costs one
/// barrier, and what takes arithmetic goes beside what takes shared memory.
/// There are no registers left for codes: they come through shared memory.
/// Entries lie so that look-ups of 32 lanes take one turn of the banks
/// (IvfPartBanks.cuh).
///
/// Bound by: instructions, four for a look-up of 32 lanes, three for four codes
/// and some 150 beside for 32 vectors; and a table, of 128 dimensions 512
/// cycles of arithmetic and 256 or 512 of shared memory. Two registers are
/// spilled once a list.
#pragma once

#include "kernels/ivf/IvfBookLookUps.cuh"
#include "kernels/ivf/IvfCodeRing.cuh"
#include "kernels/ivf/IvfPartBanks.cuh"

namespace faiss_bits {

/// kPartDims: components of a part, 2, 4, 8 or 16.
template <Metric kMetric, int kPartDims>
struct IvfHeldTables {
    using LookUps = IvfBookLookUps<kMetric>;
    using Lists = typename LookUps::Lists;
    using Banks = IvfPartBanks<kPartDims>;
    using Order = IvfPartOrder<kPartDims>;
    using Ring = IvfCodeRing<LookUps, Order>;
    static constexpr int kThreads = kIvfBookThreads;
    static constexpr int kRows = kIvfCodebookRows;
    /// Of a warp all parts of some rows: of a lane rows side by side of a part
    /// of each round.
    static constexpr int kOfWarp = kRows / (kThreads / kWarpSize);
    static constexpr int kOfThread = kOfWarp / Order::kCopies;
    static_assert(kThreads >= kMostHeldDims && kOfThread > 0);
    static constexpr uint32_t kNone = ~0u;

    struct SharedStorage {
        /// Of this list and the next: IvfBookLookUps::numberOf.
        float lists[2][kMostHeldDims];
        float query[kMostHeldDims];
        uint32_t squares[kMostHeldDims]; // of each part the greatest
    };

    SharedStorage& shared;
    uint8_t* tables; // Banks::kBytes, in shared memory
    uint8_t* codes;  // of a ring, in shared memory
    const IvfDirectParams& params;
    float rows[Order::kRounds][kOfThread][kPartDims];

    /// The columns of a warp.
    struct Columns {
        const LookUps& lookUps;
        Ring ring;
        Banks banks;
        uint32_t tables;
        IvfKeptRow row;
        bool isFiltered;

        __device__ __forceinline__
        Columns(const LookUps& ofLists,
                const uint8_t* ofBlock,
                uint8_t* codes,
                uint32_t probe)
                : lookUps(ofLists),
                  ring(ofLists, codes, probe),
                  tables(__reduce_max_sync(kFullWarp, sharedAddress(ofBlock))),
                  row(ofLists.params, ofLists.row) {
            const IvfLists& all = ofLists.params.search.lists;
            isFiltered = all.selectedBits ||
                    all.idTest.kind != ListIdTest::Kind::None;
        }

        /// All of the block's list `probe`, whose table is one of two.
        __device__ __forceinline__ void run(
                uint32_t probe,
                uint32_t table,
                float base) {
            const IvfLists& lists = lookUps.params.search.lists;
            const uint32_t last = lookUps.lastOf(probe);
            const uint32_t first = lookUps.lists.first[probe];
            uint32_t at = max(lookUps.begin, first) + threadIdx.x / kWarpSize;
            uint32_t left = lookUps.leftOf(lookUps.vectorOf(at, probe), probe);
            for (; at < last; at += LookUps::kWarps) {
                uint32_t selected = ~0u;
                if (isFiltered) {
                    selected = IvfGroupWords::ofWarp(
                            lists,
                            lookUps.lists.numbers[probe],
                            at - first,
                            lookUps.lists.lengths[probe]);
                }
                const float sum = sumOf(table, selected != 0);
                row.keep(
                        at,
                        ivf_code::keyOf<kMetric>(sum, base),
                        left > 0 && (selected >> threadIdx.x % kWarpSize & 1));
                left = LookUps::afterTurn(left);
            }
        }

       private:
        /// Of this lane's vector; isSelected: else it is not looked up.
        __device__ __forceinline__ float sumOf(uint32_t list, bool isSelected) {
            float sums[4] = {};
            int round = 0;
#pragma unroll 1
            do {
                const uint32_t codes = ring.take();
                if (isSelected) {
                    const int parts = ring.numParts - round * Order::kSlots;
                    banks.add(
                            codes,
                            parts > kIvfCodeBytes ? kIvfCodePieceBytes : 0,
                            tables,
                            Order::tableOf(list, round),
                            sums);
                }
                ring.drop();
                ++round;
            } while (round < Order::kRounds &&
                     round * Order::kSlots < ring.numParts);
            return (sums[0] + sums[1]) + (sums[2] + sums[3]);
        }
    };

    /// Asks for the codebook, and reads the query.
    __device__ __forceinline__ void begin(uint32_t row) {
        askRows();
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
            uint32_t row) {
        const LookUps lookUps(lists, params, row);
        if (lookUps.begin >= lookUps.end) {
            return;
        }
        const int c = int(threadIdx.x);
        const bool hasNumber = c < kMostHeldDims;
        uint32_t probe = lists.probeOf(lookUps.begin, params.search.nprobe);
        uint32_t next = after(lookUps, probe);
        float center = lookUps.centerOf(probe, c);
        float centerOfNext = next != kNone ? lookUps.centerOf(next, c) : 0.0f;
        takeRows();
        __syncthreads(); // all have: tables and codes come to where they were
        Columns columns(lookUps, tables, codes, probe);
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
        for (uint32_t turn = 0;; turn ^= 1) {
            // On its way while this list is read.
            const uint32_t further =
                    next != kNone ? after(lookUps, next) : kNone;
            center = further != kNone ? lookUps.centerOf(further, c) : 0.0f;
            float baseOfNext = 0;
#pragma unroll 1
            for (uint32_t half = 0; half < 2; ++half) {
                if (half == mine) {
                    columns.run(probe, listOf(turn), base);
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
            next = further;
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
    // The codebook comes to where tables and codes are later, 16 bytes at a
    // time: pieces of a warp's rows lie side by side, the rows that a lane has
    // of a part are some pieces.
    static constexpr int kOfPart = kOfWarp * kPartDims / 4; // pieces
    static constexpr int kOfRun = kOfPart / Order::kCopies;
    static constexpr int kPieces = kOfPart * Order::kParts; // of a warp
    static_assert(
            kPieces * 16 * (kThreads / kWarpSize) <=
            Banks::kBytes + kIvfCodePieces * kIvfCodePieceBytes);

    /// Where a piece lies, so that eight lanes that each read one of their own
    /// rows meet in no bank.
    __device__ __forceinline__ float4* pieceOf(int piece) const {
        const int run = piece / kOfRun;
        auto* own = reinterpret_cast<float4*>(tables) +
                int(threadIdx.x) / kWarpSize * kPieces;
        return own + (piece ^ (run ^ run / 8) % 8);
    }

    __device__ __forceinline__ void askRows() const {
        const float* book = params.search.lists.decoding.codebook;
        const int warp = int(threadIdx.x) / kWarpSize;
#pragma unroll 4
        for (int piece = int(threadIdx.x) % kWarpSize; piece < kPieces;
             piece += kWarpSize) {
            const int of = piece / kOfPart;
            const float* from = book +
                    (of * kRows + warp * kOfWarp) * kPartDims +
                    piece % kOfPart * 4;
            if (of < numParts()) {
                copyAsync(sharedAddress(pieceOf(piece)), from);
            } else {
                *pieceOf(piece) = {0, 0, 0, 0};
            }
        }
        endCopies();
    }

    __device__ __forceinline__ void takeRows() {
        waitForAllCopies();
        __syncwarp();
#pragma unroll
        for (int i = 0; i < Order::kRounds; ++i) {
            const int first = part(i) * kOfPart + copy() * kOfRun;
            float* to = rows[i][0];
#pragma unroll
            for (int p = 0; p < kOfRun; ++p) {
                const float4 four = *pieceOf(first + p);
                to[4 * p] = four.x;
                to[4 * p + 1] = four.y;
                to[4 * p + 2] = four.z;
                to[4 * p + 3] = four.w;
            }
        }
    }

    /// For the bound.
    __device__ __forceinline__ void keepSquares() const {
#pragma unroll
        for (int i = 0; i < Order::kRounds; ++i) {
            uint32_t greatest = 0;
#pragma unroll
            for (int j = 0; j < kOfThread; ++j) {
                greatest = max(greatest, LookUps::squareBitsOf(rows[i][j]));
            }
            atomicMax(&shared.squares[part(i)], greatest);
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
        return int(threadIdx.x) % Order::kSlots + i * Order::kSlots;
    }
    __device__ __forceinline__ static int code() {
        return int(threadIdx.x) / kWarpSize * kOfWarp + copy() * kOfThread;
    }

    /// Of those of its part's entries the one that the thread writes first.
    __device__ __forceinline__ static int copy() {
        return int(threadIdx.x) % kWarpSize / Order::kSlots;
    }

    __device__ __forceinline__ static bool isLastWarp() {
        return threadIdx.x / kWarpSize == kThreads / kWarpSize - 1;
    }

    /// Of inner products all lists have one.
    __device__ __forceinline__ static uint32_t listOf(uint32_t turn) {
        return kMetric == Metric::L2 ? turn : 0;
    }

    __device__ __forceinline__ void makeTable(uint32_t turn) const {
        const float* from =
                kMetric == Metric::L2 ? shared.lists[turn] : shared.query;
        uint8_t* to = tables + listOf(turn) * Banks::kListBytes +
                code() * Banks::kRowBytes;
#pragma unroll
        for (int i = 0; i < Order::kRounds; ++i) {
            float s[kPartDims];
            LookUps::load(from + part(i) * kPartDims, s);
#pragma unroll
            for (int j = 0; j < kOfThread; ++j) {
                const float entry = LookUps::entryOf(s, rows[i][j]);
                // Lanes of different rows write different copies at a time.
#pragma unroll
                for (int k = 0; k < Order::kCopies; ++k) {
                    *reinterpret_cast<float*>(
                            to + i * Banks::kRoundBytes + j * Banks::kRowBytes +
                            Order::placeOf(
                                    int(threadIdx.x) % Order::kSlots,
                                    copy() ^ k)) = entry;
                }
            }
        }
    }

    /// The square of a norm, for the bound.
    __device__ __forceinline__ float longestOf(
            const LookUps& lookUps,
            uint32_t turn) const {
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
    uint8_t* tables = ivfHeldTablesMemory;
    uint8_t* codes = tables + Scan::Banks::kBytes;
    auto& shared = *reinterpret_cast<typename Scan::SharedStorage*>(
            codes + kIvfCodePieces * kIvfCodePieceBytes);
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

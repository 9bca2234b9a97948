/// Estimates of the keys of a query's lists as IvfBookTables.cuh makes them, of
/// up to 128 dimensions: the codebook lies in the registers of a block, and in
/// shared memory are the tables of its lists.
///
/// A step is two lists, of more than 32 parts one. While half of the warps make
/// the tables of the next step, the other half look up the codes of this one;
/// then the other way round. So a step costs one barrier, and what takes
/// arithmetic goes beside what takes shared memory. A warp takes every 16th 32
/// columns of a step's lists together: of two lists fewer warps wait for others
/// that have one turn more. There are no registers left for codes: they come
/// through shared memory. Entries lie so that look-ups of 32 lanes take one
/// turn of the banks (IvfPartBanks.cuh).
///
/// Bound by: the columns (IvfHeldColumns.cuh); and a table, of 128 dimensions
/// 512 cycles of arithmetic and 256 or 512 of shared memory.
#pragma once

#include "kernels/ivf/IvfHeldColumns.cuh"

namespace faiss_bits {

/// kPartDims: components of a part, 2, 4, 8 or 16.
template <Metric kMetric, int kPartDims>
struct IvfHeldTables {
    using LookUps = IvfBookLookUps<kMetric>;
    using Lists = typename LookUps::Lists;
    using Banks = IvfPartBanks<kPartDims>;
    using Order = IvfPartOrder<kPartDims>;
    using Columns = IvfHeldColumns<kMetric, kPartDims>;
    static constexpr int kThreads = kIvfBookThreads;
    static constexpr int kRows = kIvfCodebookRows;
    /// Of a warp all parts of some rows: of a lane rows side by side of a part
    /// of each round.
    static constexpr int kOfWarp = kRows / (kThreads / kWarpSize);
    static constexpr int kOfThread = kOfWarp / Order::kCopies;
    static_assert(kThreads >= kMostHeldDims && kOfThread > 0);
    static constexpr uint32_t kNone = ~0u;

    struct SharedStorage {
        /// Of this step and the next: IvfBookLookUps::numberOf.
        float lists[4][kMostHeldDims];
        float query[kMostHeldDims];
        uint32_t squares[kMostHeldDims]; // of each part the greatest
    };

    /// Lists that have their tables at a time.
    static constexpr int kOfStep = Order::kRounds == 1 ? 2 : 1;

    SharedStorage& shared;
    uint8_t* tables; // Banks::kBytes, in shared memory
    uint8_t* codes;  // of a ring, in shared memory
    const IvfDirectParams& params;
    float rows[Order::kRounds][kOfThread][kPartDims];

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
        Step now;
        now.probes[0] = lists.probeOf(lookUps.begin, params.search.nprobe);
        if constexpr (kOfStep > 1) {
            now.probes[1] = after(lookUps, now.probes[0]);
        }
        Step next = stepAfter(lookUps, now);
        Numbers centers = centersOf(lookUps, now);
        const Numbers centersOfNext = centersOf(lookUps, next);
        Columns columns(lookUps, tables, codes, now.probes[0]);
        takeRows();
        __syncthreads(); // all have: tables come to where rows were
        keepNumbers(0, centers);
        keepNumbers(1, centersOfNext);
        __syncthreads();
        float longest = 0; // in the last warp
        float bases[kOfStep] = {};
        if constexpr (kMetric != Metric::L2) {
            makeTable(shared.query, 0);
        }
        makeTables(lookUps, 0, now, bases, longest);
        __syncthreads();
        // Warps of either half on each quarter of a multiprocessor.
        const uint32_t mine = threadIdx.x / (4 * kWarpSize) % 2;
        for (uint32_t turn = 0;; turn ^= 1) {
            // On its way while these lists are read.
            const Step further = stepAfter(lookUps, next);
            centers = centersOf(lookUps, further);
            float basesOfNext[kOfStep] = {};
#pragma unroll 1
            for (uint32_t half = 0; half < 2; ++half) {
                if (half == mine) {
#pragma unroll 1
                    for (int i = 0; i < kOfStep; ++i) {
                        const uint32_t probe = now.probe(i);
                        if (probe != kNone) {
                            columns.run(
                                    probe,
                                    tableOf(turn, i),
                                    i == 0 ? bases[0] : bases[kOfStep - 1]);
                        }
                    }
                } else if (next.probes[0] != kNone) {
                    makeTables(lookUps, turn ^ 1, next, basesOfNext, longest);
                } else { // of the last lists, once
                    keepSquares();
                }
            }
            if (next.probes[0] == kNone) {
                break;
            }
            keepNumbers(turn, centers); // of no list, it may be
            now = next;
            next = further;
#pragma unroll
            for (int i = 0; i < kOfStep; ++i) {
                bases[i] = basesOfNext[i];
            }
            __syncthreads();
        }
        waitForAllCopies();
        __syncthreads();
        if (isLastWarp()) {
            lookUps.keepBound(shared.query, longest, shared.squares);
        }
    }

   private:
    /// Lists after each other, none behind the last.
    struct Step {
        uint32_t probes[kOfStep];

        __device__ __forceinline__ uint32_t probe(int i) const {
            return i == 0 ? probes[0] : probes[kOfStep - 1];
        }
    };
    struct Numbers {
        float ofLists[kOfStep];
    };

    __device__ __forceinline__ static Step stepAfter(
            const LookUps& lookUps,
            const Step& step) {
        Step next;
        uint32_t probe = step.probes[kOfStep - 1];
#pragma unroll
        for (int i = 0; i < kOfStep; ++i) {
            probe = probe != kNone ? after(lookUps, probe) : kNone;
            next.probes[i] = probe;
        }
        return next;
    }

    __device__ __forceinline__ static Numbers centersOf(
            const LookUps& lookUps,
            const Step& step) {
        Numbers centers;
#pragma unroll
        for (int i = 0; i < kOfStep; ++i) {
            centers.ofLists[i] = step.probes[i] != kNone
                    ? lookUps.centerOf(step.probes[i], int(threadIdx.x))
                    : 0.0f;
        }
        return centers;
    }

    __device__ __forceinline__ void keepNumbers(
            uint32_t turn,
            const Numbers& centers) const {
        const int c = int(threadIdx.x);
        if (c < kMostHeldDims) {
            const float x = shared.query[c];
#pragma unroll
            for (int i = 0; i < kOfStep; ++i) {
                shared.lists[turn * kOfStep + i][c] =
                        LookUps::numberOf(x, centers.ofLists[i]);
            }
        }
    }

    /// Of inner products all lists have one already.
    __device__ __forceinline__ void makeTables(
            const LookUps& lookUps,
            uint32_t turn,
            const Step& step,
            float (&bases)[kOfStep],
            float& longest) const {
#pragma unroll 1
        for (int i = 0; i < kOfStep; ++i) {
            if (step.probe(i) == kNone) {
                break;
            }
            const float* list = shared.lists[turn * kOfStep + i];
            if constexpr (kMetric == Metric::L2) {
                makeTable(list, tableOf(turn, i));
            }
            const float base = lookUps.baseOf(list, shared.query);
            bases[0] = i == 0 ? base : bases[0];
            bases[kOfStep - 1] = i == kOfStep - 1 ? base : bases[kOfStep - 1];
            if (isLastWarp()) {
                longest = fmaxf(longest, lookUps.productOf(list, list));
            }
        }
    }

    // The codebook comes to where tables are later, 16 bytes at a time: pieces
    // of a warp's rows lie side by side, the rows that a lane has of a part are
    // some pieces.
    static constexpr int kOfPart = kOfWarp * kPartDims / 4; // pieces
    static constexpr int kOfRun = kOfPart / Order::kCopies;
    static constexpr int kPieces = kOfPart * Order::kParts; // of a warp
    static_assert(kPieces * 16 * (kThreads / kWarpSize) <= Banks::kBytes);

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

    /// With codes on their way, which came later.
    __device__ __forceinline__ void takeRows() {
        waitForCopies<Columns::Ring::kStages>();
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
    __device__ __forceinline__ static uint32_t tableOf(uint32_t turn, int i) {
        return kMetric != Metric::L2 ? 0
                : kOfStep > 1        ? Order::tableOf(i, int(turn))
                                     : Order::tableOf(int(turn), 0);
    }

    __device__ __forceinline__ void makeTable(const float* from, uint32_t table)
            const {
        uint8_t* to = tables + (table & 0x10080) + code() * Banks::kRowBytes;
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

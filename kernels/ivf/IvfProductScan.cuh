/// Estimates of the keys of all vectors of the lists of some queries, of
/// product codes in rows, list by list: what is decoded of a list serves up to
/// eight of the queries that probe it. IvfProductBound.h says how far they may
/// be from the keys.
///
/// A block has the codebook in float16 in shared memory. A warp has a tile: it
/// looks codes up straight into the fragments of matrix instructions, which
/// multiply them with the queries and with themselves, for the norms.
///
/// Bound by: look-ups in shared memory. Those of 32 lanes in 32 banks take 3.5
/// cycles (of eight bytes 6.2), so that 16 vectors of 128 dimensions take a
/// multiprocessor 112 cycles, whatever the number of parts, and 2^20 vectors
/// 32 us at 132 multiprocessors of 1.75 GHz; the codes of 64 bytes are read in
/// 15. Instructions are some 190 of a warp, 48 cycles.
#pragma once

#include <cfloat>

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/AsyncCopy.cuh"
#include "kernels/ivf/CodeWords.cuh"
#include "kernels/ivf/IvfProductQueries.cuh"

namespace faiss_bits {

/// kBytes: codes of a lane that are read at a time; 2, 4, 8 or 16.
/// kPartDims: components of a part; 2, or a multiple of four.
template <Metric kMetric, int kBytes, int kPartDims>
struct IvfProductScan {
    using Order = IvfTileOrder<kIvfProductQueries, kIvfProductVectors>;
    using Queries = IvfProductQueries<kMetric>;
    using Query = typename Queries::Query;
    static constexpr int kThreads = kIvfProductThreads;
    static constexpr int kWarps = kThreads / kWarpSize;
    static constexpr int kRows = kIvfCodebookRows;
    static constexpr int kLanes = Queries::kLanes;
    static constexpr int kDims = Queries::kDims;
    static constexpr int kSteps = kBytes * kPartDims / kDims; // of a read
    static constexpr uint32_t kAtATime = 16;                  // vectors
    static_assert(kPartDims == 2 || kPartDims % kDims == 0);
    static_assert(kBytes * kPartDims % kDims == 0);

    const IvfDirectParams& params;
    uint16_t* codebook; // [parts, kRows, kPartDims] float16, in shared memory
    Queries queries;    // of this warp

    __device__ __forceinline__
    IvfProductScan(const IvfDirectParams& of, uint8_t* memory)
            : params(of),
              codebook(reinterpret_cast<uint16_t*>(memory)),
              queries{of,
                      reinterpret_cast<uint2*>(
                              memory + ivfProductCodebookBytes(of.search.d) +
                              threadIdx.x / kWarpSize *
                                      ivfProductWarpBytes(of.search.d))} {}

    __device__ __forceinline__ void run() {
        beginCopy();
        queries.measure();
        const Order order{params.search};
        const uint32_t tiles = order.numTiles();
        // So that few tiles are spread over all multiprocessors.
        uint32_t t = threadIdx.x / kWarpSize * gridDim.x + blockIdx.x;
        for (bool isFirst = true;; isFirst = false) {
            const bool isThere = t < tiles;
            const IvfWork work = isThere ? order.workOf(t, tiles) : IvfWork{};
            Query mine[2];
            if (isThere) {
                __syncwarp(); // all have left the tile before
                queries.prepare(work, mine);
                __syncwarp();
            }
            if (isFirst) {
                waitForAllCopies();
                __syncthreads(); // the codebook is there
            }
            if (!isThere) {
                break;
            }
            estimate(work, mine);
            t += gridDim.x * kWarps;
        }
    }

   private:
    /// The codebook to shared memory, by the block.
    __device__ __forceinline__ void beginCopy() const {
        constexpr int kChunk = 16;
        const int chunks =
                int(ivfProductCodebookBytes(params.search.d)) / kChunk;
        const auto* from = reinterpret_cast<const uint8_t*>(params.codebook);
        const uint32_t to = sharedAddress(codebook);
#pragma unroll 4
        for (int i = int(threadIdx.x); i < chunks; i += kThreads) {
            copyAsync(to + i * kChunk, from + i * kChunk);
        }
    }

    /// The codes that a lane reads at a time.
    struct Codes {
        uint32_t words[(kBytes + 3) / 4];

        /// Codes of bytes begin on kBytes.
        __device__ __forceinline__ void load(const uint8_t* from, bool whole) {
            if (whole) {
                loadCodeWords<kBytes>(from, words);
                return;
            }
#pragma unroll
            for (int w = 0; w < (kBytes + 3) / 4; ++w) {
                words[w] = 0;
#pragma unroll
                for (int b = 0; b < 4 && w * 4 + b < kBytes; ++b) {
                    words[w] |= uint32_t(from[w * 4 + b]) << 8 * b;
                }
            }
        }

        __device__ __forceinline__ uint32_t operator[](int i) const {
            return words[i / 4] >> i % 4 * 8 & 0xff;
        }
    };

    /// Four components of a vector, of step s of the codes that were read; rows
    /// of the first of these begin at `rows`.
    __device__ __forceinline__ static uint2 lookUp(
            const uint16_t* rows,
            const Codes& codes,
            int s) {
        const auto rowOf = [&](int i) {
            return rows + (i * kRows + codes[i]) * kPartDims;
        };
        if constexpr (kPartDims == 2) {
            return make_uint2(
                    *reinterpret_cast<const uint32_t*>(rowOf(2 * s)),
                    *reinterpret_cast<const uint32_t*>(rowOf(2 * s + 1)));
        } else {
            constexpr int kOfPart = kPartDims / kDims;
            return *reinterpret_cast<const uint2*>(
                    rowOf(s / kOfPart) + s % kOfPart * kDims);
        }
    }

    __device__ __forceinline__ void estimate(
            const IvfWork& work,
            const Query (&mine)[2]) const {
        const IvfParams& search = params.search;
        const int lane = int(threadIdx.x % kWarpSize);
        const int parts = search.lists.decoding.numParts;
        const int ofLane = parts / kLanes;
        const int reads = ofLane / kBytes;
        const uint32_t length = uint32_t(work.place.last);
        const uint32_t first = uint32_t(work.place.first);
        // Whole 32s: what is behind the last vector gets keys, too.
        const uint32_t end = first +
                (min(length - first, uint32_t(kIvfProductVectors)) +
                 kListGroup - 1) /
                        kListGroup * kListGroup;
        const int firstPart = lane % kLanes * ofLane;
        const auto* codes =
                static_cast<const uint8_t*>(work.place.list) + firstPart;
        const bool whole =
                reinterpret_cast<uintptr_t>(work.place.list) % kBytes == 0;
        const uint16_t* rows = codebook + firstPart * kRows * kPartDims;
        // Of the next 16 vectors, or the next part of theirs.
        Codes next[2];
        const auto read = [&](uint32_t vector, int at) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const uint32_t v =
                        min(vector + lane / kLanes + 8 * i, length - 1);
                next[i].load(codes + int64_t(v) * parts + at * kBytes, whole);
            }
        };
        read(first, 0);
        uint32_t least[2] = {kNanKey, kNanKey};
        uint32_t selected = ~0u;
        for (uint32_t begin = first; begin < end; begin += kAtATime) {
            const bool isOdd = (begin - first) % kListGroup != 0;
            if (!isOdd) {
                selected = selectedWord(
                        search.lists,
                        work.place.listNumber,
                        begin / kListGroup);
            }
            float sums[4] = {};
            float low[4] = {};
            float high[4] = {};
            for (int at = 0; at < reads; ++at) {
                const Codes now[2] = {next[0], next[1]};
                if (at + 1 < reads) {
                    read(begin, at + 1);
                } else if (begin + kAtATime < end) {
                    read(begin + kAtATime, 0);
                }
                const uint16_t* from = rows + at * kBytes * kRows * kPartDims;
                const uint2* of =
                        queries.fragments + at * kSteps * kWarpSize + lane;
#pragma unroll
                for (int s = 0; s < kSteps; ++s) {
                    const uint2 x = lookUp(from, now[0], s);
                    const uint2 y = lookUp(from, now[1], s);
                    const uint2 q = of[s * kWarpSize];
                    const uint32_t both[4] = {x.x, y.x, x.y, y.y};
                    const uint32_t query[2] = {q.x, q.y};
                    mmaFloat16(sums, both, query);
                    if constexpr (kMetric == Metric::L2) {
                        const uint32_t lower[2] = {x.x, x.y};
                        const uint32_t upper[2] = {y.x, y.y};
                        mmaFloat16(low, both, lower);
                        mmaFloat16(high, both, upper);
                    }
                }
            }
            keep(work, mine, sums, low, high, begin, selected, isOdd, least);
            if (isOdd) {
                keepLeast(mine, begin, least);
            }
        }
    }

    /// The keys of 16 vectors.
    __device__ __forceinline__ void keep(
            const IvfWork& work,
            const Query (&mine)[2],
            const float (&sums)[4],
            const float (&low)[4],
            const float (&high)[4],
            uint32_t begin,
            uint32_t selected,
            bool isOdd,
            uint32_t (&least)[2]) const {
        const IvfParams& search = params.search;
        const int lane = int(threadIdx.x % kWarpSize);
        const int group = lane / kLanes;
        const uint32_t length = uint32_t(work.place.last);
        float squares[2] = {0, 0};
        if constexpr (kMetric == Metric::L2) {
            // The product of a vector with itself is with the lane that has
            // its number among the columns.
            const int from = group * kLanes + group / 2;
            squares[0] =
                    __shfl_sync(kFullWarp, group % 2 ? low[1] : low[0], from);
            squares[1] =
                    __shfl_sync(kFullWarp, group % 2 ? high[3] : high[2], from);
            squares[0] = squares[0] * queries.inverse * queries.inverse;
            squares[1] = squares[1] * queries.inverse * queries.inverse;
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const uint32_t vector = begin + group + 8 * i;
            const int bit = (isOdd ? int(kAtATime) : 0) + group + 8 * i;
            const bool isThere = vector < length && (selected >> bit & 1);
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float value = __fmaf_rn(
                        sums[2 * i + j] * mine[j].factor,
                        queries.inverse,
                        mine[j].base + squares[i]);
                if (!mine[j].isThere) {
                    continue;
                }
                uint32_t key = kNanKey;
                if (isThere) {
                    key = orderedKey(value);
                    if (!(fabsf(value) <= FLT_MAX)) {
                        // It may be the nearest: the row has no limit.
                        key = 0;
                        atomicMax(&params.bounds[2 * mine[j].row], kNoBound);
                    }
                }
                least[j] = min(least[j], key);
                params
                        .keys[int64_t(mine[j].row) * search.stride +
                              mine[j].column + vector] = key;
            }
        }
    }

    /// The least key of 32 vectors; then of the next ones.
    __device__ __forceinline__ void keepLeast(
            const Query (&mine)[2],
            uint32_t begin,
            uint32_t (&least)[2]) const {
        const int64_t groups = params.search.stride / kListGroup;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
#pragma unroll
            for (int lanes = kLanes; lanes < kWarpSize; lanes *= 2) {
                least[j] = min(
                        least[j], __shfl_xor_sync(kFullWarp, least[j], lanes));
            }
            if (mine[j].isThere && threadIdx.x % kWarpSize < kLanes) {
                params
                        .least[int64_t(mine[j].row) * groups +
                               (mine[j].column + begin) / kListGroup] =
                        least[j];
            }
            least[j] = kNanKey;
        }
    }

    static constexpr uint32_t kNoBound = 0x7fffffff; // no number
};

template <Metric kMetric, int kBytes, int kPartDims>
__global__ __launch_bounds__(kIvfProductThreads, 1) void ivfProductScanKernel(
        const __grid_constant__ IvfDirectParams params) {
    extern __shared__ __align__(16) uint8_t ivfProductMemory[];
    allowNext();
    waitForPrevious();
    IvfProductScan<kMetric, kBytes, kPartDims>(params, ivfProductMemory).run();
}

} // namespace faiss_bits

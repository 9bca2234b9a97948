/// Estimates of the keys of all vectors of the lists of some queries, of
/// product codes, list by list: by tables of up to eight of the queries that
/// probe it, an entry for each part and code. IvfTableBound.h says how far they
/// may be from the keys.
///
/// A block takes tiles side by side, of which those of one list and of the same
/// queries have the same tables. A lane has a vector, and a look-up the entries
/// of eight queries, 16 bytes.
///
/// Bound by: look-ups in shared memory, whose rows are anywhere: 32 lanes take
/// 11 cycles, so that eight queries, 32 vectors and 16 parts take a
/// multiprocessor 176, whatever the dimensions; 10^6 pairs 3.0 us at 132
/// multiprocessors of 1.75 GHz. Instructions are some 7 a look-up and 80 for
/// what is kept, 48 cycles.
#pragma once

#include <cfloat>

#include "kernels/common/DependentLaunch.h"
#include "kernels/ivf/CodeWords.cuh"
#include "kernels/ivf/IvfFilter.cuh"
#include "kernels/ivf/IvfTables.cuh"

namespace faiss_bits {

/// kBytes: of rows, codes of a byte that a lane reads at a time, which divide
/// those of a vector: 1, 4, 8 or 16. Interleaved codes, of any number of bits,
/// are read one by one.
template <Metric kMetric, ListLayout kLayout, int kBytes>
struct IvfTableScan {
    using Tables = IvfTables<kMetric>;
    using Order = IvfTileOrder<kIvfTableQueries, kIvfTableVectors>;
    static constexpr uint32_t kStep = kIvfTableThreads; // vectors at a time
    static_assert(kIvfTableVectors % kStep == 0);

    const IvfDirectParams& params;
    Tables tables;

    __device__ __forceinline__ void run() const {
        const Order order{params.search};
        const uint64_t tiles = order.numTiles();
        uint32_t tile = uint32_t(tiles * blockIdx.x / gridDim.x);
        const auto end = uint32_t(tiles * (blockIdx.x + 1) / gridDim.x);
        if (tile == end) {
            return;
        }
        for (IvfRun run = order.runOf(tile);; run = order.behind(run)) {
            const uint32_t last = min(run.end, end);
            tables.build(run);
            scan(run,
                 min(run.length, run.first + (last - tile) * kIvfTableVectors));
            tile = last;
            if (tile == end) {
                return;
            }
        }
    }

   private:
    /// Of vectors run.first to `end` - 1 of the list, whole 32s.
    __device__ __forceinline__ void scan(const IvfRun& run, uint32_t end)
            const {
        const IvfParams& search = params.search;
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t warp = threadIdx.x / kWarpSize;
        for (uint32_t begin = run.first + warp * kListGroup; begin < end;
             begin += kStep) {
            const uint32_t vector = begin + lane;
            uint32_t selected =
                    selectedWord(search.lists, run.list, begin / kListGroup);
            uint32_t sums[kIvfTableQueries / 2] = {};
            if (selected != 0) {
                addUp(run, min(vector, run.length - 1), sums);
            }
            const bool isThere =
                    vector < run.length && (selected >> lane & 1) != 0;
            keep(run, begin, isThere, sums);
        }
    }

    /// The sums of two queries in each word.
    __device__ __forceinline__ void addUp(
            const IvfRun& run,
            uint32_t vector,
            uint32_t (&sums)[kIvfTableQueries / 2]) const {
        const ListDecoding& decoding = params.search.lists.decoding;
        const int parts = decoding.numParts;
        const auto add = [&](const uint4& entry) {
            sums[0] += entry.x;
            sums[1] += entry.y;
            sums[2] += entry.z;
            sums[3] += entry.w;
        };
        if constexpr (kLayout == ListLayout::Rows) {
            constexpr int kRows = 256;
            const auto* codes = static_cast<const uint8_t*>(run.vectors) +
                    int64_t(vector) * parts;
            const bool isAligned =
                    reinterpret_cast<uintptr_t>(run.vectors) % kBytes == 0;
#pragma unroll 2
            for (int part = 0; part < parts; part += kBytes) {
                uint32_t words[(kBytes + 3) / 4];
                load(codes + part, isAligned, words);
                const uint4* from = tables.entries + part * kRows;
#pragma unroll
                for (int i = 0; i < kBytes; ++i) {
                    add(from[i * kRows + (words[i / 4] >> i % 4 * 8 & 0xff)]);
                }
            }
        } else {
            const CodesOfVector<0, kLayout> codes(
                    run.vectors, vector, parts, decoding.partBits);
#pragma unroll 4
            for (int part = 0; part < parts; ++part) {
                add(tables.entries[(part << decoding.partBits) + codes(part)]);
            }
        }
    }

    /// kBytes codes; where a list begins on an odd place, byte by byte.
    __device__ __forceinline__ static void load(
            const uint8_t* from,
            bool isAligned,
            uint32_t (&words)[(kBytes + 3) / 4]) {
        if constexpr (kBytes >= 4) {
            if (isAligned) {
                loadCodeWords<kBytes>(from, words);
                return;
            }
        }
#pragma unroll
        for (int i = 0; i < kBytes; ++i) {
            words[i / 4] =
                    (i % 4 ? words[i / 4] : 0) | uint32_t(from[i]) << i % 4 * 8;
        }
    }

    /// The keys of 32 vectors and all queries, and the least of each query.
    __device__ __forceinline__ void keep(
            const IvfRun& run,
            uint32_t begin,
            bool isThere,
            const uint32_t (&sums)[kIvfTableQueries / 2]) const {
        const int64_t stride = params.search.stride;
        const uint32_t lane = threadIdx.x % kWarpSize;
#pragma unroll
        for (int q = 0; q < kIvfTableQueries; ++q) {
            if (uint32_t(q) >= run.numRows) {
                break;
            }
            const IvfTableFact fact = tables.shared.facts[q];
            const uint32_t sum = sums[q / 2] >> q % 2 * 16 & 0xffff;
            const float value = __fmaf_rn(float(sum), fact.step, fact.base);
            uint32_t key = kNanKey;
            if (isThere) {
                // Without an estimate it may be the nearest.
                key = fabsf(value) <= FLT_MAX ? orderedKey(value) : 0;
            }
            const int64_t column = int64_t(fact.column) + begin;
            const int64_t row = fact.row;
            params.keys[row * stride + column + lane] = key;
            const uint32_t least = __reduce_min_sync(kFullWarp, key);
            if (lane == 0) {
                params
                        .least[row * (stride / kListGroup) +
                               column / kListGroup] = least;
            }
        }
    }
};

template <Metric kMetric, ListLayout kLayout, int kBytes>
__global__ __launch_bounds__(
        kIvfTableThreads,
        kIvfTableBlocks) void ivfTableScanKernel(const __grid_constant__
                                                         IvfDirectParams
                                                                 params) {
    using Scan = IvfTableScan<kMetric, kLayout, kBytes>;
    extern __shared__ __align__(16) uint8_t ivfTableMemory[];
    __shared__ typename Scan::Tables::SharedStorage shared;
    allowNext();
    waitForPrevious();
    Scan{params, typename Scan::Tables(shared, params, ivfTableMemory)}.run();
}

} // namespace faiss_bits

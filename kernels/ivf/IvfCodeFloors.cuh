/// Estimates of the keys of a query's lists, of interleaved codes of 8 bits, by
/// tensor cores. For queries that seldom meet in a list. IvfFloorBound.h says
/// how far they may be from the keys.
///
/// A warp has 32 vectors, whose codes come through shared memory, some steps
/// ahead, whatever list they are of. A transposed load of matrices gives a lane
/// two components of two vectors, whose codes are numbers of float16 without a
/// conversion, the smallest ones. L2: the code that is nearest to the query is
/// subtracted, which is exact, and one fma each makes them differences, the
/// squares' sum of which is the diagonal of their product with themselves.
/// Inner product: they are multiplied with the query, in two parts. What that
/// takes of a list, a block makes once for some lists.
///
/// Bound by: the reading of the lists, 15 us for 528,000 vectors of 128
/// dimensions; instructions are 290 for the components of 32 vectors, and some
/// 190 beside. A register is spilled once a block, before the loop.
#pragma once

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/LaunchesTogether.h"
#include "kernels/ivf/IvfCodeFloorsSums.cuh"
#include "kernels/ivf/IvfDirectLists.cuh"
#include "kernels/ivf/IvfFilter.cuh"
#include "kernels/ivf/IvfFloors.h"
#include "kernels/ivf/IvfKeptEstimates.cuh"

namespace faiss_bits {

template <Metric kMetric>
struct IvfCodeFloors {
    using Lists = IvfDirectLists;
    using Table = IvfCodeFloorsTable<kMetric>;
    static constexpr int kThreads = kIvfDirectThreads;
    static constexpr int kWarps = kThreads / kWarpSize;
    static constexpr int kBlocks = 3; // of a multiprocessor

    /// Lists that a block has tables of at a time: a warp makes one.
    static constexpr uint32_t kTables = kWarps;

    /// The codes of 32 vectors; a warp has the next ones on their way.
    static constexpr int kStages = 2;
    using Stages = IvfCodeStage[kStages];
    static_assert(sizeof(Lists::SharedStorage) <= kWarps * sizeof(Stages));

    const Lists::Tables& lists;
    const IvfDirectParams& params;
    const float* query; // as the next two, in shared memory
    const float* starts;
    const float* steps;
    typename Table::Scales* scales; // [kTables]
    uint4* tables;  // [kTables, Table::words(d)], in shared memory
    Stages& stages; // of this warp
    uint32_t row;

    /// Of 32s of columns of the row the part of block blockIdx.x.
    __device__ __forceinline__ void run() const {
        const auto [begin, end] =
                Lists::Part(lists.first[params.search.nprobe]);
        if (begin >= end) {
            return;
        }
        const uint32_t firstProbe = lists.probeOf(begin, params.search.nprobe);
        // Before the codes, behind which it would wait.
        typename Table::Center center;
        readCenter(firstProbe, end, center);
        Place next = {begin + threadIdx.x / kWarpSize, firstProbe, 0, 0};
        enter(next, end);
        int stage = 0;
        copy(next, end, stage);
        for (uint32_t some = firstProbe;; some += kTables) {
            if (some != firstProbe) {
                readCenter(some, end, center);
                __syncthreads(); // all have left the tables
            }
            const float size = makeTable(some, end, center);
            __syncthreads();
            keepBound(some, end, size);
            const uint32_t last = min(some + kTables, params.search.nprobe);
            const uint32_t until = min(lists.first[last], end);
            while (next.at < until) {
                const Place now = next;
                next.at += kWarps;
                enter(next, end);
                __syncwarp(); // all have left the other stage
                copy(next, end, stage ^ 1);
                waitForCopies<1>();
                __syncwarp();
                const uint32_t t = now.probe - some;
                IvfCodeFloorsSums<kMetric> sums;
                if (now.selected != 0) { // else nothing is there
                    sums.add(
                            stages[stage],
                            tables + t * Table::words(params.search.d),
                            params.search.d);
                }
                stage ^= 1;
                keep(now, Table::keyOf(sums.ofOwnVector(), scales[t]));
            }
            if (until == end) {
                break;
            }
        }
        waitForAllCopies();
    }

   private:
    /// Of a warp: 32 columns of a probe.
    struct Place {
        uint32_t at; // of the row, in 32s
        uint32_t probe;
        uint32_t selected; // of those that are there
        uint32_t group;    // of the list
    };

    /// The columns of place.at, at or behind those of the probe so far.
    __device__ __forceinline__ void enter(Place& place, uint32_t end) const {
        if (place.at >= end) {
            return;
        }
        while (place.at >= lists.first[place.probe + 1]) {
            ++place.probe;
        }
        place.group = place.at - lists.first[place.probe];
        const uint32_t there =
                lists.lengths[place.probe] - place.group * kListGroup;
        place.selected = selectedWord(
                                 params.search.lists,
                                 lists.numbers[place.probe],
                                 place.group) &
                (there < kListGroup ? (1u << there) - 1 : ~0u);
    }

    __device__ __forceinline__ void keep(const Place& place, float estimate)
            const {
        keepIvfEstimate<kMetric>(
                params,
                row,
                place.at,
                estimate,
                place.selected >> threadIdx.x % kWarpSize & 1);
    }

    /// Begins to copy the codes of a place, if there is one.
    __device__ __forceinline__ void copy(
            const Place& place,
            uint32_t end,
            int stage) const {
        if (place.at < end && place.selected != 0) {
            const uint32_t bytes = uint32_t(params.search.d) * kListGroup;
            stages[stage].copy(
                    static_cast<const uint8_t*>(lists.vectors[place.probe]) +
                            uint64_t(place.group) * bytes,
                    bytes);
        }
        endCopies();
    }

    /// Whether the warp has a list among the kTables from a probe on, that has
    /// a group before `end`.
    __device__ __forceinline__ bool hasTable(uint32_t first, uint32_t end)
            const {
        const uint32_t probe = first + threadIdx.x / kWarpSize;
        return probe < params.search.nprobe && lists.first[probe] < end &&
                lists.lengths[probe] != 0;
    }

    /// Of the warp's list.
    __device__ __forceinline__ void readCenter(
            uint32_t first,
            uint32_t end,
            typename Table::Center& center) const {
        if (hasTable(first, end)) {
            center.read(
                    params.search,
                    lists.numbers[first + threadIdx.x / kWarpSize]);
        }
    }

    /// Returns what the lane adds to the list's bound.
    __device__ __forceinline__ float makeTable(
            uint32_t first,
            uint32_t end,
            const typename Table::Center& center) const {
        if (!hasTable(first, end)) {
            return 0;
        }
        const int d = params.search.d;
        const uint32_t warp = threadIdx.x / kWarpSize;
        return Table::make(
                center,
                d,
                query,
                starts,
                steps,
                tables + warp * Table::words(d),
                scales[warp]);
    }

    __device__ __forceinline__ void keepBound(
            uint32_t first,
            uint32_t end,
            float size) const {
        if (hasTable(first, end)) {
            const float bound = Table::boundOf(
                    size, scales[threadIdx.x / kWarpSize], params.search.d);
            if (threadIdx.x % kWarpSize == 0) {
                atomicMax(&params.bounds[2 * row], __float_as_uint(bound));
            }
        }
    }
};

/// Blocks of a query (x) and queries (y).
template <Metric kMetric>
__global__ __launch_bounds__(
        kIvfDirectThreads,
        IvfCodeFloors<kMetric>::
                kBlocks) void ivfCodeFloorsKernel(const __grid_constant__
                                                          IvfDirectParams
                                                                  params) {
    using Scan = IvfCodeFloors<kMetric>;
    extern __shared__ __align__(16) uint8_t ivfCodeFloorsMemory[];
    const IvfParams& search = params.search;
    const uint32_t row = blockIdx.y;
    // Lists are found before codes come.
    auto& storage = *reinterpret_cast<IvfDirectLists::SharedStorage*>(
            ivfCodeFloorsMemory);
    auto* stages =
            reinterpret_cast<typename Scan::Stages*>(ivfCodeFloorsMemory);
    auto* tables = reinterpret_cast<uint4*>(stages + Scan::kWarps);
    auto* scales = reinterpret_cast<typename Scan::Table::Scales*>(
            tables + Scan::kTables * Scan::Table::words(search.d));
    auto* query = reinterpret_cast<float*>(scales + Scan::kTables);
    float* starts = query + search.d;
    float* steps = starts + search.d;
    const IvfDirectLists::Tables lists(steps + search.d, search.nprobe);
    // What was there before the kernel of the centroids can be read while that
    // runs.
    if (!params.centroids) {
        waitForPrevious();
    }
    allowNext();
    const IvfQueryAhead<kIvfDirectThreads> ahead(search, row);
    writeIvfSteps(search, starts, steps);
    if (params.centroids) {
        IvfDirectLists::prefetch(
                search.lists,
                blockIdx.y * gridDim.x + blockIdx.x,
                gridDim.x * gridDim.y);
        waitForPrevious();
    }
    ahead.write(query, search.d);
    if (blockIdx.x == 0 && blockIdx.y == 0) {
        writeScalarSteps(search); // for the finish
    }
    IvfDirectLists{storage, lists, params, row}.find();
    __syncthreads();
    Scan{lists,
         params,
         query,
         starts,
         steps,
         scales,
         tables,
         stages[threadIdx.x / kWarpSize],
         row}
            .run();
}

template <Metric kMetric>
void launchIvfCodeFloors(
        const IvfDirectParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    using Scan = IvfCodeFloors<kMetric>;
    const auto kernel = ivfCodeFloorsKernel<kMetric>;
    const int d = params.search.d;
    const size_t bytes = Scan::kWarps * sizeof(typename Scan::Stages) +
            Scan::kTables *
                    (Scan::Table::words(d) * sizeof(uint4) +
                     sizeof(typename Scan::Table::Scales)) +
            3 * size_t(d) * sizeof(float) +
            IvfDirectLists::Tables::bytes(params.search.nprobe);
    const uint32_t rows = params.search.rows;
    const uint32_t most = uint32_t(multiprocessors) * Scan::kBlocks;
    // Warps have a group each.
    const int64_t ofAll = params.search.stride / (kIvfGroup * Scan::kWarps);
    const uint32_t ofRow = std::clamp<uint32_t>(
            most / rows, 1, uint32_t(std::max<int64_t>(ofAll, 1)));
    launchTogether(
            kernel,
            dim3(ofRow, rows),
            kIvfDirectThreads,
            bytes,
            stream,
            params);
}

} // namespace faiss_bits

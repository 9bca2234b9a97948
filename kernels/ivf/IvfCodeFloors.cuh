/// Estimates of the keys of a query's lists, of interleaved codes of 8 bits, in
/// float32. For queries that seldom meet in a list. IvfFloorBound.h says how
/// far they may be from the keys.
///
/// A warp has 32 vectors, a lane every fourth component of four of them, whose
/// codes are one word. A code gets into the middle of a float's mantissa by one
/// instruction, and start, centroid and query are one number that is made for
/// each list, so that a component costs three instructions. The codes of a warp
/// come through shared memory, some steps ahead, whatever list they are of.
///
/// Bound by: the reading of the lists and instructions: 528,000 vectors of 128
/// dimensions take 15 us and 9.
#pragma once

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/common/LaunchesTogether.h"
#include "kernels/ivf/IvfDirectLists.cuh"
#include "kernels/ivf/IvfFloorBound.h"
#include "kernels/ivf/IvfFloors.h"
#include "kernels/ivf/IvfGroupWords.cuh"
#include "kernels/ivf/IvfKeptEstimates.cuh"

namespace faiss_bits {

template <Metric kMetric>
struct IvfCodeFloors {
    using Lists = IvfDirectLists;
    static constexpr int kThreads = kIvfDirectThreads;
    static constexpr int kWarps = kThreads / kWarpSize;
    static constexpr int kBlocks = 3; // of a multiprocessor
    static constexpr int kOfFour = 4; // vectors, whose codes are a word
    static constexpr int kFours = kListGroup / kOfFour;  // of a group
    static constexpr int kTogether = kWarpSize / kFours; // components of a load
    static constexpr int kAhead = 16;                    // words of a step
    static constexpr int kStep = kAhead * kTogether;

    /// Components of a table: whole steps.
    BITS_HOST_DEVICE static constexpr int padded(int d) {
        return (d + kStep - 1) / kStep * kStep;
    }

    /// What a warp has on its way: steps of the codes of its groups.
    static constexpr int kStages = 3;
    static constexpr int kStageBytes = kStep * int(kListGroup);
    using Stages = uint32_t[kStages][kStageBytes / sizeof(uint32_t)];

    const Lists::Tables& lists;
    const IvfDirectParams& params;
    const float* query; // as the next four, in shared memory
    const float* starts;
    const float* steps;
    float2* table;  // [padded(d)], of this warp: a factor and a term
    Stages& stages; // of this warp
    uint32_t row;

    /// Of 32s of columns of the row the part of block blockIdx.x.
    __device__ __forceinline__ void run() const {
        const uint64_t total = lists.first[params.search.nprobe];
        const uint32_t begin = uint32_t(total * blockIdx.x / gridDim.x);
        const uint32_t end = uint32_t(total * (blockIdx.x + 1) / gridDim.x);
        Place ahead = {begin + threadIdx.x / kWarpSize, 0, 0, 0, 0};
        enter(ahead, end);
        Place place = ahead;
        int stage = 0;
        for (int s = 0; s < kStages - 1; ++s) {
            copy(ahead, end, s);
        }
        uint32_t ofTable = ~0u; // probe
        float base = 0;         // what all keys of the table's list have
        while (place.at < end) {
            if (place.selected != 0 && ofTable != place.probe) {
                __syncwarp(); // all have left the table
                base = makeTable(lists.numbers[place.probe]);
                ofTable = place.probe;
            }
            float sums[kOfFour] = {};
            for (int c = 0; c < params.search.d; c += kStep) {
                waitForCopies<kStages - 2>();
                __syncwarp(); // and all have left the stage before
                copy(ahead, end, stage == 0 ? kStages - 1 : stage - 1);
                if (place.selected != 0) { // else nothing is there
                    add(stages[stage], c, sums);
                }
                stage = stage == kStages - 1 ? 0 : stage + 1;
            }
            keep(place, sums, base);
            place.at += kWarps;
            enter(place, end);
        }
        waitForAllCopies();
    }

   private:
    /// Of a warp: 32 columns of a probe, and a component of these.
    struct Place {
        uint32_t at; // of the row, in 32s
        uint32_t probe;
        uint32_t selected; // of those that are there
        uint32_t group;    // of the list
        int component;
    };

    /// The columns of place.at, at or behind those of the probe so far.
    __device__ __forceinline__ void enter(Place& place, uint32_t end) const {
        if (place.at >= end) {
            return;
        }
        while (place.at >= lists.first[place.probe + 1]) {
            ++place.probe;
        }
        const uint32_t length = lists.lengths[place.probe];
        place.group = place.at - lists.first[place.probe];
        const uint32_t there = length - place.group * kListGroup;
        place.selected = IvfGroupWords::ofWarp(
                                 params.search.lists,
                                 lists.numbers[place.probe],
                                 place.group,
                                 length) &
                (there < kListGroup ? (1u << there) - 1 : ~0u);
    }

    /// Begins to copy a step's codes, and goes to the next step.
    __device__ __forceinline__ void copy(Place& place, uint32_t end, int stage)
            const {
        constexpr int kChunk = 16; // bytes
        const int d = params.search.d;
        if (place.at < end) {
            if (place.selected != 0) {
                const int bytes =
                        min(kStep, d - place.component) * int(kListGroup);
                const auto* from = static_cast<const uint8_t*>(
                                           lists.vectors[place.probe]) +
                        (int64_t(place.group) * d + place.component) *
                                kListGroup;
                auto* to = reinterpret_cast<uint8_t*>(stages[stage]);
                const int first = int(threadIdx.x % kWarpSize) * kChunk;
                // The same of all groups of a list.
                if (reinterpret_cast<uintptr_t>(from) % kChunk == 0) {
                    const uint32_t shared = sharedAddress(to);
#pragma unroll
                    for (int b = first; b < kStageBytes;
                         b += kWarpSize * kChunk) {
                        if (b < bytes) {
                            copyAsync(shared + b, from + b);
                        }
                    }
                } else {
                    for (int b = int(threadIdx.x % kWarpSize); b < bytes;
                         b += kWarpSize) {
                        to[b] = from[b];
                    }
                }
            }
            place.component += kStep;
            if (place.component >= d) {
                place.component = 0;
                place.at += kWarps;
                enter(place, end);
            }
        }
        endCopies();
    }

    /// Of this list, zeros behind the last component, which no sum notices.
    /// Returns the base.
    __device__ __forceinline__ float makeTable(uint32_t list) const {
        const IvfParams& search = params.search;
        const float* centroids = search.lists.decoding.centroids;
        const int d = search.d;
        ivf_code::PairSums sums;
        for (int c = int(threadIdx.x % kWarpSize); c < padded(d);
             c += kWarpSize) {
            float2 entry = {0, 0};
            if (c < d) {
                const float center = centroids
                        ? __ldg(centroids + int64_t(list) * d + c)
                        : 0.0f;
                const ivf_code::Entry made = ivf_code::entryOf<kMetric>(
                        starts[c], steps[c], center, query[c], sums);
                entry = {made.factor, made.term};
            }
            table[c] = entry;
        }
        const float base = sumOfLanes(sums.base);
        const float size = sumOfLanes(sums.size);
        if (threadIdx.x % kWarpSize == 0) {
            const uint32_t bound =
                    __float_as_uint(ivf_code::boundOf<kMetric>(size, d));
            atomicMax(&params.bounds[2 * row], bound);
        }
        return base;
    }

    /// A step's components. Behind the last one entries are zeros, whatever the
    /// codes.
    __device__ __forceinline__ void add(
            const uint32_t* codes,
            int begin,
            float (&sums)[kOfFour]) const {
        const uint32_t lane = threadIdx.x % kWarpSize;
        const float2* entries = table + begin + lane / kFours;
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const float2 entry = entries[i * kTogether];
            const uint32_t word = codes[i * kWarpSize + lane];
#pragma unroll
            for (int v = 0; v < kOfFour; ++v) {
                const float code = __uint_as_float(__byte_perm(
                        word, ivf_code::kCodeBits, 0x7404 | v << 4));
                ivf_code::add<kMetric>(sums[v], code, entry.x, entry.y);
            }
        }
    }

    /// Of the columns of a place.
    __device__ __forceinline__ void keep(
            const Place& place,
            const float (&sums)[kOfFour],
            float base) const {
        const uint32_t lane = threadIdx.x % kWarpSize;
        keepIvfEstimate<kMetric>(
                params,
                row,
                place.at,
                ivf_code::keyOf<kMetric>(ofOwnVector(sums), base),
                place.selected >> lane & 1);
    }

    /// The sum of vector `lane`, of all lanes that have components of it: which
    /// are those of the same four.
    __device__ __forceinline__ static float ofOwnVector(
            const float (&sums)[kOfFour]) {
        static_assert(kTogether == kOfFour);
        const uint32_t lane = threadIdx.x % kWarpSize;
        // A lane keeps half of what it has, and gives the other half away.
        const bool isSecond = lane / (2 * kFours) != 0;
        float two[2];
#pragma unroll
        for (int v = 0; v < 2; ++v) {
            const float kept = isSecond ? sums[v + 2] : sums[v];
            const float given = isSecond ? sums[v] : sums[v + 2];
            two[v] = kept + __shfl_xor_sync(kFullWarp, given, 2 * kFours);
        }
        const bool isOdd = lane / kFours % 2 != 0;
        const float given = isOdd ? two[0] : two[1];
        const float one = (isOdd ? two[1] : two[0]) +
                __shfl_xor_sync(kFullWarp, given, kFours);
        return __shfl_sync(
                kFullWarp, one, lane / kOfFour + lane % kOfFour * kFours);
    }

    __device__ __forceinline__ static float sumOfLanes(float value) {
#pragma unroll
        for (int lanes = kWarpSize / 2; lanes >= 1; lanes /= 2) {
            value += __shfl_xor_sync(kFullWarp, value, lanes);
        }
        return value;
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
    __shared__ IvfDirectLists::SharedStorage storage;
    extern __shared__ __align__(16) uint8_t ivfCodeFloorsMemory[];
    const IvfParams& search = params.search;
    const uint32_t row = blockIdx.y;
    const int padded = Scan::padded(search.d);
    auto* tables = reinterpret_cast<float2*>(ivfCodeFloorsMemory);
    auto* query = reinterpret_cast<float*>(tables + Scan::kWarps * padded);
    float* starts = query + padded;
    float* steps = starts + padded;
    auto* stages = reinterpret_cast<typename Scan::Stages*>(steps + padded);
    const IvfDirectLists::Tables lists(stages + Scan::kWarps, search.nprobe);
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
         tables + threadIdx.x / kWarpSize * padded,
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
    const size_t padded = size_t(Scan::padded(params.search.d));
    const size_t bytes =
            padded * (Scan::kWarps * sizeof(float2) + 3 * sizeof(float)) +
            Scan::kWarps * sizeof(typename Scan::Stages) +
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
            allowSharedBytes(kernel, bytes),
            stream,
            params);
}

} // namespace faiss_bits

/// The keys of all vectors of a query's lists, for queries that seldom meet in
/// a list: of rows and of product codes; IvfStagedScan.cuh has others.
///
/// A lane has a vector, and a warp one slot of its sum: of 128 dimensions all
/// loads are on their way together, and 32 vectors keep eight warps busy. Lanes
/// have product codes alone, as neighbouring components are of one look-up, and
/// vectors of few dimensions.
///
/// Bound by: the reading of the lists, or where these are few, the wait for
/// centroids, tables and vectors, one after the other.
#pragma once

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/LaunchesTogether.h"
#include "kernels/ivf/IvfDirectLists.cuh"
#include "kernels/ivf/IvfDirectSums.cuh"
#include "kernels/ivf/IvfGroupWords.cuh"

namespace faiss_bits {

template <Metric kMetric, ListCoding kCoding>
struct IvfDirectScan {
    using Sums = IvfDirectSums<kMetric, kCoding>;
    using Lists = IvfDirectLists;
    static constexpr int kThreads = kIvfDirectThreads;
    static constexpr int kWarps = kThreads / kWarpSize;
    static constexpr bool kAlone = kCoding == ListCoding::Product;
    static_assert(kWarps == canonical::kSlots);

    union SharedStorage {
        Lists::SharedStorage lists; // until these are found
        struct {
            double sums[2][kWarps][kWarpSize];
            IvfGroupWords::Words words;
        };
    };

    static constexpr size_t kBytes = (sizeof(SharedStorage) + 15) / 16 * 16;

    SharedStorage& shared;
    const Lists::Tables& lists;
    const IvfDirectParams& params;
    const double* query; // in shared memory
    uint32_t row;

    /// Of 32s of columns of the row the part of block blockIdx.x.
    template <class Vectors>
    __device__ __forceinline__ void run(const Vectors& vectors) {
        const uint64_t total = lists.first[params.search.nprobe];
        fillIvfRow(
                params,
                row,
                uint32_t(total) * kListGroup,
                blockIdx.x,
                gridDim.x);
        const uint32_t begin = uint32_t(total * blockIdx.x / gridDim.x);
        const uint32_t end = uint32_t(total * (blockIdx.x + 1) / gridDim.x);
        if constexpr (kAlone) {
            runAlone(vectors, begin, end);
        } else {
            if constexpr (kCoding == ListCoding::Float32) {
                if (areVectorsAlone(params.search.lists)) {
                    runAlone(vectors, begin, end);
                    return;
                }
            }
            runTogether(vectors, begin, end);
        }
    }

   private:
    struct Group {
        TilePlace place; // of this lane's vector
        uint32_t number; // of the list
        bool isThere;    // this lane's vector
    };

    /// 32 columns, of the probe that has them or one before.
    __device__ __forceinline__ Group
    groupOf(uint32_t at, uint32_t& probe) const {
        while (at >= lists.first[probe + 1]) {
            ++probe;
        }
        const uint32_t group = at - lists.first[probe];
        const uint32_t vector = group * kListGroup + threadIdx.x % kListGroup;
        const uint32_t length = lists.lengths[probe];
        const uint32_t list = lists.numbers[probe];
        Group out = {};
        out.number = group;
        out.place.first = min(vector, length - 1);
        out.place.last = length;
        out.place.list = lists.vectors[probe];
        out.place.listNumber = list;
        out.isThere = vector < length;
        return out;
    }

    /// All warps a group.
    template <class Vectors>
    __device__ __forceinline__ void runTogether(
            const Vectors& vectors,
            uint32_t begin,
            uint32_t end) {
        const uint32_t warp = threadIdx.x / kWarpSize;
        const uint32_t lane = threadIdx.x % kWarpSize;
        const IvfGroupWords words{
                shared.words,
                lists,
                params.search,
                begin,
                end,
                kCoding == ListCoding::Float32 ? uint32_t(params.search.d) *
                                kListGroup * uint32_t(sizeof(float))
                                               : 0};
        // Words are of groups side by side.
        const bool inTurns = Lists::areInTurns(params) && !words.isFiltered();
        const uint32_t last = inTurns ? lists.first[params.search.nprobe] : end;
        const uint32_t step = inTurns ? gridDim.x : 1;
        uint32_t probe = 0;
        uint32_t turn = 0;
        for (uint32_t at = inTurns ? blockIdx.x : begin; at < last;
             at += step, ++turn) {
            words.prepare(at);
            const uint32_t selected = words.of(at);
            const Group group = groupOf(at, probe);
            double sum[1] = {};
            // Where none is selected, nothing is read.
            if (selected != 0) {
                Sums::template addSlot<1>(
                        vectors.vector(group.place, 0),
                        int(warp),
                        query,
                        0,
                        params.search,
                        sum);
            }
            auto& sums = shared.sums[turn % 2];
            sums[warp][lane] = sum[0];
            // The sums of the group before are read until all come here again.
            __syncthreads();
            if (warp == turn % kWarps) {
                keepIvfKey<kMetric>(
                        params,
                        row,
                        at,
                        Sums::keyOf(sums, lane),
                        group.isThere && (selected >> lane & 1));
            }
        }
    }

    /// A warp a group.
    template <class Vectors>
    __device__ __forceinline__ void runAlone(
            const Vectors& vectors,
            uint32_t begin,
            uint32_t end) {
        uint32_t probe = 0;
        for (uint32_t at = begin + threadIdx.x / kWarpSize; at < end;
             at += kWarps) {
            const Group group = groupOf(at, probe);
            const uint32_t selected = IvfGroupWords::ofWarp(
                    params.search.lists,
                    group.place.listNumber,
                    group.number,
                    uint32_t(group.place.last));
            uint32_t key = kNanKey;
            if (selected != 0) {
                key = Sums::keyAlone(
                        vectors.vector(group.place, 0), query, params.search);
            }
            keepIvfKey<kMetric>(
                    params,
                    row,
                    at,
                    key,
                    group.isThere &&
                            (selected >> (threadIdx.x % kListGroup) & 1));
        }
    }
};

/// Blocks of a query (x) and queries (y).
template <Metric kMetric, ListCoding kCoding>
__global__ __launch_bounds__(
        kIvfDirectThreads,
        kIvfDirectBlocks) void ivfDirectScanKernel(const __grid_constant__
                                                           IvfDirectParams
                                                                   params) {
    using Scan = IvfDirectScan<kMetric, kCoding>;
    extern __shared__ __align__(16) uint8_t ivfDirectMemory[];
    auto& shared =
            *reinterpret_cast<typename Scan::SharedStorage*>(ivfDirectMemory);
    auto* memory = reinterpret_cast<double*>(ivfDirectMemory + Scan::kBytes);
    const IvfParams& search = params.search;
    const uint32_t row = blockIdx.y;
    const int padded = ivfDirectPadded(search.d);
    // What was there before the kernel of the centroids can be read while that
    // runs.
    if (!params.centroids) {
        waitForPrevious();
    }
    allowNext();
    const IvfQueryAhead<kIvfDirectThreads> ahead(search, row);
    auto* steps = reinterpret_cast<float*>(memory + padded);
    const IvfDirectLists::Tables lists(
            steps + (kIsScalar<kCoding> ? 2 * padded : 0), search.nprobe);
    if constexpr (kIsScalar<kCoding>) {
        writeIvfSteps(search, steps + padded, steps);
    }
    if (params.centroids) {
        IvfDirectLists::prefetch(
                search.lists,
                blockIdx.y * gridDim.x + blockIdx.x,
                gridDim.x * gridDim.y);
        waitForPrevious();
    }
    ahead.write(memory, padded);
    IvfDirectLists{shared.lists, lists, params, row}.find(
            IvfDirectLists::areInTurns(params));
    __syncthreads(); // the storage is the scan's
    withIvfVectors<kCoding>(
            search, steps + padded, steps, [&](const auto& vectors) {
                Scan{shared, lists, params, memory, row}.run(vectors);
            });
}

template <Metric kMetric, ListCoding kCoding>
void launchIvfDirectScan(
        const IvfDirectParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    // Those of six bits are never rows.
    if constexpr (kCoding != ListCoding::Scalar6) {
        const size_t padded = size_t(ivfDirectPadded(params.search.d));
        const size_t bytes = IvfDirectScan<kMetric, kCoding>::kBytes +
                padded *
                        (sizeof(double) +
                         (isScalar(kCoding) ? 2 * sizeof(float) : 0)) +
                IvfDirectLists::Tables::bytes(params.search.nprobe);
        const uint32_t rows = params.search.rows;
        const uint32_t most = uint32_t(multiprocessors) * kIvfDirectBlocks;
        // Warps that are alone have a group each.
        const bool areAlone = IvfDirectScan<kMetric, kCoding>::kAlone ||
                areVectorsAlone(params.search.lists);
        const int64_t groups = areAlone ? canonical::kSlots : 1;
        const int64_t ofAll = params.search.stride / (kIvfGroup * groups);
        const uint32_t ofRow = std::clamp<uint32_t>(
                most / rows, 1, uint32_t(std::max<int64_t>(ofAll, 1)));
        const auto kernel = ivfDirectScanKernel<kMetric, kCoding>;
        launchTogether(
                kernel,
                dim3(ofRow, rows),
                kIvfDirectThreads,
                bytes,
                stream,
                params);
    }
}

} // namespace faiss_bits

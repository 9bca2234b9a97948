/// The keys of all vectors of the lists of some queries, as IvfSharedScan.cuh
/// has them, of interleaved float16 and scalar codes, which come through shared
/// memory.
///
/// Bound by: conversions to float64; with several queries a list by float64.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/IvfFoursStages.cuh"
#include "kernels/ivf/IvfStagedTables.cuh"
#include "kernels/ivf/IvfTileOrder.cuh"

namespace faiss_bits {

/// Every block has an even part of the tiles, of kIvfSharedQueries queries and
/// kIvfFoursVectors vectors each: two warps a group of 32.
template <Metric kMetric, ListCoding kCoding>
struct IvfStagedSharedScan {
    using Stages = IvfFoursStages<kCoding>;
    using Staged = IvfStagedTables<kCoding>;
    static constexpr int kQueries = kIvfSharedQueries;
    static constexpr int kWarps = kIvfDirectThreads / kWarpSize;
    static constexpr int kGroups = Stages::kGroups;
    using Order = IvfTileOrder<kQueries, kIvfFoursVectors>;
    using Sums = double[kQueries][Stages::kFour];

    /// Of a tile, and of the one before.
    struct Kept {
        uint32_t keys[2][kQueries][kIvfFoursVectors];
        uint32_t words[2][kGroups]; // of what may be found
    };

    /// Beside the stages.
    BITS_HOST_DEVICE static constexpr size_t tableBytes(int d) {
        return Staged::bytes(d, kQueries) + sizeof(Kept);
    }

    const IvfDirectParams& params;
    Kept& kept;
    const Staged& tables;

    __device__ __forceinline__ void run(Stages stages) const {
        const Order order{params.search};
        const uint64_t total = order.numTiles();
        const uint32_t begin = uint32_t(total * blockIdx.x / gridDim.x);
        const uint32_t end = uint32_t(total * (blockIdx.x + 1) / gridDim.x);
        if (begin == end) {
            return;
        }
        const int d = params.search.d;
        Place copied(order, begin);
        Place added = copied;
        const auto copyNext = [&] {
            if (copied.tile < end && copied.tile == copied.run.end) {
                copied = Place(order, copied.tile);
            }
            if (copied.tile < end) {
                // Of a group where none is selected nothing is read.
                stages.copy(
                        copied.run.vectors,
                        copied.run.list,
                        copied.group(),
                        copied.component,
                        copied.word != 0);
            } else {
                stages.copyNothing();
            }
            copied.component += Stages::kDims;
            if (copied.component >= d) {
                copied.nextTile(params.search.lists);
            }
        };
        for (int i = 1; i < stages.count(); ++i) {
            copyNext();
        }
        Sums sums = {};
        bool isBegun = false; // the run
        bool isWhole = false; // the tile before
        while (true) {
            stages.wait();
            if (isWhole) {
                keep(added);
                added.nextTile(params.search.lists);
            }
            if (added.tile == end) {
                break;
            }
            copyNext();
            if (added.tile == added.run.end) {
                added = Place(order, added.tile);
                isBegun = false;
            }
            if (!isBegun) {
                writeQueries(added.run);
                isBegun = true;
            }
            if (added.word != 0) {
                add(stages, added, sums);
            }
            stages.next();
            added.component += Stages::kDims;
            isWhole = added.component >= d;
            if (isWhole) {
                putKeys(added, sums);
            }
        }
    }

   private:
    /// A part of the vectors of a tile.
    struct Place {
        IvfRun run;
        uint32_t tile;
        uint32_t first; // vector of the list
        int component = 0;
        uint32_t word; // what may be found of the group of this warp

        __device__ __forceinline__ Place(const Order& order, uint32_t which)
                : run(order.runOf(which)), tile(which), first(run.first) {
            findWord(order.params.lists);
        }

        /// The group of this warp.
        __device__ __forceinline__ uint32_t group() const {
            return first / kListGroup + Stages::groupOfWarp();
        }

        /// The next tile, if the run has it: of another run the word does not
        /// matter.
        __device__ __forceinline__ void nextTile(const IvfLists& lists) {
            component = 0;
            ++tile;
            first += kIvfFoursVectors;
            findWord(lists);
        }

       private:
        __device__ __forceinline__ void findWord(const IvfLists& lists) {
            word = 0;
            if (group() * kListGroup < run.length) {
                const uint32_t left = run.length - group() * kListGroup;
                word = selectedWord(lists, run.list, group()) &
                        (left < kListGroup ? (1u << left) - 1 : ~0u);
            }
        }
    };

    /// Begins and ends with the block in step.
    __device__ __forceinline__ void writeQueries(const IvfRun& run) const {
        for (uint32_t q = 0; q < run.numRows; ++q) {
            tables.writeQuery(params.search, run.rows[q], int(q));
        }
        __syncthreads();
    }

    __device__ __forceinline__ void add(
            const Stages& stages,
            const Place& place,
            Sums& sums) const {
        static_assert(kQueries == 4);
        const int padded = ivfDirectPadded(params.search.d);
        const auto addTo = [&]<int kCount>() {
            stages.template add<kMetric, kCount>(
                    place.component, tables.queries, padded, sums);
        };
        switch (place.run.numRows) {
            case 1:
                addTo.template operator()<1>();
                break;
            case 2:
                addTo.template operator()<2>();
                break;
            case 3:
                addTo.template operator()<3>();
                break;
            default:
                addTo.template operator()<4>();
        }
    }

    __device__ __forceinline__ void putKeys(const Place& place, Sums& sums)
            const {
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
            if (q < place.run.numRows) {
                Stages::template put<kMetric>(
                        sums[q], kept.keys[place.tile % 2][q]);
            }
#pragma unroll
            for (double& sum : sums[q]) {
                sum = 0;
            }
        }
        if (threadIdx.x % Stages::kGroupThreads == 0) {
            kept.words[place.tile % 2][Stages::groupOfWarp()] = place.word;
        }
    }

    /// A warp some groups of some queries.
    __device__ __forceinline__ void keep(const Place& place) const {
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t groups =
                (place.run.length - place.first + kListGroup - 1) / kListGroup;
#pragma unroll
        for (uint32_t i = threadIdx.x / kWarpSize; i < kQueries * kGroups;
             i += kWarps) {
            const uint32_t q = i / kGroups;
            const uint32_t group = i % kGroups;
            if (q < place.run.numRows && group < groups) {
                keepIvfKey<kMetric>(
                        params,
                        place.run.rows[q],
                        (place.run.columns[q] + place.first) / kListGroup +
                                group,
                        kept.keys[place.tile % 2][q][group * kListGroup + lane],
                        kept.words[place.tile % 2][group] >> lane & 1);
            }
        }
    }
};

template <Metric kMetric, ListCoding kCoding>
__global__ __launch_bounds__(
        kIvfDirectThreads,
        kIvfFoursBlocks) void ivfStagedSharedScanKernel(const __grid_constant__
                                                                IvfStagedParams
                                                                        staged) {
    using Scan = IvfStagedSharedScan<kMetric, kCoding>;
    extern __shared__ __align__(16) uint8_t ivfStagedSharedMemory[];
    const IvfDirectParams& params = staged.direct;
    const IvfParams& search = params.search;
    const typename Scan::Staged tables(
            ivfStagedSharedMemory + staged.allStages, search.d, Scan::kQueries);
    auto& kept = *static_cast<typename Scan::Kept*>(tables.behind);
    allowNext();
    waitForPrevious();
    tables.writeSteps(search); // before the first queries are in step
    Scan{params, kept, tables}.run(typename Scan::Stages(
            ivfStagedSharedMemory, staged, tables.steps, tables.starts));
}

template <Metric kMetric, ListCoding kCoding>
void launchIvfStagedSharedScan(
        const IvfDirectParams& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    if constexpr (isStaged(kCoding)) {
        using Scan = IvfStagedSharedScan<kMetric, kCoding>;
        const IvfStagedPlan plan(
                params,
                device,
                IvfStagedPlan::foursStage(params.search.lists),
                Scan::tableBytes(params.search.d),
                0,
                kIvfFoursBlocks);
        const auto kernel = ivfStagedSharedScanKernel<kMetric, kCoding>;
        launchAfterPrevious(
                kernel,
                dim3(unsigned(device.multiprocessors * plan.blocks)),
                kIvfDirectThreads,
                allowSharedBytes(kernel, plan.bytes),
                stream,
                plan.params);
    }
}

} // namespace faiss_bits

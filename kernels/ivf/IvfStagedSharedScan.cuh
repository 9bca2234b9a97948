/// The keys of all vectors of the lists of some queries, as IvfSharedScan.cuh
/// has them, of interleaved float16 and scalar codes, which come through shared
/// memory.
///
/// Bound by: shared memory and conversions; with four queries a list by
/// float64, too.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/IvfStagedTables.cuh"
#include "kernels/ivf/IvfTileOrder.cuh"

namespace faiss_bits {

/// Every block has an even part of the tiles, of kIvfSharedQueries queries and
/// kListGroup vectors each.
template <Metric kMetric, ListCoding kCoding>
struct IvfStagedSharedScan {
    using Stages = IvfGroupStages<kCoding>;
    using Staged = IvfStagedTables<kCoding>;
    static constexpr int kQueries = kIvfSharedQueries;
    static constexpr int kWarps = kIvfDirectThreads / kWarpSize;
    using Order = IvfTileOrder<kQueries, kListGroup>;

    /// Keys of a tile, and of the one before.
    using Keys = uint32_t[2][kQueries][kListGroup];

    /// Beside the stages.
    BITS_HOST_DEVICE static constexpr size_t tableBytes(int d) {
        return Staged::bytes(d, kQueries) + sizeof(Keys);
    }

    const IvfDirectParams& params;
    Keys& keys;
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
            // Where none is selected, nothing is read.
            if (copied.tile < end && selected(copied) != 0) {
                stages.copy(
                        copied.run.vectors,
                        copied.run.list,
                        copied.first / kListGroup,
                        copied.component);
            } else {
                stages.copyNothing();
            }
            copied.nextPart(d);
        };
        for (int i = 1; i < stages.count(); ++i) {
            copyNext();
        }
        double sums[kQueries] = {};
        bool isBegun = false; // the run
        bool isWhole = false; // the tile before
        while (true) {
            stages.wait();
            if (isWhole) {
                keep(added);
                ++added.tile;
                added.first += kListGroup;
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
            if (selected(added) != 0) {
                add(stages, added, sums);
            }
            stages.next();
            added.component += kIvfDirectDims;
            isWhole = added.component >= d;
            if (isWhole) {
                added.component = 0;
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

        __device__ __forceinline__ Place(const Order& order, uint32_t which)
                : run(order.runOf(which)), tile(which), first(run.first) {}

        __device__ __forceinline__ void nextPart(int d) {
            component += kIvfDirectDims;
            if (component >= d) {
                component = 0;
                ++tile;
                first += kListGroup;
            }
        }
    };

    __device__ __forceinline__ uint32_t selected(const Place& place) const {
        return selectedWord(
                params.search.lists, place.run.list, place.first / kListGroup);
    }

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
            double (&sums)[kQueries]) const {
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

    __device__ __forceinline__ void putKeys(
            const Place& place,
            double (&sums)[kQueries]) const {
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
            if (q < place.run.numRows) {
                Stages::put(
                        Stages::template keyOf<kMetric>(sums[q]),
                        keys[place.tile % 2][q]);
            }
            sums[q] = 0;
        }
    }

    /// A warp a query, others than for the tile before.
    __device__ __forceinline__ void keep(const Place& place) const {
        const uint32_t warp = threadIdx.x / kWarpSize;
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t q = (warp + place.tile * kQueries) % kWarps;
        if (q >= place.run.numRows) {
            return;
        }
        keepIvfKey<kMetric>(
                params,
                place.run.rows[q],
                (place.run.columns[q] + place.first) / kListGroup,
                keys[place.tile % 2][q][lane],
                place.first + lane < place.run.length &&
                        (selected(place) >> lane & 1));
    }
};

template <Metric kMetric, ListCoding kCoding>
__global__ __launch_bounds__(
        kIvfDirectThreads,
        kIvfDirectBlocks) void ivfStagedSharedScanKernel(const __grid_constant__
                                                                 IvfStagedParams
                                                                         staged) {
    using Scan = IvfStagedSharedScan<kMetric, kCoding>;
    extern __shared__ __align__(16) uint8_t ivfStagedSharedMemory[];
    const IvfDirectParams& params = staged.direct;
    const IvfParams& search = params.search;
    const typename Scan::Staged tables(
            ivfStagedSharedMemory + staged.allStages, search.d, Scan::kQueries);
    auto& keys = *static_cast<typename Scan::Keys*>(tables.behind);
    allowNext();
    waitForPrevious();
    tables.writeSteps(search); // before the first queries are in step
    Scan{params, keys, tables}.run(typename Scan::Stages(
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
                params, device, Scan::tableBytes(params.search.d), 0);
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

/// The keys of all vectors of a query's lists, as IvfDirectScan.cuh has them,
/// of interleaved float16 and scalar codes, which come through shared memory.
///
/// Bound by: shared memory and conversions, or where lists are few, the wait
/// for centroids, tables and vectors, one after the other.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/LaunchesTogether.h"
#include "kernels/ivf/IvfDirectLists.cuh"
#include "kernels/ivf/IvfGroupWords.cuh"
#include "kernels/ivf/IvfStagedTables.cuh"

namespace faiss_bits {

template <Metric kMetric, ListCoding kCoding>
struct IvfStagedScan {
    using Lists = IvfDirectLists;
    using Stages = IvfGroupStages<kCoding>;
    using Staged = IvfStagedTables<kCoding>;
    static constexpr int kThreads = kIvfDirectThreads;
    static constexpr int kWarps = kThreads / kWarpSize;
    /// Of a component of 32 vectors.
    static constexpr uint32_t kRowBytes =
            kListGroup * codeBitsOf(kCoding, ListLayout::Interleaved) / 8;

    struct Kept {
        uint32_t keys[2][kListGroup]; // of a group, and of the one before
        IvfGroupWords::Words words;
    };

    /// Beside the stages.
    BITS_HOST_DEVICE static constexpr size_t tableBytes(
            int d,
            uint32_t nprobe) {
        return Staged::bytes(d, 1) + sizeof(Kept) +
                Lists::Tables::bytes(nprobe);
    }

    const Lists::Tables& lists;
    const IvfDirectParams& params;
    Kept& kept;
    const double* query; // in shared memory
    uint32_t row;

    /// Of 32s of columns of the row the part of block blockIdx.x.
    __device__ __forceinline__ void run(Stages stages) const {
        const int d = params.search.d;
        const uint64_t total = lists.first[params.search.nprobe];
        const uint32_t begin = uint32_t(total * blockIdx.x / gridDim.x);
        const uint32_t end = uint32_t(total * (blockIdx.x + 1) / gridDim.x);
        const IvfGroupWords words{
                kept.words,
                lists,
                params.search,
                begin,
                end,
                uint32_t(d) * kRowBytes};
        static_assert(IvfGroupWords::kAtOnce >= IvfStagedPlan::kMostStages);
        Place copied = {begin, 0, 0};
        const auto copyNext = [&] {
            if (copied.at < end) {
                find(copied);
            }
            if (copied.component == 0) {
                words.prepare(copied.at);
            }
            // Where none is selected, nothing is read.
            if (copied.at < end && words.of(copied.at) != 0) {
                stages.copy(
                        lists.vectors[copied.probe],
                        lists.numbers[copied.probe],
                        copied.at - lists.first[copied.probe],
                        copied.component);
            } else {
                stages.copyNothing();
            }
            copied.next(d);
        };
        for (int i = 1; i < stages.count(); ++i) {
            copyNext();
        }
        fillIvfRow(
                params,
                row,
                uint32_t(total) * kListGroup,
                blockIdx.x,
                gridDim.x);
        double sum[1] = {};
        Done done;
        for (Place added = {begin, 0, 0};;) {
            stages.wait();
            keep(done);
            if (added.at >= end) {
                break;
            }
            copyNext();
            find(added);
            const uint32_t word = words.of(added.at);
            if (word != 0) {
                stages.template add<kMetric, 1>(added.component, query, 0, sum);
            }
            stages.next();
            done = doneOf(added, word);
            added.next(d);
            done.isWhole = added.at != done.at;
            if (done.isWhole) {
                const uint32_t key = Stages::template keyOf<kMetric>(sum[0]);
                Stages::put(key, kept.keys[done.at % 2]);
                sum[0] = 0;
            }
        }
    }

   private:
    /// A part of a group.
    struct Place {
        uint32_t at;    // group of the row
        uint32_t probe; // that has it, or one before
        int component;

        __device__ __forceinline__ void next(int d) {
            component += kIvfDirectDims;
            if (component >= d) {
                component = 0;
                ++at;
            }
        }
    };

    /// A group, when all its components are added up.
    struct Done {
        bool isWhole = false;
        bool isThere; // the vector of this lane
        uint32_t at;
    };

    __device__ __forceinline__ Done
    doneOf(const Place& place, uint32_t word) const {
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t group = place.at - lists.first[place.probe];
        Done done;
        done.at = place.at;
        done.isThere = group * kListGroup + lane < lists.lengths[place.probe] &&
                (word >> lane & 1);
        return done;
    }

    /// By one warp.
    __device__ __forceinline__ void keep(const Done& done) const {
        if (done.isWhole && threadIdx.x / kWarpSize == done.at % kWarps) {
            keepIvfKey<kMetric>(
                    params,
                    row,
                    done.at,
                    kept.keys[done.at % 2][threadIdx.x % kWarpSize],
                    done.isThere);
        }
    }

    __device__ __forceinline__ void find(Place& place) const {
        while (place.at >= lists.first[place.probe + 1]) {
            ++place.probe;
        }
    }
};

/// Blocks of a query (x) and queries (y).
template <Metric kMetric, ListCoding kCoding>
__global__ __launch_bounds__(
        kIvfDirectThreads,
        kIvfDirectBlocks) void ivfStagedScanKernel(const __grid_constant__
                                                           IvfStagedParams
                                                                   staged) {
    using Scan = IvfStagedScan<kMetric, kCoding>;
    extern __shared__ __align__(16) uint8_t ivfStagedMemory[];
    const IvfDirectParams& params = staged.direct;
    const IvfParams& search = params.search;
    const uint32_t row = blockIdx.y;
    const typename Scan::Staged tables(
            ivfStagedMemory + staged.allStages, search.d, 1);
    auto& kept = *static_cast<typename Scan::Kept*>(tables.behind);
    const IvfDirectLists::Tables lists(&kept + 1, search.nprobe);
    // What was there before the kernel of the centroids can be read while that
    // runs.
    if (!params.centroids) {
        waitForPrevious();
    }
    allowNext();
    tables.writeQuery(search, row, 0);
    tables.writeSteps(search);
    if (params.centroids) {
        IvfDirectLists::prefetch(
                search.lists,
                blockIdx.y * gridDim.x + blockIdx.x,
                gridDim.x * gridDim.y);
        waitForPrevious();
    }
    // Where stages are later.
    IvfDirectLists{
            *reinterpret_cast<IvfDirectLists::SharedStorage*>(ivfStagedMemory),
            lists,
            params,
            row}
            .find();
    Scan{lists, params, kept, tables.queries, row}.run(typename Scan::Stages(
            ivfStagedMemory, staged, tables.steps, tables.starts));
}

template <Metric kMetric, ListCoding kCoding>
void launchIvfStagedScan(
        const IvfDirectParams& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    if constexpr (isStaged(kCoding)) {
        using Scan = IvfStagedScan<kMetric, kCoding>;
        const IvfParams& search = params.search;
        const IvfStagedPlan plan(
                params,
                device,
                IvfStagedPlan::groupStage(search.lists),
                Scan::tableBytes(search.d, search.nprobe),
                sizeof(IvfDirectLists::SharedStorage),
                kIvfDirectBlocks);
        const uint32_t most = uint32_t(device.multiprocessors * plan.blocks);
        const int64_t groups = std::max<int64_t>(search.stride / kIvfGroup, 1);
        const uint32_t ofRow =
                std::clamp<uint32_t>(most / search.rows, 1, uint32_t(groups));
        const auto kernel = ivfStagedScanKernel<kMetric, kCoding>;
        launchTogether(
                kernel,
                dim3(ofRow, search.rows),
                kIvfDirectThreads,
                plan.bytes,
                stream,
                plan.params);
    }
}

} // namespace faiss_bits

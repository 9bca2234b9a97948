/// Canonical distances and results of rows of bits, eight lanes a row: four
/// rows of a warp are listed, sorted and written in the instructions that one
/// would take, and only distances are one after the other. Most are told by
/// sums of products (SlotProducts.cuh).
///
/// Bound by: reads of vectors from L2 where they are more than L1 has; else
/// instructions.
#include "kernels/knn/fused/ScoreRows.h"

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Error.h"
#include "kernels/common/PreferredL1.h"
#include "kernels/device/AsyncCopy.cuh"
#include "kernels/device/LaneSums.cuh"
#include "kernels/knn/fused/PassedResults.cuh"
#include "kernels/knn/fused/RowDistances.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
/// Sets of four rows that a warp has, at least: with fewer, the last ones leave
/// the GPU idle for too long.
constexpr uint32_t kLeastTurns = 5;
constexpr uint32_t kWarps = kThreads / kWarpSize;
constexpr uint32_t kRows = kWarpSize / kPairLanes; // of a warp
constexpr uint32_t kKept = RowSlots::kKept;
/// Sets of rows that go by the definition once products tell too little.
constexpr uint32_t kFarSets = 32;

/// Where vectors are long, fewer warps with more in flight: four distances of a
/// row at a time, for which registers are enough of two blocks.
template <int kSteps>
struct ScoreRowsShape {
    static constexpr bool kIsLong = kSteps == 4;
    static constexpr int kBlocks = kIsLong ? 2 : 3; // of a multiprocessor
    // Components of four that are moved: SlotProducts.cuh, SlotQuery.cuh.
    using ByProducts = RowByProducts<kSteps, 2>;
    using ByDefinition = RowByDefinition<kSteps, kIsLong ? 2 : 0>;
};

/// Asks L2 for the queries of a warp's rows from one on: 128 bytes a lane.
__device__ __forceinline__ void prefetchQueries(
        const CertifiedParams& search,
        uint32_t first) {
    constexpr uint32_t kFloats = 32;
    const uint32_t at = threadIdx.x % kWarpSize * kFloats;
    const uint32_t rows = first < search.rows ? search.rows - first : 0;
    if (at < min(rows, kRows) * uint32_t(search.d)) {
        const float* from = search.queries + int64_t(first) * search.d + at;
        prefetchToL2(from);
    }
}

struct ScoreRows {
    static constexpr Metric kMetric = Metric::L2;
    static constexpr int kWords = 4; // of a lane, read together

    const ScoreSlotsParams& params;
    RowSlots& slots; // of this lane's row

    /// Rows first .. first + 3, all lanes of the warp. Returns the number of
    /// distances of the lane's row. distances: of this row, or of row 0 where
    /// there is none; RowByDefinition or RowByProducts.
    template <class Distances>
    __device__ __forceinline__ uint32_t
    run(uint32_t first, RowSlots* ofWarp, Distances& distances) const {
        const CertifiedParams& search = params.passed.search;
        const uint32_t lane = threadIdx.x % kPairLanes;
        const uint32_t row = first + threadIdx.x % kWarpSize / kPairLanes;
        const bool isThere = row < search.rows;
        // Of a row with more than fit, the best so far and some more.
        uint32_t begin = 0;
        uint32_t end = SortRows::kMost;
        uint32_t from = 0; // slot of the first of them
        uint32_t passed = 0;
        bool hasAll = true;
        for (;;) {
            passed = list<Distances::kTakesRows>(
                    isThere ? row : 0, isThere, begin, end, from);
            // A row that is too full is searched again.
            hasAll = passed <= uint32_t(search.numCandidates);
            const uint32_t listed = hasAll ? passed : 0;
            const uint32_t fill = from + min(end, listed) - min(begin, listed);
            __syncwarp();
            distances.score(slots, from, fill);
            const bool isLast = !__any_sync(kFullWarp, listed > end);
            if (begin == 0 || hasNearer(from, fill)) {
                sort(fill, begin == 0 && isLast);
                __syncwarp();
            }
            if (isLast) {
                break;
            }
            begin = end;
            end += SortRows::kMost - kKept;
            from = kKept;
        }
        if (isThere && lane == 0) {
            params.words.counts[row] = passed;
        }
        // Row by row: whole lines.
#pragma unroll
        for (uint32_t r = 0; r < kRows; ++r) {
            const bool hasRow = __shfl_sync(
                    kFullWarp, uint32_t(hasAll), int(r * kPairLanes));
            if (first + r >= search.rows) {
                break;
            }
            const uint32_t place = ofWarp[r].order[threadIdx.x % kWarpSize];
            WarpList<1> best;
            best.assignSorted(
                    place == SortRows::kNone ? kNoEntry
                                             : ofWarp[r].entries[place]);
            writePassed<kMetric>(
                    search,
                    first + r,
                    best,
                    params.complete[first + r],
                    hasRow);
        }
        __syncwarp();
        return isThere && hasAll ? passed : 0;
    }

   private:
    /// Bits begin .. end - 1 of the row's to slots from `from` on: vectors, or
    /// rows of the image. Returns how many it has.
    template <bool kRowsOfImage>
    __device__ __forceinline__ uint32_t
    list(uint32_t row,
         bool isThere,
         uint32_t begin,
         uint32_t end,
         uint32_t from) const {
        constexpr uint32_t kChunk = kWords * kPairLanes;
        const uint32_t lane = threadIdx.x % kPairLanes;
        const uint32_t perRow = params.words.perRow;
        const uint32_t* const bits = params.words.bits + size_t(row) * perRow;
        uint32_t before = 0;
        for (uint32_t chunk = 0; chunk < perRow; chunk += kChunk) {
            uint32_t words[kWords];
            uint32_t count = 0;
#pragma unroll
            for (int w = 0; w < kWords; ++w) {
                const uint32_t at = chunk + w * kPairLanes + lane;
                words[w] = isThere && at < perRow ? bits[at] : 0;
                count += __popc(words[w]);
            }
            uint32_t place = sumUpToLane<kPairLanes>(count);
            const uint32_t sum =
                    __shfl_sync(kFullWarp, place, kPairLanes - 1, kPairLanes);
            place += before - count;
            before += sum;
#pragma unroll
            for (int w = 0; w < kWords; ++w) {
                const uint32_t column =
                        (chunk + w * kPairLanes + lane) * kWarpSize;
                const uint32_t own = __popc(words[w]);
                if (place + own <= begin || place >= end) {
                    place += own; // of another turn
                    continue;
                }
                for (uint32_t left = words[w]; left != 0; left &= left - 1) {
                    if (place >= begin && place < end) {
                        const uint32_t found = column + __ffs(int(left)) - 1;
                        slots.entries[place - begin + from] = kRowsOfImage
                                ? found
                                : params.words.rows.vectorOf(found);
                    }
                    ++place;
                }
            }
        }
        return before;
    }

    /// Whether a row of the warp has an entry from a slot on that is among its
    /// nearest; those before are in order.
    __device__ __forceinline__ bool hasNearer(uint32_t from, uint32_t fill)
            const {
        bool isNearer = false;
        for (uint32_t at = from + threadIdx.x % kPairLanes; at < fill;
             at += kPairLanes) {
            isNearer |= slots.entries[at] < slots.entries[kKept - 1];
        }
        return __any_sync(kFullWarp, isNearer);
    }

    /// The nearest of the first `fill` entries to `order`. mayOrder: they need
    /// not move.
    __device__ __forceinline__ void sort(uint32_t fill, bool mayOrder) const {
        const uint32_t lane = threadIdx.x % kPairLanes;
        uint64_t entries[SortRows::kItems];
#pragma unroll
        for (int i = 0; i < SortRows::kItems; ++i) {
            const uint32_t slot = i * kPairLanes + lane;
            entries[i] = slot < fill ? slots.entries[slot] : kNoEntry;
        }
        uint32_t order[SortRows::kItems];
        if (!mayOrder || !SortRows::order(entries, order)) {
            SortRows::sort(entries);
            __syncwarp(); // all have read them
#pragma unroll
            for (int i = 0; i < SortRows::kItems; ++i) {
                order[i] = lane * SortRows::kItems + i;
                if (lane < kPairLanes / 2) {
                    slots.entries[order[i]] = entries[i];
                }
            }
        }
        if (lane < kPairLanes / 2) {
#pragma unroll
            for (int i = 0; i < SortRows::kItems; i += 4) {
                *reinterpret_cast<uint4*>(
                        &slots.order[lane * SortRows::kItems + i]) = {
                        order[i], order[i + 1], order[i + 2], order[i + 3]};
            }
        }
    }
};

template <int kSteps>
__global__ __launch_bounds__(
        kThreads,
        ScoreRowsShape<kSteps>::
                kBlocks) void scoreRowsKernel(const __grid_constant__
                                                      ScoreSlotsParams params) {
    __shared__ __align__(16) RowSlots slots[kWarps][kRows];
    __shared__ uint32_t setsTaken;
    if (threadIdx.x == 0) {
        setsTaken = 0;
    }
    __syncthreads();
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.passed.search;
    const uint32_t warp = threadIdx.x / kWarpSize;
    const uint32_t ofWarp = threadIdx.x % kWarpSize / kPairLanes;
    const ScoreRows score{params, slots[warp][ofWarp]};
    // Of the block's sets the next, by whichever warp is free: its last warps
    // end at about the same time.
    const auto takeSet = [&] {
        uint32_t set = 0;
        if (threadIdx.x % kWarpSize == 0) {
            set = atomicAdd(&setsTaken, 1u);
        }
        set = __shfl_sync(kFullWarp, set, 0);
        return (set * gridDim.x + blockIdx.x) * kRows;
    };
    uint32_t scored = 0;
    uint32_t far = 0; // sets of rows that products are not asked about
    uint32_t next = takeSet();
    while (next < search.rows) {
        const uint32_t row = next;
        next = takeSet();
        prefetchQueries(search, next);
        const uint32_t here = row + ofWarp < search.rows ? row + ofWarp : 0;
        if (far == 0) {
            typename ScoreRowsShape<kSteps>::ByProducts products(params, here);
            if (!products.isFar()) {
                scored += score.run(row, slots[warp], products);
                far = products.toldLittle() ? kFarSets : 0;
                continue;
            }
            far = kFarSets;
        }
        --far;
        typename ScoreRowsShape<kSteps>::ByDefinition definition(params, here);
        scored += score.run(row, slots[warp], definition);
    }
    if (search.numRescored) {
        scored = threadIdx.x % kPairLanes == 0 ? scored : 0;
        scored = __reduce_add_sync(kFullWarp, scored);
        if (threadIdx.x % kWarpSize == 0 && scored > 0) {
            atomicAdd(search.numRescored, (unsigned long long)scored);
        }
    }
}

template <int kSteps>
void launch(
        const ScoreSlotsParams& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    constexpr uint32_t kOfBlock = kWarps * kRows;
    // Vectors are read from there, and what the block is charged comes on top.
    constexpr size_t kShared = sizeof(RowSlots) * kOfBlock + 1024;
    preferL1(
            reinterpret_cast<const void*>(&scoreRowsKernel<kSteps>),
            ScoreRowsShape<kSteps>::kBlocks * kShared);
    launchAfterPrevious(
            scoreRowsKernel<kSteps>,
            std::min(
                    (params.passed.search.rows + kOfBlock - 1) / kOfBlock,
                    unsigned(
                            ScoreRowsShape<kSteps>::kBlocks *
                            device.multiprocessors)),
            kThreads,
            0,
            stream,
            params);
}

} // namespace

bool canScoreRows(Metric metric, const ScoreSlotsParams& params) {
    const CertifiedParams& search = params.passed.search;
    return metric == Metric::L2 && params.words.bits && search.k >= 1 &&
            search.k <= kMostSlotK && slotSteps(search.d) >= 2;
}

bool scoreRowsPays(const ScoreSlotsParams& params, const DeviceTraits& device) {
    const int blocks = slotSteps(params.passed.search.d) == 4
            ? ScoreRowsShape<4>::kBlocks
            : ScoreRowsShape<2>::kBlocks;
    return params.passed.search.rows >= uint64_t(kLeastTurns * kWarps * kRows) *
            unsigned(blocks * device.multiprocessors);
}

void launchScoreRows(
        Metric metric,
        const ScoreSlotsParams& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    const CertifiedParams& search = params.passed.search;
    BITS_THROW_IF_NOT_FMT(
            canScoreRows(metric, params),
            "no kernel for metric = %d, k = %d, d = %d",
            int(metric),
            int(search.k),
            search.d);
    if (slotSteps(search.d) == 2) {
        return launch<2>(params, device, stream);
    }
    launch<4>(params, device, stream);
}

} // namespace faiss_bits

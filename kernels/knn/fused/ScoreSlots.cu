/// Canonical distances of what passed a scan of few vectors, a warp a list, or
/// a row of bits, from a copy of the vectors in L2; the row's query is in
/// registers. Where k is small, the same warp sorts the entries and writes the
/// results: while some warps sort, others read.
///
/// Bound by: reads of 512 bytes an entry of 128 dimensions from L2.
#include "kernels/knn/fused/ScoreSlots.h"

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Error.h"
#include "kernels/device/AsyncCopy.cuh"
#include "kernels/device/LaneMask.cuh"
#include "kernels/device/LaneSums.cuh"
#include "kernels/knn/fused/PassedResults.cuh"
#include "kernels/knn/fused/ScoreFew.h"
#include "kernels/knn/fused/ScoreRows.h"
#include "kernels/knn/fused/SlotQuery.cuh"
#include "kernels/knn/fused/SortFew.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr uint32_t kWarps = kThreads / kWarpSize;
constexpr uint32_t kGroups = kWarpSize / kPairLanes;
template <Metric kMetric>
constexpr int kBlocks = kMetric == Metric::Cosine ? 2 : 3;

/// The entries of a warp that wait to be scored: the place in the list, and the
/// vector.
constexpr uint32_t kQueue = 3 * kWarpSize;
constexpr int kColumnBits = 18;
constexpr uint32_t kMostColumns = 1u << kColumnBits;
constexpr uint32_t kMostPlaces = 1u << (32 - kColumnBits);

/// Asks L2 for a row's query: 128 bytes a lane.
__device__ __forceinline__ void prefetchQuery(
        const CertifiedParams& search,
        uint32_t row) {
    constexpr int kFloats = 32;
    const int at = threadIdx.x % kWarpSize * kFloats;
    if (row < search.rows && at < search.d) {
        const float* query = search.queries + int64_t(row) * search.d + at;
        prefetchToL2(query);
    }
}

/// kSorts: the results are written, and no entries.
template <Metric kMetric, int kSteps, bool kBits, bool kSorts>
__global__ __launch_bounds__(kThreads, kBlocks<kMetric>) void scoreSlotsKernel(
        const __grid_constant__ ScoreSlotsParams params) {
    using Query = SlotQuery<kMetric, kSteps>;
    __shared__ uint32_t queues[kWarps][kQueue];
    // kSorts. In shared memory, as registers are few: what was scored of a row,
    // the best so far, and how many were scored of all.
    constexpr uint32_t kSorters = kSorts ? kWarps : 1;
    __shared__ uint64_t parts[kSorters][SortFew::kMost];
    __shared__ uint64_t bests[kSorters][kWarpSize];
    __shared__ unsigned long long numsScored[kSorters];
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.passed.search;
    const uint32_t lane = threadIdx.x % kWarpSize;
    const uint32_t group = lane / kPairLanes;
    const uint32_t warp = threadIdx.x / kWarpSize;
    const uint32_t step = gridDim.x * kWarps;
    const uint32_t most = uint32_t(search.numCandidates);
    uint32_t* const queue = queues[warp];
    uint64_t* const scored = parts[kSorts ? warp : 0];
    uint64_t* const best = bests[kSorts ? warp : 0];
    if (kSorts && lane == 0) {
        numsScored[warp] = 0;
    }

    // A list that more passed than it has room for is not proved, whatever its
    // entries are.
    const auto listed = [&](uint32_t passed) {
        return passed <= most ? passed : 0;
    };
    const auto countOf = [&](uint32_t row) {
        return kBits || row >= search.rows ? 0
                                           : listed(params.passed.counts[row]);
    };
    // This lane's column, or word, of those from `first` on.
    const auto read = [&](uint32_t row, uint32_t first, uint32_t count) {
        const uint32_t at = first + lane;
        if constexpr (kBits) {
            return row < search.rows && at < params.words.perRow
                    ? params.words.bits[size_t(row) * params.words.perRow + at]
                    : 0;
        } else {
            return at < count
                    ? uint32_t(search.columns[size_t(row) * most + at])
                    : 0;
        }
    };
    // What comes next is asked for early.
    uint32_t row = blockIdx.x * kWarps + warp;
    uint32_t count = countOf(row);
    uint32_t next = read(row, 0, count);
    uint32_t nextCount = countOf(row + step);
    for (; row < search.rows; row += step) {
        uint32_t here = next;
        next = read(row + step, 0, nextCount);
        const Query query(search.queries + int64_t(row) * search.d, search.d);
        prefetchQuery(search, row + step);
        uint64_t* const entries =
                kSorts ? scored : search.entries + size_t(row) * most;
        uint32_t fill = 0;
        bool isListed = false;
        if (kSorts) {
            best[lane] = kNoEntry;
        }
        // Of the queue, those from `first` on before `end`.
        const auto score = [&]<int kPairs>(uint32_t first, uint32_t end) {
            const float4* from[kPairs];
            uint32_t its[kPairs];
            double exact[kPairs];
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                its[p] = queue[min(first + p * kGroups + group, end - 1)];
                from[p] = params.slotRows +
                        size_t(its[p] % kMostColumns) * Query::kRowPacks +
                        lane % kPairLanes;
            }
            query.distances(from, search.power, exact);
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                const uint32_t at = first + p * kGroups + group;
                if (at < end && lane % kPairLanes == 0) {
                    const uint32_t place = kSorts ? at % SortFew::kMost
                                                  : its[p] >> kColumnBits;
                    entries[place] = distanceEntry<kMetric>(
                            exact[p], its[p] % kMostColumns);
                }
            }
        };
        const auto scoreUpTo = [&](uint32_t first, uint32_t end) {
            for (; first + kGroups < end; first += 2 * kGroups) {
                score.template operator()<2>(first, end);
            }
            if (first < end) {
                score.template operator()<1>(first, end);
            }
        };
        // isRow: the queue has all of the row.
        const auto scoreAll = [&](bool isRow) {
            __syncwarp();
            if constexpr (kSorts) {
                for (uint32_t first = 0; first < fill;
                     first += SortFew::kMost) {
                    const uint32_t end = min(first + SortFew::kMost, fill);
                    scoreUpTo(first, end);
                    __syncwarp();
                    const uint32_t low = first + lane;
                    const uint32_t high = low + kWarpSize;
                    const uint64_t entryLow =
                            low < end ? scored[lane] : kNoEntry;
                    const uint64_t entryHigh =
                            high < end ? scored[lane + kWarpSize] : kNoEntry;
                    uint64_t least;
                    if (!isRow || fill > SortFew::kMost ||
                        !(fill <= kWarpSize
                                  ? SortFew::run(entryLow, least)
                                  : SortFew::run(entryLow, entryHigh, least))) {
                        WarpList<1> list;
                        list.assignSorted(best[lane]);
                        list.add(entryLow);
                        list.add(entryHigh);
                        least = list.item(0);
                    }
                    best[lane] = least;
                    __syncwarp();
                }
            } else {
                scoreUpTo(0, fill);
            }
            fill = 0;
            __syncwarp();
        };
        const auto append = [&](unsigned lanes, bool isMine, uint32_t entry) {
            if (isMine) {
                queue[fill + __popc(lanes & lanesBefore())] = entry;
            }
            fill += __popc(lanes);
            if (fill > kQueue - kWarpSize) {
                scoreAll(false);
                isListed = true;
            }
        };
        uint32_t passed = kBits ? 0 : count; // in the words before
        if constexpr (kBits) {
            for (uint32_t first = 0; first < params.words.perRow;
                 first += kWarpSize) {
                if (first > 0) {
                    here = read(row, first, 0);
                }
                const uint32_t own = __popc(here);
                uint32_t place = sumUpToLane(own);
                const uint32_t sum =
                        __shfl_sync(kFullWarp, place, kWarpSize - 1);
                place += passed - own;
                passed += sum;
                uint32_t left = here;
                for (;;) {
                    // A list that is full is searched again.
                    const bool isMine = left != 0 && place < most;
                    const unsigned lanes = __ballot_sync(kFullWarp, isMine);
                    if (lanes == 0) {
                        break;
                    }
                    append(lanes,
                           isMine,
                           place << kColumnBits |
                                   params.words.rows.vectorOf(
                                           (first + lane) * kWarpSize +
                                           __ffs(int(left)) - 1));
                    left &= left - 1;
                    ++place;
                }
            }
            if (lane == 0) {
                params.words.counts[row] = passed;
            }
        } else {
            for (uint32_t first = 0; first < count; first += kWarpSize) {
                if (first > 0) {
                    here = read(row, first, count);
                }
                const bool isMine = first + lane < count;
                append(__ballot_sync(kFullWarp, isMine),
                       isMine,
                       (first + lane) << kColumnBits | here);
            }
        }
        if (fill > 0) {
            scoreAll(!isListed);
        }
        if constexpr (kSorts) {
            const uint32_t all = kBits ? passed : params.passed.counts[row];
            if (lane == 0) {
                numsScored[warp] += kBits ? min(all, most) : listed(all);
            }
            WarpList<1> list;
            list.assignSorted(best[lane]);
            writePassed<kMetric>(
                    search, row, list, params.complete[row], all <= most);
        }
        count = nextCount;
        nextCount = countOf(row + 2 * step);
    }
    if (kSorts && search.numRescored && lane == 0 && numsScored[warp] > 0) {
        atomicAdd(search.numRescored, numsScored[warp]);
    }
}

template <Metric kMetric, int kSteps>
void launch(
        const ScoreSlotsParams& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    const CertifiedParams& search = params.passed.search;
    // As that of lists that blocks score (FusedLaunch.cuh).
    constexpr double kMuch = 0x1p28;
    const bool isLong = double(search.rows) * search.k * search.d >= kMuch;
    const bool byBits = params.words.bits != nullptr;
    const auto kernel = search.k <= kMostSlotK
            ? (byBits ? scoreSlotsKernel<kMetric, kSteps, true, true>
                      : scoreSlotsKernel<kMetric, kSteps, false, true>)
            : (byBits ? scoreSlotsKernel<kMetric, kSteps, true, false>
                      : scoreSlotsKernel<kMetric, kSteps, false, false>);
    launchAfterPrevious(
            kernel,
            std::min(
                    (search.rows + kWarps - 1) / kWarps,
                    unsigned(kBlocks<kMetric> * device.multiprocessors)),
            kThreads,
            0,
            stream,
            params,
            !isLong);
}

template <Metric kMetric>
void launchByWidth(
        const ScoreSlotsParams& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    static_assert(kMostSlotSteps == 4);
    switch (slotSteps(params.passed.search.d)) {
        case 1:
            return launch<kMetric, 1>(params, device, stream);
        case 2:
            return launch<kMetric, 2>(params, device, stream);
        case 4:
            return launch<kMetric, 4>(params, device, stream);
        default:
            throw Error(formatMessage(
                    "d = %d: no copy of the vectors has so many",
                    params.passed.search.d));
    }
}

} // namespace

void launchScoreSlots(
        Metric metric,
        const ScoreSlotsParams& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    const CertifiedParams& search = params.passed.search;
    BITS_THROW_IF_NOT_FMT(
            !search.listedIds,
            "listedIds = %p, but lists hold vectors",
            (const void*)search.listedIds);
    BITS_THROW_IF_NOT_FMT(
            search.n <= kMostColumns,
            "n = %lld is above %u",
            (long long)search.n,
            kMostColumns);
    BITS_THROW_IF_NOT_FMT(
            search.numCandidates >= 0 &&
                    uint32_t(search.numCandidates) <= kMostPlaces,
            "numCandidates = %d is outside 0..%u",
            search.numCandidates,
            kMostPlaces);
    if (canScoreFew(metric, params) && scoreFewPays(params)) {
        return launchScoreFew(metric, params, stream);
    }
    if (canScoreRows(metric, params) && scoreRowsPays(params, device)) {
        return launchScoreRows(metric, params, device, stream);
    }
    switch (metric) {
        case Metric::L2:
            return launchByWidth<Metric::L2>(params, device, stream);
        case Metric::InnerProduct:
            return launchByWidth<Metric::InnerProduct>(params, device, stream);
        case Metric::Cosine:
            return launchByWidth<Metric::Cosine>(params, device, stream);
        default:
            throw Error(formatMessage(
                    "metric = %d has no lists that are scored by slots",
                    int(metric)));
    }
}

} // namespace faiss_bits

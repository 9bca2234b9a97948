/// Canonical distances of what passed a scan of few vectors, a warp a list, or
/// a row of bits. A part of the vectors lies in the shared memory of each
/// multiprocessor, or they are read from L2; the row's query is in registers.
///
/// Bound by: conversions to float64, 14 a clock and multiprocessor, so 9 clocks
/// an entry of 128 dimensions; from L2 by reads of 512 bytes, 22 clocks.
#include "kernels/knn/fused/ScoreSlots.h"

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/common/Error.h"
#include "kernels/device/LaneMask.cuh"
#include "kernels/knn/fused/SlotQuery.cuh"
#include "kernels/knn/fused/SlotRows.h"

namespace faiss_bits {

namespace {

constexpr int kMostSharedThreads = 768;
template <Metric kMetric>
constexpr int kSharedThreads =
        kMetric == Metric::Cosine ? 512 : kMostSharedThreads;
constexpr int kMemoryThreads = 256;
template <Metric kMetric>
constexpr int kMemoryBlocks = kMetric == Metric::Cosine ? 2 : 3;
/// With more parts a list has few entries in each.
constexpr uint32_t kMostParts = 4;
/// Lists that are worth a copy of the vectors to each multiprocessor.
constexpr uint32_t kLeastSharedLists = 8192;

struct ScoreSlotsParams {
    PassedParams passed;
    PassedWords words;
    const float4* slotRows = nullptr;
    uint32_t parts = 1;
    uint32_t inverse = 0;   // Parts
    uint32_t partPacks = 0; // of slotRows, in shared memory
};

/// The entries of a warp that wait to be scored: the place in the list, and the
/// vector's in `rows` of scoreSlotsKernel.
constexpr uint32_t kQueue = 4 * kWarpSize;
constexpr int kRowBits = 18;
constexpr uint32_t kMostRows = 1u << kRowBits;
constexpr uint32_t kMostPlaces = 1u << (32 - kRowBits);

/// How 32 vectors, those of a word of bits, are found in a part: words go to
/// the parts in turn.
struct Parts {
    uint32_t count;
    uint32_t inverse; // 2^32 / count, rounded up
    uint32_t own;

    /// The first row of a word, if it is in this part.
    __device__ __forceinline__ bool has(uint32_t word, uint32_t& row) const {
        uint32_t turn = word;
        if (count > 1) {
            turn = __umulhi(word, inverse);
        }
        row = turn * kWarpSize;
        return word - turn * count == own;
    }

    __device__ __forceinline__ uint32_t columnOf(uint32_t row) const {
        return (row / kWarpSize * count + own) * kWarpSize + row % kWarpSize;
    }
};

template <Metric kMetric, int kSteps, bool kShared, bool kBits>
__global__ __launch_bounds__(
        kShared ? kSharedThreads<kMetric> : kMemoryThreads,
        kShared ? 1
                : kMemoryBlocks<
                          kMetric>) void scoreSlotsKernel(const __grid_constant__
                                                                  ScoreSlotsParams
                                                                          params) {
    using Query = SlotQuery<kMetric, kSteps>;
    constexpr int kThreads = kShared ? kSharedThreads<kMetric> : kMemoryThreads;
    constexpr uint32_t kWarps = kThreads / kWarpSize;
    constexpr uint32_t kGroups = kWarpSize / kPairLanes;
    __shared__ uint32_t queues[kWarps][kQueue];
    extern __shared__ float4 staged[];
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.passed.search;
    const Parts parts{
            kShared ? params.parts : 1,
            params.inverse,
            kShared ? blockIdx.x % params.parts : 0};
    if (kShared) {
        for (uint32_t i = threadIdx.x; i < params.partPacks; i += kThreads) {
            const uint32_t column = parts.columnOf(i / Query::kRowPacks);
            if (column < search.n) {
                staged[i] = params.slotRows
                                    [size_t(column) * Query::kRowPacks +
                                     i % Query::kRowPacks];
            }
        }
        __syncthreads();
    }
    const float4* rows = kShared ? staged : params.slotRows;
    const uint32_t warp = threadIdx.x / kWarpSize;
    const uint32_t lane = threadIdx.x % kWarpSize;
    const uint32_t group = lane / kPairLanes;
    const uint32_t step = gridDim.x / parts.count * kWarps;
    uint32_t* queue = queues[warp];

    // What comes next is asked for early.
    const uint32_t most = uint32_t(search.numCandidates);
    const auto countOf = [&](uint32_t row) {
        return kBits || row >= search.rows
                ? 0
                : min(params.passed.counts[row], most);
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
    uint32_t row = blockIdx.x / parts.count * kWarps + warp;
    uint32_t count = countOf(row);
    uint32_t next = read(row, 0, count);
    uint32_t nextCount = countOf(row + step);
    for (; row < search.rows; row += step) {
        uint32_t here = next;
        next = read(row + step, 0, nextCount);
        const Query query(search.queries + int64_t(row) * search.d, search.d);
        uint64_t* entries = search.entries + size_t(row) * most;
        uint32_t fill = 0;
        const auto score = [&]<int kPairs>(uint32_t first) {
            const float4* from[kPairs];
            uint32_t its[kPairs];
            double exact[kPairs];
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                its[p] = queue[min(first + p * kGroups + group, fill - 1)];
                from[p] = rows + size_t(its[p] % kMostRows) * Query::kRowPacks +
                        lane % kPairLanes;
            }
            query.distances(from, search.power, exact);
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                if (first + p * kGroups + group < fill &&
                    lane % kPairLanes == 0) {
                    entries[its[p] >> kRowBits] = distanceEntry<kMetric>(
                            exact[p], parts.columnOf(its[p] % kMostRows));
                }
            }
        };
        const auto scoreAll = [&] {
            __syncwarp();
            uint32_t first = 0;
            for (; first + kGroups < fill; first += 2 * kGroups) {
                score.template operator()<2>(first);
            }
            if (first < fill) {
                score.template operator()<1>(first);
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
                scoreAll();
            }
        };
        if constexpr (kBits) {
            uint32_t passed = 0; // in the words before
            for (uint32_t first = 0; first < params.words.perRow;
                 first += kWarpSize) {
                if (first > 0) {
                    here = read(row, first, 0);
                }
                uint32_t place = __popc(here);
                const uint32_t own = place;
#pragma unroll
                for (int lanes = 1; lanes < kWarpSize; lanes *= 2) {
                    const uint32_t other =
                            __shfl_up_sync(kFullWarp, place, lanes);
                    place += lane >= uint32_t(lanes) ? other : 0;
                }
                const uint32_t sum =
                        __shfl_sync(kFullWarp, place, kWarpSize - 1);
                place += passed - own;
                passed += sum;
                uint32_t firstRow;
                uint32_t left = parts.has(first + lane, firstRow) ? here : 0;
                for (;;) {
                    // A list that is full is searched again.
                    const bool isMine = left != 0 && place < most;
                    const unsigned lanes = __ballot_sync(kFullWarp, isMine);
                    if (lanes == 0) {
                        break;
                    }
                    append(lanes,
                           isMine,
                           place << kRowBits |
                                   (firstRow + __ffs(int(left)) - 1));
                    left &= left - 1;
                    ++place;
                }
            }
            if (parts.own == 0 && lane == 0) {
                params.words.counts[row] = passed;
            }
        } else {
            for (uint32_t first = 0; first < count; first += kWarpSize) {
                if (first > 0) {
                    here = read(row, first, count);
                }
                uint32_t firstRow;
                const bool isMine = parts.has(here / kWarpSize, firstRow) &&
                        first + lane < count;
                append(__ballot_sync(kFullWarp, isMine),
                       isMine,
                       (first + lane) << kRowBits |
                               (firstRow + here % kWarpSize));
            }
            count = nextCount;
            nextCount = countOf(row + 2 * step);
        }
        if (fill > 0) {
            scoreAll();
        }
    }
}

/// Rows of vectors that fit beside the queues, in whole words.
int64_t fittingRows(int d, const DeviceTraits& device) {
    constexpr size_t kQueues =
            sizeof(uint32_t) * kQueue * kMostSharedThreads / kWarpSize;
    if (slotSteps(d) == 0 || device.blockSharedBytes < kQueues) {
        return 0;
    }
    const size_t rowBytes = slotSteps(d) * kSlotStep * sizeof(float);
    return int64_t(
            (device.blockSharedBytes - kQueues) / rowBytes / kWarpSize *
            kWarpSize);
}

/// Of a part.
int64_t rowsOfPart(int64_t n, uint32_t parts) {
    const int64_t words = (n + kWarpSize - 1) / kWarpSize;
    return (words + parts - 1) / parts * kWarpSize;
}

template <Metric kMetric, int kSteps, bool kBits>
void launch(
        ScoreSlotsParams params,
        bool isShared,
        const DeviceTraits& device,
        cudaStream_t stream) {
    const CertifiedParams& search = params.passed.search;
    // As that of lists that blocks score (FusedLaunch.cuh).
    constexpr double kMuch = 0x1p28;
    const bool isLong = double(search.rows) * search.k * search.d >= kMuch;
    if (isShared) {
        params.partPacks = uint32_t(rowsOfPart(search.n, params.parts)) *
                SlotQuery<kMetric, kSteps>::kRowPacks;
        const size_t bytes = params.partPacks * sizeof(float4);
        const auto kernel = scoreSlotsKernel<kMetric, kSteps, true, kBits>;
        allowSharedBytes(kernel, bytes);
        launchAfterPrevious(
                kernel,
                device.multiprocessors / params.parts * params.parts,
                kSharedThreads<kMetric>,
                bytes,
                stream,
                params,
                !isLong);
        return;
    }
    constexpr unsigned kWarps = kMemoryThreads / kWarpSize;
    launchAfterPrevious(
            scoreSlotsKernel<kMetric, kSteps, false, kBits>,
            std::min(
                    (search.rows + kWarps - 1) / kWarps,
                    unsigned(kMemoryBlocks<kMetric> * device.multiprocessors)),
            kMemoryThreads,
            0,
            stream,
            params,
            !isLong);
}

template <Metric kMetric, int kSteps>
void launch(
        const ScoreSlotsParams& params,
        bool isShared,
        const DeviceTraits& device,
        cudaStream_t stream) {
    if (params.words.bits) {
        return launch<kMetric, kSteps, true>(params, isShared, device, stream);
    }
    launch<kMetric, kSteps, false>(params, isShared, device, stream);
}

template <Metric kMetric>
void launchByWidth(
        const ScoreSlotsParams& params,
        bool isShared,
        const DeviceTraits& device,
        cudaStream_t stream) {
    static_assert(kMostSlotSteps == 4);
    switch (slotSteps(params.passed.search.d)) {
        case 1:
            return launch<kMetric, 1>(params, isShared, device, stream);
        case 2:
            return launch<kMetric, 2>(params, isShared, device, stream);
        case 4:
            return launch<kMetric, 4>(params, isShared, device, stream);
        default:
            throw Error(formatMessage(
                    "d = %d: no copy of the vectors has so many",
                    params.passed.search.d));
    }
}

} // namespace

uint32_t slotParts(int64_t n, int d, const DeviceTraits& device) {
    const int64_t fit = fittingRows(d, device);
    if (fit == 0) {
        return 0;
    }
    const int64_t words = (n + kWarpSize - 1) / kWarpSize;
    const int64_t ofPart = fit / kWarpSize;
    const int64_t parts = std::max<int64_t>((words + ofPart - 1) / ofPart, 1);
    return parts <= kMostParts && parts <= device.multiprocessors
            ? uint32_t(parts)
            : 0;
}

void launchScoreSlots(
        Metric metric,
        const PassedParams& passed,
        const PassedWords& words,
        const float* slotRows,
        SlotPlace place,
        const DeviceTraits& device,
        cudaStream_t stream) {
    const CertifiedParams& search = passed.search;
    ScoreSlotsParams params;
    params.passed = passed;
    params.words = words;
    params.slotRows = reinterpret_cast<const float4*>(slotRows);
    const uint32_t parts = place == SlotPlace::Memory
            ? 0
            : slotParts(search.n, search.d, device);
    BITS_THROW_IF_NOT_FMT(
            place != SlotPlace::Shared || parts > 0,
            "n = %lld vectors do not fit shared memory",
            (long long)search.n);
    BITS_THROW_IF_NOT_FMT(
            !search.listedIds,
            "listedIds = %p, but lists hold vectors",
            (const void*)search.listedIds);
    BITS_THROW_IF_NOT_FMT(
            search.n <= kMostRows,
            "n = %lld is above %u",
            (long long)search.n,
            kMostRows);
    BITS_THROW_IF_NOT_FMT(
            search.numCandidates >= 0 &&
                    uint32_t(search.numCandidates) <= kMostPlaces,
            "numCandidates = %d is outside 0..%u",
            search.numCandidates,
            kMostPlaces);
    const bool isShared = parts > 0 &&
            (place == SlotPlace::Shared || search.rows >= kLeastSharedLists);
    if (isShared) {
        params.parts = parts;
        params.inverse = uint32_t(((uint64_t(1) << 32) + parts - 1) / parts);
    }
    switch (metric) {
        case Metric::L2:
            return launchByWidth<Metric::L2>(params, isShared, device, stream);
        case Metric::InnerProduct:
            return launchByWidth<Metric::InnerProduct>(
                    params, isShared, device, stream);
        case Metric::Cosine:
            return launchByWidth<Metric::Cosine>(
                    params, isShared, device, stream);
        default:
            throw Error(formatMessage(
                    "metric = %d has no lists that are scored by slots",
                    int(metric)));
    }
}

} // namespace faiss_bits

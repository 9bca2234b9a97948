/// Canonical distances of what passed a scan of few vectors, a warp a list. A
/// part of the vectors lies in the shared memory of each multiprocessor, or
/// they are read from L2; a list's query is in registers.
///
/// Bound by: conversions to float64, 14 a clock and multiprocessor, so 9 clocks
/// an entry of 128 dimensions; from L2 by reads of 512 bytes, 22 clocks.
#include "kernels/knn/fused/ScoreSlots.h"

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/common/Error.h"
#include "kernels/knn/fused/SlotQuery.cuh"
#include "kernels/knn/fused/SlotRows.h"

namespace faiss_bits {

namespace {

constexpr int kCopyThreads = 256;
constexpr int kMostSharedThreads = 768;
template <Metric kMetric>
constexpr int kSharedThreads =
        kMetric == Metric::Cosine ? 512 : kMostSharedThreads;
constexpr int kMemoryThreads = 256;
template <Metric kMetric>
constexpr int kMemoryBlocks = kMetric == Metric::Cosine ? 2 : 3;
/// Entries of a list that are looked at together.
constexpr uint32_t kTogether = 2 * kWarpSize;
constexpr size_t kQueueBytes =
        sizeof(uint32_t) * kTogether * kMostSharedThreads / kWarpSize;
/// With more parts a list has few entries in each.
constexpr uint32_t kMostParts = 4;
/// Lists that are worth a copy of the vectors to each multiprocessor.
constexpr uint32_t kLeastSharedLists = 8192;

struct ScoreSlotsParams {
    PassedParams passed;
    const float4* slotRows = nullptr;
    uint32_t parts = 1;
    uint32_t inverse = 0; // 2^32 / parts, rounded up; of one part none
};

template <class T>
__global__ __launch_bounds__(kCopyThreads) void slotRowsKernel(
        const T* vectors,
        int64_t rowStride,
        int64_t columnStride,
        int64_t packs,
        int d,
        int rowPacks,
        float4* rows) {
    waitForPrevious();
    for (int64_t i = int64_t(blockIdx.x) * kCopyThreads + threadIdx.x;
         i < packs;
         i += int64_t(gridDim.x) * kCopyThreads) {
        const int64_t row = i / rowPacks;
        const int at = int(i - row * rowPacks);
        const int first = at / kPairLanes * kSlotStep + at % kPairLanes;
        float pack[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int c = first + j * kPairLanes;
            pack[j] = c < d
                    ? toFloat(vectors[row * rowStride + c * columnStride])
                    : 0.0f;
        }
        rows[i] = make_float4(pack[0], pack[1], pack[2], pack[3]);
    }
}

/// The list of a row on its way: what comes next is asked for early.
struct List {
    uint32_t count = 0;
    uint32_t columns[2] = {}; // of the first entries, this lane's

    __device__ __forceinline__ static uint32_t countOf(
            const PassedParams& passed,
            uint32_t row) {
        return row < passed.search.rows
                ? min(passed.counts[row], uint32_t(passed.search.numCandidates))
                : 0;
    }

    __device__ __forceinline__ void read(
            const CertifiedParams& search,
            uint32_t row,
            uint32_t base) {
        const int32_t* from =
                search.columns + int64_t(row) * search.numCandidates + base;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const uint32_t at = i * kWarpSize + threadIdx.x % kWarpSize;
            columns[i] = base + at < count ? uint32_t(from[at]) : 0;
        }
    }
};

template <Metric kMetric, int kSteps, bool kShared>
__global__ __launch_bounds__(
        kShared ? kSharedThreads<kMetric> : kMemoryThreads,
        kShared ? 1 : kMemoryBlocks<kMetric>) void
scoreSlotsKernel(const __grid_constant__ ScoreSlotsParams params) {
    using Query = SlotQuery<kMetric, kSteps>;
    constexpr int kThreads = kShared ? kSharedThreads<kMetric> : kMemoryThreads;
    constexpr uint32_t kWarps = kThreads / kWarpSize;
    constexpr uint32_t kGroups = kWarpSize / kPairLanes;
    // Entries in this part: the place in the list, and the vector's in `rows`.
    __shared__ uint32_t queues[kWarps][kTogether];
    extern __shared__ float4 staged[];
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.passed.search;
    const uint32_t part = kShared ? blockIdx.x % params.parts : 0;
    if (kShared) {
        for (uint32_t i = threadIdx.x;; i += kThreads) {
            const int64_t v = int64_t(i / Query::kRowPacks) * params.parts +
                    part;
            if (v >= search.n) {
                break;
            }
            staged[i] = params.slotRows
                                [v * Query::kRowPacks + i % Query::kRowPacks];
        }
        __syncthreads();
    }
    const float4* rows = kShared ? staged : params.slotRows;
    const uint32_t warp = threadIdx.x / kWarpSize;
    const uint32_t lane = threadIdx.x % kWarpSize;
    const uint32_t group = lane / kPairLanes;
    const uint32_t step = gridDim.x / (kShared ? params.parts : 1) * kWarps;
    uint32_t* queue = queues[warp];

    uint32_t row = blockIdx.x / (kShared ? params.parts : 1) * kWarps + warp;
    List list;
    list.count = List::countOf(params.passed, row);
    list.read(search, row, 0);
    uint32_t nextCount = List::countOf(params.passed, row + step);
    for (; row < search.rows; row += step) {
        List next;
        next.count = nextCount;
        next.read(search, row + step, 0);
        nextCount = List::countOf(params.passed, row + 2 * step);
        const Query query(search.queries + int64_t(row) * search.d, search.d);
        uint64_t* entries =
                search.entries + int64_t(row) * search.numCandidates;
        for (uint32_t base = 0; base < list.count; base += kTogether) {
            if (base > 0) {
                list.read(search, row, base);
            }
            uint32_t total = 0;
#pragma unroll
            for (uint32_t i = 0; i < 2; ++i) {
                const uint32_t at = i * kWarpSize + lane;
                const uint32_t column = list.columns[i];
                bool isHere = base + at < list.count;
                uint32_t place = column;
                if (kShared && params.parts > 1) {
                    place = __umulhi(column, params.inverse);
                    isHere = isHere && column - place * params.parts == part;
                }
                const unsigned here = __ballot_sync(kFullWarp, isHere);
                if (isHere) {
                    // 2^16 vectors do not fit shared memory.
                    const uint32_t before =
                            __popc(here & ((1u << lane) - 1)) + total;
                    queue[before] = kShared ? at << 16 | place : place;
                }
                total += __popc(here);
            }
            __syncwarp();
            const auto score = [&]<int kPairs>(uint32_t first) {
                const float4* from[kPairs];
                uint32_t at[kPairs];
                uint32_t column[kPairs];
                double exact[kPairs];
#pragma unroll
                for (int p = 0; p < kPairs; ++p) {
                    const uint32_t i = first + p * kGroups + group;
                    const uint32_t its = queue[min(i, total - 1)];
                    const uint32_t place = kShared ? its & 0xffff : its;
                    at[p] = kShared ? its >> 16 : i;
                    column[p] =
                            kShared ? place * params.parts + part : place;
                    from[p] = rows + size_t(place) * Query::kRowPacks +
                            lane % kPairLanes;
                }
                query.distances(from, search.power, exact);
#pragma unroll
                for (int p = 0; p < kPairs; ++p) {
                    if (first + p * kGroups + group < total &&
                        lane % kPairLanes == 0) {
                        entries[base + at[p]] =
                                distanceEntry<kMetric>(exact[p], column[p]);
                    }
                }
            };
            uint32_t first = 0;
            for (; first + kGroups < total; first += 2 * kGroups) {
                score.template operator()<2>(first);
            }
            if (first < total) {
                score.template operator()<1>(first);
            }
            __syncwarp();
        }
        list = next;
    }
}

template <Metric kMetric, int kSteps>
void launch(
        const ScoreSlotsParams& params,
        bool isShared,
        const DeviceTraits& device,
        cudaStream_t stream) {
    const CertifiedParams& search = params.passed.search;
    // As that of lists that blocks score (FusedLaunch.cuh).
    constexpr double kMuch = 0x1p28;
    const bool isLong = double(search.rows) * search.k * search.d >= kMuch;
    if (isShared) {
        const size_t bytes = size_t((search.n + params.parts - 1) /
                                    params.parts) *
                kSteps * kSlotStep * sizeof(float);
        const auto kernel = scoreSlotsKernel<kMetric, kSteps, true>;
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
            scoreSlotsKernel<kMetric, kSteps, false>,
            std::min(
                    (search.rows + kWarps - 1) / kWarps,
                    unsigned(kMemoryBlocks<kMetric> * device.multiprocessors)),
            kMemoryThreads,
            0,
            stream,
            params,
            !isLong);
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

void launchSlotRows(
        const VectorsParams& vectors,
        int64_t n,
        int d,
        float* rows,
        cudaStream_t stream) {
    const int rowPacks = slotSteps(d) * kPairLanes;
    const int64_t packs = n * rowPacks;
    constexpr int64_t kMostBlocks = 16384;
    const unsigned blocks = unsigned(std::min<int64_t>(
            (packs + kCopyThreads - 1) / kCopyThreads, kMostBlocks));
    const auto launchFor = [&]<class T>(const T* data) {
        slotRowsKernel<<<blocks, kCopyThreads, 0, stream>>>(
                data,
                vectors.rowStride,
                vectors.columnStride,
                packs,
                d,
                rowPacks,
                reinterpret_cast<float4*>(rows));
        BITS_CUDA_CHECK(cudaGetLastError());
    };
    switch (vectors.type) {
        case DataType::Float32:
            return launchFor(static_cast<const float*>(vectors.data));
        case DataType::Float16:
            return launchFor(static_cast<const __half*>(vectors.data));
        case DataType::BFloat16:
            return launchFor(static_cast<const __nv_bfloat16*>(vectors.data));
    }
}

uint32_t slotParts(int64_t n, int d, const DeviceTraits& device) {
    if (slotSteps(d) == 0 || device.blockSharedBytes <= kQueueBytes) {
        return 0;
    }
    const int64_t fit = int64_t(
            (device.blockSharedBytes - kQueueBytes) /
            (slotSteps(d) * kSlotStep * sizeof(float)));
    if (fit == 0) {
        return 0;
    }
    const int64_t parts = (n + fit - 1) / fit;
    return parts <= kMostParts && parts <= device.multiprocessors
            ? uint32_t(parts)
            : 0;
}

void launchScoreSlots(
        Metric metric,
        const PassedParams& passed,
        const float* slotRows,
        SlotPlace place,
        const DeviceTraits& device,
        cudaStream_t stream) {
    const CertifiedParams& search = passed.search;
    ScoreSlotsParams params;
    params.passed = passed;
    params.slotRows = reinterpret_cast<const float4*>(slotRows);
    const uint32_t parts = place == SlotPlace::Memory
            ? 0
            : slotParts(search.n, search.d, device);
    BITS_THROW_IF_NOT_FMT(
            place != SlotPlace::Shared || parts > 0,
            "n = %lld vectors do not fit shared memory",
            (long long)search.n);
    BITS_THROW_IF_NOT_FMT(
            search.listedIds == nullptr, "listedIds = %p", search.listedIds);
    const bool isShared = parts > 0 &&
            (place == SlotPlace::Shared || search.rows >= kLeastSharedLists);
    if (isShared) {
        params.parts = parts;
        params.inverse =
                uint32_t(((uint64_t(1) << 32) + parts - 1) / parts);
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

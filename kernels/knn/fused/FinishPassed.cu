/// Lists of what passed to results, a warp each. Eight lanes compute the
/// distances of a pair of vectors at a time, unless another kernel did
/// (ScoreSlots.h, which finishes those of small k by itself); 32 entries are
/// sorted, an entry a lane, and merged into the best of the list.
///
/// Bound by: reads of 4 d bytes an entry from L2 (vectors from memory come
/// faster to more threads a list); without them by the sorts.
#include "kernels/knn/fused/FinishPassed.h"

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Error.h"
#include "kernels/knn/certified/CanonicalPairs.cuh"
#include "kernels/knn/fused/PassedResults.cuh"
#include "kernels/knn/fused/ScoreSlots.h"

namespace faiss_bits {

namespace {

/// Entries of a list that a warp finishes alone.
template <bool kScored>
constexpr uint32_t kMostWarpEntries = kScored ? 1024 : 256;
constexpr int kWarpThreads = 128;
constexpr int kLongThreads = 256;
/// Blocks a multiprocessor, at least; those that look for longer lists are no
/// more.
template <Metric kMetric, int kRows, bool kScored>
constexpr int kShortBlocks = kScored              ? 12
        : kRows == 4                              ? 5
        : kRows == 2 || kMetric == Metric::Cosine ? 6
                                                  : 8;
constexpr int kLongBlocks = 3;

/// Pairs that eight lanes compute at a time.
constexpr int kPairs = 2;

/// Entries of a row's list. Of a list that more passed than it has room for:
/// none, as the row is not proved whatever they are.
__device__ __forceinline__ uint32_t
entriesOf(const FinishPassedParams& params, uint32_t row) {
    const uint32_t count = params.passed.counts[row];
    return count <= uint32_t(params.passed.search.numCandidates) ? count : 0;
}

/// kScored: the entries are in memory.
template <Metric kMetric, int kRows, bool kScored>
struct PassedRow {
    const FinishPassedParams& params;
    const uint32_t row;
    const uint32_t count; // entriesOf()
    WarpList<kRows> list;

    __device__ __forceinline__
    PassedRow(const FinishPassedParams& p, uint32_t r)
            : params(p), row(r), count(entriesOf(p, r)) {}

    /// The entries first, .. first + 31, and those from every further `step`
    /// on.
    __device__ __forceinline__ void score(uint32_t first, uint32_t step) {
        for (uint32_t base = first; base < count; base += step) {
            if constexpr (kScored) {
                list.add(scoredEntry(base + threadIdx.x % kWarpSize));
            } else {
                const VectorsParams& vectors = params.passed.search.vectors;
                withVectors(vectors, [&](const auto* data) {
                    list.add(entries(data, base));
                });
            }
        }
    }

    /// The results, and whether none is missing.
    __device__ __forceinline__ void write() const {
        writePassed<kMetric>(
                params.passed.search,
                row,
                list,
                params.complete[row],
                params.passed.counts[row] <= count);
    }

   private:
    __device__ __forceinline__ uint64_t scoredEntry(uint32_t place) const {
        const CertifiedParams& search = params.passed.search;
        return place < count
                ? search.entries[int64_t(row) * search.numCandidates + place]
                : kNoEntry;
    }

    /// That of place base + lane; kNoEntry behind the last one.
    template <class T>
    __device__ __forceinline__ uint64_t
    entries(const T* data, uint32_t base) const {
        constexpr int kGroups = kWarpSize / kPairLanes;
        constexpr int kTogether = kGroups * kPairs;
        const CertifiedParams& search = params.passed.search;
        const int lane = threadIdx.x % kWarpSize;
        const int here = int(min(count - base, uint32_t(kWarpSize)));
        int32_t column = search.columns
                                 [int64_t(row) * search.numCandidates + base +
                                  min(lane, here - 1)];
        if (search.listedIds) {
            column = search.listedIds[column]; // -1: an empty place
        }
        float distance = 0; // of the entry of this lane
        for (int i = 0; i < here; i += kTogether) {
            const T* x[kPairs];
            double exact[kPairs];
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                const int32_t its = __shfl_sync(
                        kFullWarp, column, i + p * kGroups + lane / kPairLanes);
                x[p] = data + int64_t(max(its, 0)) * search.vectors.rowStride;
            }
            pairDistances<kMetric>(
                    x,
                    search.vectors.columnStride,
                    search.queries + int64_t(row) * search.d,
                    search.d,
                    search.power,
                    exact);
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                const float mine = __shfl_sync(
                        kFullWarp,
                        canonical::toFloat32(exact[p]),
                        lane % kGroups * kPairLanes);
                const bool isMine = lane / kGroups == i / kGroups + p;
                distance = isMine ? mine : distance;
            }
        }
        return lane < here && column >= 0
                ? distanceEntry<kMetric>(distance, uint32_t(column))
                : kNoEntry;
    }
};

/// A warp a row; longer lists are left.
template <Metric kMetric, int kRows, bool kScored, int kMin>
__global__ __launch_bounds__(kWarpThreads, kMin) void finishShortKernel(
        const __grid_constant__ FinishPassedParams params) {
    constexpr int kWarps = kWarpThreads / kWarpSize;
    __shared__ uint32_t scored[kWarps];
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.passed.search;
    const uint32_t warp = threadIdx.x / kWarpSize;
    const uint32_t row = blockIdx.x * kWarps + warp;
    const uint32_t count = row < search.rows ? entriesOf(params, row) : 0;
    const bool isShort =
            row < search.rows && count <= kMostWarpEntries<kScored>;
    if (search.numRescored) { // one atomic a block: all go to one place
        if (threadIdx.x % kWarpSize == 0) {
            scored[warp] = isShort ? count : 0;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned long long sum = 0;
            for (uint32_t s : scored) {
                sum += s;
            }
            atomicAdd(search.numRescored, sum);
        }
    }
    if (isShort) {
        PassedRow<kMetric, kRows, kScored> passed(params, row);
        passed.score(0, kWarpSize);
        passed.write();
    }
}

/// A block a row of those that are left.
template <Metric kMetric, int kRows, bool kScored>
__global__ __launch_bounds__(kLongThreads, kLongBlocks) void finishLongKernel(
        const __grid_constant__ FinishPassedParams params) {
    constexpr int kWarps = kLongThreads / kWarpSize;
    __shared__ uint64_t lists[kWarps][kRows][kWarpSize];
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.passed.search;
    const uint32_t warp = threadIdx.x / kWarpSize;
    const uint32_t lane = threadIdx.x % kWarpSize;
    for (uint32_t base = blockIdx.x; base < search.rows;
         base += gridDim.x * kWarpSize) {
        // The same in every warp.
        const uint32_t own = base + lane * gridDim.x;
        unsigned left = __ballot_sync(
                kFullWarp,
                own < search.rows &&
                        entriesOf(params, own) > kMostWarpEntries<kScored>);
        for (; left != 0; left &= left - 1) {
            PassedRow<kMetric, kRows, kScored> passed(
                    params, base + (__ffs(int(left)) - 1) * gridDim.x);
            passed.score(warp * kWarpSize, kLongThreads);
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                lists[warp][r][lane] = passed.list.item(r);
            }
            __syncthreads();
            if (warp == 0) {
                for (int w = 1; w < kWarps; ++w) {
                    for (int r = 0; r < kRows; ++r) {
                        passed.list.addSorted(lists[w][r][lane]);
                    }
                }
                passed.write();
                if (search.numRescored && lane == 0) {
                    atomicAdd(
                            search.numRescored,
                            (unsigned long long)passed.count);
                }
            }
            __syncthreads();
        }
    }
}

template <Metric kMetric, int kRows, bool kScored>
void launch(
        const FinishPassedParams& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    constexpr unsigned kWarps = kWarpThreads / kWarpSize;
    const CertifiedParams& search = params.passed.search;
    // As that of the distances alone (FusedLaunch.cuh).
    constexpr double kMuch = 0x1p28;
    const bool isLong =
            !kScored && double(search.rows) * search.k * search.d >= kMuch;
    launchAfterPrevious(
            finishShortKernel<
                    kMetric,
                    kRows,
                    kScored,
                    kShortBlocks<kMetric, kRows, kScored>>,
            (search.rows + kWarps - 1) / kWarps,
            kWarpThreads,
            0,
            stream,
            params,
            !isLong);
    if (uint32_t(search.numCandidates) <= kMostWarpEntries<kScored>) {
        return; // no list is longer
    }
    launchAfterPrevious(
            finishLongKernel<kMetric, kRows, kScored>,
            std::min(
                    search.rows,
                    unsigned(kLongBlocks * device.multiprocessors)),
            kLongThreads,
            0,
            stream,
            params);
}

template <Metric kMetric, bool kScored>
void launchByK(
        const FinishPassedParams& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    const int k = params.passed.search.k;
    static_assert(kMostWarpK == 4 * kWarpSize);
    if constexpr (!kScored) {
        if (k <= kMostSlotK) {
            return launch<kMetric, 1, false>(params, device, stream);
        }
    }
    const auto one =
            k <= 64 ? launch<kMetric, 2, kScored> : launch<kMetric, 4, kScored>;
    one(params, device, stream);
}

template <Metric kMetric>
void launchAll(
        const FinishPassedParams& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    if (!params.slotRows) {
        return launchByK<kMetric, false>(params, device, stream);
    }
    const ScoreSlotsParams scores{
            params.passed,
            params.words,
            reinterpret_cast<const float4*>(params.slotRows),
            params.complete};
    launchScoreSlots(kMetric, scores, device, stream);
    if (params.passed.search.k > kMostSlotK) {
        launchByK<kMetric, true>(params, device, stream);
    }
}

} // namespace

void launchFinishPassed(
        Metric metric,
        const FinishPassedParams& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    switch (metric) {
        case Metric::L2:
            return launchAll<Metric::L2>(params, device, stream);
        case Metric::InnerProduct:
            return launchAll<Metric::InnerProduct>(params, device, stream);
        case Metric::Cosine:
            return launchAll<Metric::Cosine>(params, device, stream);
        default:
            throw Error(formatMessage(
                    "metric = %d has no lists that warps finish", int(metric)));
    }
}

} // namespace faiss_bits

/// The k best of each row of a matrix of distances, a warp a row: its keys are
/// in registers, those up to the k-th are gathered and sorted.
///
/// Bound by: instructions; 4 n bytes a row come from L2.
#include "kernels/knn/all_pairs/AllPairsResults.h"

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Error.h"
#include "kernels/device/LaneMask.cuh"
#include "kernels/device/RankedKey.cuh"
#include "kernels/device/SortFew.cuh"
#include "kernels/device/WarpList.cuh"
#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr uint32_t kWarps = kThreads / kWarpSize;
constexpr int kPack = 4; // values of a load
static_assert(kMostWarpResults == kWarpSize);

/// Value i of a lane is that of column columnOf(i).
__device__ __forceinline__ uint32_t columnOf(int i) {
    return (i / kPack * kWarpSize + threadIdx.x % kWarpSize) * kPack +
            i % kPack;
}

/// kItems: values of a lane.
template <Metric kMetric, int kItems>
__global__ __launch_bounds__(kThreads) void allPairsResultsKernel(
        const __grid_constant__ AllPairsParams params) {
    constexpr uint32_t kNone = ~0u;
    __shared__ uint64_t gathered[kWarps][SortFew::kMost];
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const uint32_t lane = threadIdx.x % kWarpSize;
    const uint32_t warp = threadIdx.x / kWarpSize;
    const uint32_t n = uint32_t(search.n);
    const uint32_t step = gridDim.x * kWarps;
    uint64_t* const own = gathered[warp];

    float4 packs[kItems / kPack];
    // Rows are padded to whole packs.
    const auto read = [&](uint32_t row) {
        const float* const values =
                params.distances + int64_t(row) * params.stride;
#pragma unroll
        for (int j = 0; j < kItems / kPack; ++j) {
            const uint32_t column = columnOf(j * kPack);
            if (row < search.rows && column < n) {
                packs[j] = *reinterpret_cast<const float4*>(values + column);
            }
        }
    };
    uint32_t row = blockIdx.x * kWarps + warp;
    read(row);
    for (; row < search.rows; row += step) {
        uint32_t keys[kItems];
        uint32_t least = kNone;
        uint32_t most = 0;
        uint32_t count = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const float4& pack = packs[i / kPack];
            const float value = i % kPack == 0 ? pack.x
                    : i % kPack == 1           ? pack.y
                    : i % kPack == 2           ? pack.z
                                               : pack.w;
            const bool isOne = columnOf(i) < n && value == value;
            keys[i] = isOne
                    ? orderedKey(kIsSimilarity<kMetric> ? 0.0f - value : value)
                    : kNone;
            least = min(least, keys[i]);
            most = isOne ? max(most, keys[i]) : most;
            count += isOne;
        }
        read(row + step); // early
        count = __reduce_add_sync(kFullWarp, count);
        WarpList<1> list;
        if (count > 0) {
            least = __reduce_min_sync(kFullWarp, least);
            most = __reduce_max_sync(kFullWarp, most);
            const uint32_t rank = min(uint32_t(search.k), count);
            const uint32_t last = rank == 1
                    ? least
                    : rankedOf(keys, rank, least, most, count);
            uint32_t fill = 0;
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                const bool isIn = keys[i] <= last;
                const unsigned lanes = __ballot_sync(kFullWarp, isIn);
                const uint32_t place = fill + __popc(lanes & lanesBefore());
                if (isIn && place < SortFew::kMost) {
                    own[place] = makeEntry(keys[i], columnOf(i));
                }
                fill += __popc(lanes);
            }
            __syncwarp();
            const uint64_t low = lane < fill ? own[lane] : kNoEntry;
            uint64_t sorted;
            if (fill <= kWarpSize && SortFew::run(low, sorted)) {
                list.assignSorted(sorted);
            } else if (fill <= SortFew::kMost) {
                list.add(low);
                list.add(
                        lane + kWarpSize < fill ? own[lane + kWarpSize]
                                                : kNoEntry);
            } else {
#pragma unroll
                for (int i = 0; i < kItems; ++i) {
                    list.add(
                            keys[i] <= last ? makeEntry(keys[i], columnOf(i))
                                            : kNoEntry);
                }
            }
            __syncwarp();
        }
        if (int(lane) < search.k) {
            writePlace<kMetric>(search, row, int(lane), list.item(0));
        }
    }
}

template <Metric kMetric>
void launch(
        const AllPairsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    const int64_t n = params.search.n;
    const auto kernel = n <= 128 ? allPairsResultsKernel<kMetric, 4>
            : n <= 256           ? allPairsResultsKernel<kMetric, 8>
            : n <= 512           ? allPairsResultsKernel<kMetric, 16>
                                 : allPairsResultsKernel<kMetric, 32>;
    static_assert(kMostWarpVectors == 32 * kWarpSize);
    constexpr unsigned kBlocks = 8; // a multiprocessor
    launchAfterPrevious(
            kernel,
            std::min(
                    (params.search.rows + kWarps - 1) / kWarps,
                    kBlocks * multiprocessors),
            kThreads,
            0,
            stream,
            params);
}

} // namespace

void launchAllPairsResults(
        Metric metric,
        const AllPairsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    const CertifiedParams& search = params.search;
    BITS_THROW_IF_NOT_FMT(
            search.n >= 0 && search.n <= kMostWarpVectors,
            "n = %lld is outside 0..%lld",
            (long long)search.n,
            (long long)kMostWarpVectors);
    BITS_THROW_IF_NOT_FMT(
            search.k >= 1 && search.k <= kMostWarpResults,
            "k = %d is outside 1..%d",
            search.k,
            kMostWarpResults);
    // Only whether the largest are best matters.
    if (isSimilarity(metric)) {
        launch<Metric::InnerProduct>(params, multiprocessors, stream);
    } else {
        launch<Metric::L2>(params, multiprocessors, stream);
    }
}

} // namespace faiss_bits

// Ranges in few dimensions without lists: one kernel, and nothing in between is
// written.
//
// Bound by: with few queries the launch and reading what is looked at; with
// many some 8 instructions for each pair of 32 vectors and a query.

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DependentLaunch.h"
#include "kernels/metric_space/gpu/GroupWarps.cuh"

namespace faiss_bits::metric_space {

namespace {

/// A larger group is shared by several warps; of up to 32 queries at
/// kMetVectors.
constexpr uint32_t kWarpVectors = 256;
/// Blocks for a multiprocessor, of all words of queries.
constexpr uint32_t kBlocks = 16;
/// Those that it has at once.
constexpr uint32_t kBlocksAtOnce = 3;

template <Metric kMetric, GroupBounds kKind, int kDims, bool kToBits>
__global__ void __launch_bounds__(kGroupThreads, kBlocksAtOnce)
        groupWarpsKernel(const __grid_constant__ WarpParams params) {
    using Warps = GroupWarps<kMetric, kKind, kDims, kToBits>;
    allowNext();
    __shared__ typename Warps::SharedStorage shared;
    Warps(shared, params).run();
}

template <Metric kMetric, GroupBounds kKind, int kDims>
void launch(const WarpParams& params, dim3 blocks, cudaStream_t stream) {
    if (params.search.found.bits) {
        groupWarpsKernel<kMetric, kKind, kDims, true>
                <<<blocks, kGroupThreads, 0, stream>>>(params);
    } else {
        groupWarpsKernel<kMetric, kKind, kDims, false>
                <<<blocks, kGroupThreads, 0, stream>>>(params);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

/// Warps of a group, and groups that one asks for at once: the more of them the
/// fewer instructions, where there are warps enough.
void divide(WarpParams& params, uint32_t multiprocessors) {
    const MetricGroups& groups = params.search.groups;
    const uint32_t words = params.search.words;
    const uint64_t size = std::min<uint64_t>(groups.groupSize, groups.n);
    const uint32_t ofWarp = words == 1 ? kMetVectors : kWarpVectors;
    params.parts =
            std::max<uint32_t>(1, uint32_t((size + ofWarp - 1) / ofWarp));
    const uint64_t enough =
            uint64_t(multiprocessors) * kBlocksAtOnce * kGroupWarps * 4;
    params.spanBits = 0;
    while (params.spanBits < 5 &&
           (groups.numGroups >> (params.spanBits + 1)) *
                           uint64_t(params.parts) * words >=
                   enough) {
        ++params.spanBits;
    }
}

} // namespace

void launchGroupWarps(
        const SearchParams& p,
        float limit,
        int multiprocessors,
        cudaStream_t stream) {
    const MetricGroups& groups = p.groups;
    WarpParams params;
    params.search = p;
    params.limit = RoughLimit(limit);
    params.reach = canonical::reachOf(groups.metric, limit);
    if (groups.numGroups == 0 || p.rows == 0 || params.reach < 0) {
        return;
    }
    divide(params, uint32_t(multiprocessors));
    const uint64_t tiles = ((groups.numGroups - 1) >> params.spanBits) + 1;
    const uint64_t warps = tiles * params.parts;
    const uint64_t most =
            std::max(1u, uint32_t(multiprocessors) * kBlocks / p.words);
    const dim3 blocks(
            unsigned(std::min((warps + kGroupWarps - 1) / kGroupWarps, most)),
            p.words);
    withMetric(groups.metric, [&](auto metric) {
        constexpr Metric kMetric = metric();
        withFewDims(groups.d, [&](auto dims) {
            constexpr int kDims = dims();
            if (groups.kind == GroupBounds::Centers) {
                launch<kMetric, GroupBounds::Centers, kDims>(
                        params, blocks, stream);
            } else {
                launch<kMetric, GroupBounds::Pivots, kDims>(
                        params, blocks, stream);
            }
        });
    });
}

} // namespace faiss_bits::metric_space

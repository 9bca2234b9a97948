// The queries of every group, and the tiles that they make.

#include <cub/device/device_scan.cuh>

#include "kernels/common/CudaCheck.h"
#include "kernels/device/LaneMask.cuh"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/metric_space/gpu/SearchParams.h"

namespace faiss_bits::metric_space {

namespace {

constexpr int kThreads = 256;
constexpr uint32_t kGroupsOfBlock = kThreads / kWarpSize;

/// A warp a group: how many queries and tiles it has. The one behind the last
/// group has none.
__global__ void __launch_bounds__(kThreads) listSizesKernel(
        SearchParams p,
        uint32_t tileQueries,
        uint32_t tileVectors) {
    const uint32_t group =
            blockIdx.x * kGroupsOfBlock + threadIdx.x / kWarpSize;
    if (group > p.groups.numGroups) {
        return;
    }
    uint32_t count = 0;
    uint32_t vectors = 0;
    if (group < p.groups.numGroups) {
        const uint32_t* bits = p.bits + size_t(group) * p.words;
        for (uint32_t w = threadIdx.x % kWarpSize; w < p.words;
             w += kWarpSize) {
            count += __popc(bits[w]);
        }
        count = __reduce_add_sync(kFullWarp, count);
        vectors = p.groups.firsts[group + 1] - p.groups.firsts[group];
    }
    if (threadIdx.x % kWarpSize == 0) {
        if (count > 0) {
            atomicAdd(p.listedPairs, (unsigned long long)count * vectors);
        }
        p.listFirsts[group] = count;
        p.tileFirsts[group] = (count + tileQueries - 1) / tileQueries *
                ((vectors + tileVectors - 1) / tileVectors);
    }
}

/// A warp a group.
__global__ void __launch_bounds__(kThreads) fillListsKernel(SearchParams p) {
    const uint32_t group =
            blockIdx.x * kGroupsOfBlock + threadIdx.x / kWarpSize;
    if (group >= p.groups.numGroups) {
        return;
    }
    const int lane = threadIdx.x % kWarpSize;
    const uint32_t* bits = p.bits + size_t(group) * p.words;
    uint32_t to = p.listFirsts[group];
    if (to < p.listFirsts[group + 1]) {
        for (uint32_t w = 0; w < p.words; ++w) {
            const uint32_t word = bits[w];
            if (word >> lane & 1) {
                p.lists[to + __popc(word & lanesBefore())] =
                        w * kWarpSize + lane;
            }
            to += __popc(word);
        }
    }
    const uint32_t first = p.tileFirsts[group];
    const uint32_t count = p.tileFirsts[group + 1] - first;
    for (uint32_t t = lane; t < count; t += kWarpSize) {
        p.tiles[first + t] = make_uint2(group, t);
    }
}

} // namespace

size_t listsTempBytes(uint32_t numGroups) {
    size_t bytes = 0;
    BITS_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(
            nullptr,
            bytes,
            static_cast<uint32_t*>(nullptr),
            static_cast<uint32_t*>(nullptr),
            int(numGroups + 1)));
    return bytes;
}

void launchLists(const SearchParams& p, cudaStream_t stream) {
    const uint32_t numGroups = p.groups.numGroups;
    BITS_CUDA_CHECK(
            cudaMemsetAsync(p.listedPairs, 0, sizeof(*p.listedPairs), stream));
    listSizesKernel<<<numGroups / kGroupsOfBlock + 1, kThreads, 0, stream>>>(
            p, scanQueries(p.groups.metric), scanVectors(p.groups.metric));
    BITS_CUDA_CHECK(cudaGetLastError());
    for (uint32_t* firsts : {p.listFirsts, p.tileFirsts}) {
        size_t bytes = p.tempBytes;
        BITS_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(
                p.temp, bytes, firsts, firsts, int(numGroups + 1), stream));
    }
    fillListsKernel<<<
            (numGroups + kGroupsOfBlock - 1) / kGroupsOfBlock,
            kThreads,
            0,
            stream>>>(p);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits::metric_space

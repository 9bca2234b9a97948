#include "faiss_bits/dropin/ListLengths.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::dropin {

namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 32;
constexpr unsigned kAllLanes = 0xffffffff;
constexpr idx_t kMostBlocks = 256;

using Count = unsigned long long;

/// As they lie on the device, and in the memory that is copied back.
struct Found {
    Count mostProbed;
    Count longest;
    Count total;
};

__device__ Count sumOfWarp(Count value) {
    for (int step = kLanes / 2; step > 0; step /= 2) {
        value += __shfl_xor_sync(kAllLanes, value, step);
    }
    return value;
}

__device__ Count maxOfWarp(Count value) {
    for (int step = kLanes / 2; step > 0; step /= 2) {
        value = max(value, __shfl_xor_sync(kAllLanes, value, step));
    }
    return value;
}

/// A warp takes a query at a time, and then its part of the lists. A length
/// below zero, which no FAISS writes, counts as more than any.
template <class Length>
__global__ void __launch_bounds__(kThreads) listLengthsKernel(
        const Length* lengths,
        idx_t numLists,
        const idx_t* probes,
        idx_t numQueries,
        int nprobe,
        Found* found) {
    const int lane = threadIdx.x % kLanes;
    const idx_t thread = idx_t(blockIdx.x) * kThreads + threadIdx.x;
    const idx_t threads = idx_t(gridDim.x) * kThreads;
    Count most = 0;
    for (idx_t query = thread / kLanes; query < numQueries;
         query += threads / kLanes) {
        Count sum = 0;
        for (int probe = lane; probe < nprobe; probe += kLanes) {
            const idx_t list = probes[query * nprobe + probe];
            if (list >= 0 && list < numLists) {
                sum += Count(lengths[list]);
            }
        }
        most = max(most, sumOfWarp(sum));
    }
    Count longest = 0;
    Count total = 0;
    for (idx_t list = thread; list < numLists; list += threads) {
        longest = max(longest, Count(lengths[list]));
        total += Count(lengths[list]);
    }
    longest = maxOfWarp(longest);
    total = sumOfWarp(total);
    if (lane == 0) {
        if (most > 0) {
            atomicMax(&found->mostProbed, most);
        }
        if (longest > 0) {
            atomicMax(&found->longest, longest);
            atomicAdd(&found->total, total);
        }
    }
}

template <class Length>
void launch(
        const IvfLists& lists,
        const idx_t* probes,
        idx_t numQueries,
        int nprobe,
        Found* found,
        cudaStream_t stream) {
    const idx_t threads = std::max(numQueries * kLanes, lists.numLists);
    const idx_t blocks =
            std::min((threads + kThreads - 1) / kThreads, kMostBlocks);
    listLengthsKernel<<<unsigned(blocks), kThreads, 0, stream>>>(
            static_cast<const Length*>(lists.lengths),
            lists.numLists,
            probes,
            numQueries,
            nprobe,
            found);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace

ListLengths findListLengths(
        const IvfLists& lists,
        const idx_t* probes,
        idx_t numQueries,
        int nprobe,
        const Device& device,
        cudaStream_t stream) {
    const Scratch scratch(device, sizeof(Found), stream);
    auto* onDevice = static_cast<Found*>(scratch.data());
    BITS_CUDA_CHECK(cudaMemsetAsync(onDevice, 0, sizeof(Found), stream));
    lists.lengths64
            ? launch<int64_t>(
                      lists, probes, numQueries, nprobe, onDevice, stream)
            : launch<int32_t>(
                      lists, probes, numQueries, nprobe, onDevice, stream);
    Found found;
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            &found, onDevice, sizeof(Found), cudaMemcpyDeviceToHost, stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    ListLengths lengths;
    lengths.mostProbed = idx_t(found.mostProbed);
    lengths.longest = idx_t(found.longest);
    lengths.total = idx_t(found.total);
    return lengths;
}

} // namespace faiss_bits::dropin

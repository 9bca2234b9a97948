#include "kernels/ivf/IvfSelectedCopy.h"

#include <algorithm>

#include <cub/device/device_scan.cuh>

#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfFilterBits.h"
#include "kernels/ivf/ListWords.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr idx_t kMaxBlocks = 1 << 16; // the kernels stride over the rest

unsigned blocksFor(idx_t threads) {
    return unsigned(std::clamp<idx_t>(
            (threads + kThreads - 1) / kThreads, 1, kMaxBlocks));
}

/// Set bits of each word; none behind the last list.
__global__ __launch_bounds__(kThreads) void countWordsKernel(
        const __grid_constant__ IvfLists lists,
        idx_t words,
        uint32_t* counts) {
    const uint32_t numWords = firstWordOf(lists, uint32_t(lists.numLists));
    for (idx_t w = idx_t(blockIdx.x) * kThreads + threadIdx.x; w <= words;
         w += idx_t(gridDim.x) * kThreads) {
        counts[w] = w < numWords ? __popc(lists.selectedBits[w]) : 0;
    }
}

__global__ __launch_bounds__(kThreads) void beforeListsKernel(
        const __grid_constant__ IvfLists lists,
        const uint32_t* beforeWords,
        uint32_t* beforeLists) {
    for (idx_t l = idx_t(blockIdx.x) * kThreads + threadIdx.x;
         l <= lists.numLists;
         l += idx_t(gridDim.x) * kThreads) {
        beforeLists[l] = beforeWords[firstWordOf(lists, uint32_t(l))];
    }
}

__global__ __launch_bounds__(kThreads) void copiedListsKernel(
        const __grid_constant__ IvfSelectedCopy copy,
        const uint32_t* beforeLists) {
    for (idx_t l = idx_t(blockIdx.x) * kThreads + threadIdx.x;
         l < copy.lists.numLists;
         l += idx_t(gridDim.x) * kThreads) {
        const int64_t first = beforeLists[l];
        copy.listVectors[l] = copy.vectors + first * copy.lists.d;
        copy.listIds[l] = copy.ids + first;
        copy.lengths[l] = beforeLists[l + 1] - first;
    }
}

/// A warp copies the vectors of a word one after another.
template <ListLayout kLayout>
__global__ __launch_bounds__(kThreads) void copyVectorsKernel(
        const __grid_constant__ IvfLists lists,
        idx_t words,
        const uint32_t* beforeWords,
        const __grid_constant__ IvfSelectedCopy copy) {
    const int lane = threadIdx.x % kWarpSize;
    forWords(
            lists,
            0,
            words,
            [&](uint64_t word, uint32_t list, uint32_t vector, bool isThere) {
                uint32_t left = isThere ? lists.selectedBits[word] : 0;
                left = __shfl_sync(kFullWarp, left, 0);
                const uint32_t first = vector - lane;
                const auto* from =
                        static_cast<const float*>(lists.vectors[list]);
                int64_t to = left ? beforeWords[word] : 0;
                for (; left != 0; left &= left - 1, ++to) {
                    const uint32_t v = first + __ffs(left) - 1;
                    for (int c = lane; c < lists.d; c += kWarpSize) {
                        copy.vectors[to * lists.d + c] =
                                from[listPlace<kLayout>(v, c, lists.d)];
                    }
                    if (lane == 0) {
                        copy.ids[to] = listId(lists, list, v);
                    }
                }
            });
}

double pairsOf(const IvfKnnProblem& p) {
    return double(p.numQueries) * p.nprobe * double(p.lists.numVectors) /
            double(p.lists.numLists);
}

/// Seconds that a search takes for a component of a pair.
double secondsAComponent(const IvfKnnProblem& p) {
    return ivfPairsMeet(p) ? 0.05e-12 : 0.9e-12;
}

/// Vectors and sums over them are counted in 32 bits.
constexpr idx_t kMostCounted = (idx_t(1) << 32) - 1;

} // namespace

bool countingSelectedPays(const IvfKnnProblem& p) {
    constexpr double kLeastSeconds = 600e-6;
    return p.lists.coding == ListCoding::Float32 && p.mayWait &&
            p.lists.numVectors <= kMostCounted &&
            (ivfPairsMeet(p) ||
             pairsOf(p) * p.lists.d * secondsAComponent(p) > kLeastSeconds);
}

bool copyingSelectedPays(const IvfKnnProblem& p, idx_t numSelected) {
    constexpr double kBytesASecond = 2.25e12; // sectors of 32 bytes
    constexpr double kLaunches = 15e-6;
    const double n = double(std::max<idx_t>(p.lists.numVectors, 1));
    const double selected = double(numSelected);
    const double saved =
            pairsOf(p) * (1 - selected / n) * p.lists.d * secondsAComponent(p);
    const double moved = 4.0 * p.lists.d *
            (selected + std::min(n, 8 * selected)) / kBytesASecond;
    return saved > 2 * (kLaunches + moved);
}

IvfSelectedCount::IvfSelectedCount(
        const IvfLists& lists,
        WorkspaceSlices& slices) {
    const idx_t words = ivfFilterWords(lists);
    beforeWords = slices.take<uint32_t>(size_t(words) + 1);
    beforeLists = slices.take<uint32_t>(size_t(lists.numLists) + 1);
    BITS_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(
            nullptr,
            scan.bytes,
            static_cast<uint32_t*>(nullptr),
            static_cast<uint32_t*>(nullptr),
            words + 1));
    scan.data = slices.take<uint8_t>(scan.bytes);
}

void runIvfCountSelected(
        const IvfLists& lists,
        const IvfSelectedCount& count,
        cudaStream_t stream) {
    const idx_t words = ivfFilterWords(lists);
    countWordsKernel<<<blocksFor(words + 1), kThreads, 0, stream>>>(
            lists, words, count.beforeWords);
    BITS_CUDA_CHECK(cudaGetLastError());
    size_t bytes = count.scan.bytes;
    BITS_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(
            count.scan.data,
            bytes,
            count.beforeWords,
            count.beforeWords,
            words + 1,
            stream));
    beforeListsKernel<<<blocksFor(lists.numLists + 1), kThreads, 0, stream>>>(
            lists, count.beforeWords, count.beforeLists);
    BITS_CUDA_CHECK(cudaGetLastError());
}

IvfSelectedCopy::IvfSelectedCopy(
        const IvfLists& all,
        idx_t numSelected,
        WorkspaceSlices& slices) {
    const size_t numLists = size_t(all.numLists);
    vectors = slices.take<float>(size_t(numSelected) * all.d);
    ids = slices.take<idx_t>(size_t(numSelected));
    listVectors = slices.take<const void*>(numLists);
    listIds = slices.take<const void*>(numLists);
    lengths = slices.take<int64_t>(numLists);
    lists = all;
    lists.numVectors = numSelected;
    lists.layout = ListLayout::Rows; // nothing is padded
    lists.vectors = listVectors;
    lists.lengths = lengths;
    lists.lengths64 = true;
    lists.idKind = ListIds::Given64;
    lists.ids = listIds;
    lists.selectedBits = nullptr;
    lists.firstWords = nullptr;
    lists.wordsOfList = 0;
}

void runIvfCopySelected(
        const IvfLists& all,
        const IvfSelectedCount& count,
        const IvfSelectedCopy& copy,
        cudaStream_t stream) {
    copiedListsKernel<<<blocksFor(all.numLists), kThreads, 0, stream>>>(
            copy, count.beforeLists);
    BITS_CUDA_CHECK(cudaGetLastError());
    const auto kernel = all.layout == ListLayout::Rows
            ? copyVectorsKernel<ListLayout::Rows>
            : copyVectorsKernel<ListLayout::Interleaved>;
    const idx_t words = ivfFilterWords(all);
    kernel<<<blocksForWords(words, kThreads), kThreads, 0, stream>>>(
            all, words, count.beforeWords, copy);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits

#include "kernels/ivf/IvfSelectedCopy.h"

#include <algorithm>
#include <cmath>

#include <cub/device/device_scan.cuh>

#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfFilterBits.h"
#include "kernels/ivf/ListWords.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr idx_t kMaxBlocks = 1 << 16; // the kernels stride over the rest
constexpr int kVectorsOfSector = 8;   // interleaved, one component of each
constexpr int kPart = 32;             // components that a lane has in flight

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

/// The first group of a list of the copy, interleaved: those before it need no
/// more, and sums over lists of groups are not needed.
__device__ __forceinline__ uint32_t
firstGroupOf(uint32_t list, const uint32_t* beforeLists) {
    return beforeLists[list] / kListGroup + list;
}

__global__ __launch_bounds__(kThreads) void copiedListsKernel(
        const __grid_constant__ IvfSelectedCopy copy,
        const uint32_t* beforeLists) {
    const bool isInterleaved = copy.lists.layout == ListLayout::Interleaved;
    for (idx_t l = idx_t(blockIdx.x) * kThreads + threadIdx.x;
         l < copy.lists.numLists;
         l += idx_t(gridDim.x) * kThreads) {
        const int64_t first = isInterleaved
                ? int64_t(firstGroupOf(uint32_t(l), beforeLists)) * kListGroup
                : beforeLists[l];
        copy.listVectors[l] = copy.vectors + first * copy.lists.d;
        copy.listIds[l] = copy.ids + first;
        copy.lengths[l] = beforeLists[l + 1] - beforeLists[l];
    }
}

/// The last of first to end - 1 of which isBefore, which is true of the first
/// and of no place behind one of which it is not.
template <class IsBefore>
__device__ __forceinline__ uint32_t
lastBefore(uint32_t first, uint32_t end, const IsBefore& isBefore) {
    while (end - first > 1) {
        const uint32_t middle = first + (end - first) / 2;
        (isBefore(middle) ? first : end) = middle;
    }
    return first;
}

/// A warp copies some components of 32 vectors that are side by side in the
/// copy, a lane those of one.
template <ListLayout kLayout>
__global__ __launch_bounds__(kThreads) void copyGroupsKernel(
        const __grid_constant__ IvfLists lists,
        const uint32_t* beforeWords,
        const uint32_t* beforeLists,
        const __grid_constant__ IvfSelectedCopy copy) {
    constexpr int kWarps = kThreads / kWarpSize;
    const int lane = threadIdx.x % kWarpSize;
    const idx_t parts = (lists.d + kPart - 1) / kPart;
    for (idx_t item = idx_t(blockIdx.x) * kWarps + threadIdx.x / kWarpSize;
         item < copy.numGroups * parts;
         item += idx_t(gridDim.x) * kWarps) {
        const auto group = uint32_t(item / parts);
        const int firstColumn = int(item % parts) * kPart;
        const uint32_t list =
                lastBefore(0, uint32_t(lists.numLists), [&](uint32_t l) {
                    return firstGroupOf(l, beforeLists) <= group;
                });
        const uint32_t before = beforeLists[list];
        const uint32_t length = beforeLists[list + 1] - before;
        const uint32_t ofList =
                (group - firstGroupOf(list, beforeLists)) * kListGroup;
        if (ofList >= length) {
            continue; // of a list that needs one less
        }
        const bool isThere = ofList + lane < length;
        uint32_t v = 0;
        if (isThere) {
            const uint32_t wanted = before + ofList + lane;
            const uint32_t firstWord = firstWordOf(lists, list);
            const uint32_t word = lastBefore(
                    firstWord, firstWordOf(lists, list + 1), [&](uint32_t w) {
                        return beforeWords[w] <= wanted;
                    });
            v = (word - firstWord) * kListGroup +
                    __fns(lists.selectedBits[word],
                          0,
                          int(wanted - beforeWords[word]) + 1);
            if (firstColumn == 0) {
                copy.ids[idx_t(group) * kListGroup + lane] =
                        listId(lists, list, v);
            }
        }
        const auto* from = static_cast<const float*>(lists.vectors[list]);
        float values[kPart];
#pragma unroll
        for (int i = 0; i < kPart; ++i) {
            const int c = firstColumn + i;
            values[i] = isThere && c < lists.d
                    ? from[listPlace<kLayout>(v, c, lists.d)]
                    : 0;
        }
        float* to = copy.vectors + idx_t(group) * kListGroup * lists.d + lane;
#pragma unroll
        for (int i = 0; i < kPart; ++i) {
            const int c = firstColumn + i;
            if (c < lists.d) {
                to[idx_t(c) * kListGroup] = values[i];
            }
        }
    }
}

/// Copies rows: a warp the vectors of a word one after another.
template <ListLayout kLayout>
__global__ __launch_bounds__(kThreads) void copyRowsKernel(
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

/// Seconds that a search of these lists takes for their vectors and pairs, or
/// less.
double searchTime(const IvfKnnProblem& p) {
    constexpr double kReadSpeed = 1.8e12; // bytes a second
    constexpr double kTileTime = 0.0125e-12;
    constexpr double kStreamTime = 0.7e-12;
    const double components = pairsOf(p) * p.lists.d;
    return ivfPairsMeet(p)
            ? 4.0 * double(p.lists.numVectors) * p.lists.d / kReadSpeed +
                    components * kTileTime
            : components * kStreamTime;
}

/// Vectors and sums over them are counted in 32 bits.
constexpr idx_t kMostCounted = (idx_t(1) << 32) - 1;
constexpr double kCountTime = 45e-6;

/// Whether a copy saves more than it takes, and `more` seconds.
bool pays(const IvfKnnProblem& p, idx_t numSelected, double more) {
    constexpr double kBytesASecond = 2.25e12;
    constexpr double kLaunches = 15e-6;
    constexpr double kMargin = 1.2;
    const double n = double(std::max<idx_t>(p.lists.numVectors, 1));
    const double share = std::min(double(numSelected) / n, 1.0);
    // Of n that a search by bits reads.
    const double byBits =
            ivfPairsMeet(p) ? 1 : 1 - std::pow(1 - share, kListGroup);
    const double moved = 4.0 * p.lists.d * n *
            (share + 1 - std::pow(1 - share, kVectorsOfSector));
    return searchTime(p) * (byBits - share) >
            kMargin * (kLaunches + more + moved / kBytesASecond);
}

} // namespace

bool countingSelectedPays(const IvfKnnProblem& p, idx_t expected) {
    constexpr double kLongSearch = 1e-3;
    return p.lists.coding == ListCoding::Float32 && p.mayWait &&
            p.lists.numVectors <= kMostCounted &&
            (searchTime(p) > kLongSearch || pays(p, expected, kCountTime));
}

bool copyingSelectedPays(const IvfKnnProblem& p, idx_t numSelected) {
    return pays(p, numSelected, 0);
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
        ListLayout layout,
        WorkspaceSlices& slices) {
    const size_t numLists = size_t(all.numLists);
    idx_t numVectors = numSelected;
    if (layout == ListLayout::Interleaved) {
        numGroups = numSelected / kListGroup + all.numLists;
        numVectors = numGroups * kListGroup;
    }
    vectors = slices.take<float>(size_t(numVectors) * all.d);
    ids = slices.take<idx_t>(size_t(numVectors));
    listVectors = slices.take<const void*>(numLists);
    listIds = slices.take<const void*>(numLists);
    lengths = slices.take<int64_t>(numLists);
    lists = all;
    lists.numVectors = numSelected;
    lists.layout = layout;
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
    const bool ofRows = all.layout == ListLayout::Rows;
    if (copy.lists.layout == ListLayout::Rows) {
        const auto kernel = ofRows ? copyRowsKernel<ListLayout::Rows>
                                   : copyRowsKernel<ListLayout::Interleaved>;
        const idx_t words = ivfFilterWords(all);
        kernel<<<blocksForWords(words, kThreads), kThreads, 0, stream>>>(
                all, words, count.beforeWords, copy);
    } else {
        const auto kernel = ofRows ? copyGroupsKernel<ListLayout::Rows>
                                   : copyGroupsKernel<ListLayout::Interleaved>;
        const idx_t parts = (all.d + kPart - 1) / kPart;
        kernel<<<
                blocksFor(copy.numGroups * parts * kWarpSize),
                kThreads,
                0,
                stream>>>(all, count.beforeWords, count.beforeLists, copy);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
